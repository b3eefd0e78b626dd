/* SPDX-License-Identifier: Apache-2.0 */
/* What cannot be done ends the process: a line on standard error, exit code 1. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "costload.h"

void die(const char *what, const char *why)
{
	fprintf(stderr, "costload: %s: %s\n", what, why);
	exit(1);
}

void need(bool ok, const char *what)
{
	if (!ok)
		die(what, strerror(errno));
}
