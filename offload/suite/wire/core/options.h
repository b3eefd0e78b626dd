/* SPDX-License-Identifier: Apache-2.0 */
/* What the caller asked for. */
#ifndef WIRE_OPTIONS_H
#define WIRE_OPTIONS_H

#include <stdbool.h>

#include "text.h"

enum verb { VERB_VERIFY, VERB_BENCH, VERB_HELP, VERB_VERSION };

struct options {
	enum verb verb;
	const char *capture, *keylog, *payload, *reply;
	int port, threads, repeat;
	bool checksums;
};

int options_parse(int argc, char *const argv[], struct options *o, struct failure *f);

#endif
