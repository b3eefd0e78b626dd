/* SPDX-License-Identifier: Apache-2.0 */
/* What does a client of the resident ask for? One message: the command line of connect, one word a line. Pure. */
#include <string.h>

#include "handoff.h"

enum { WORDS_MAX = 16 };

/* Cut a request up and add it to *o, the resident's options; the strings of *o point into data. */
bool request_parse(char *data, size_t len, struct options *o, struct failure *f)
{
	char *argv[WORDS_MAX + 1] = { "client" };
	int argc = 1;

	if (!len || len > REQUEST_MAX || data[len - 1] != '\n' || memchr(data, '\0', len))
		return failed(f, RC_USAGE, "usage", "a request of %zu bytes: expected lines of at most %d bytes in all", len, REQUEST_MAX);
	for (char *end = data + len; data < end; argc++) {
		char *stop = memchr(data, '\n', (size_t)(end - data));

		if (argc == WORDS_MAX)
			return failed(f, RC_USAGE, "usage", "a request of more than %d lines", WORDS_MAX - 1);
		*stop = '\0';
		argv[argc] = data;
		data = stop + 1;
	}
	return options_request(argc, argv, o, f);
}
