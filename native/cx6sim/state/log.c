/* SPDX-License-Identifier: Apache-2.0 */
/* What the card says of itself, on standard error: a line begins with the card's number. */
#include <stdarg.h>
#include <stdio.h>

#include "cx6.h"

int log_level;

void say(const struct card *c, int level, const char *fmt, ...)
{
	va_list ap;

	if (level > log_level)
		return;
	fprintf(stderr, "cx6sim: card %d: ", c->number);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
}
