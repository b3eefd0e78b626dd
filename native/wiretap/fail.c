/* SPDX-License-Identifier: Apache-2.0 */
/* Says on standard error what went wrong. */
#include <stdarg.h>
#include <stdio.h>

#include "wiretap.h"

int fail(int code, const char *fmt, ...)
{
	va_list args;

	fputs("wiretap: ", stderr);
	va_start(args, fmt);
	vfprintf(stderr, fmt, args);
	va_end(args);
	fputc('\n', stderr);
	return code;
}
