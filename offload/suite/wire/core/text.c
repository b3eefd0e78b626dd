/* SPDX-License-Identifier: Apache-2.0 */
/* Text that grows; memory that is there or ends the program with 70. */
#include <stdarg.h>
#include <stdlib.h>

#include "text.h"

enum { FLUSH_AT = 65536 };

static void no_memory(void)
{
	fputs("ktls-wire: out of memory\n", stderr);
	_Exit(RC_INTERNAL);
}

/* Zeroed memory of at least one byte. */
void *grab(size_t size)
{
	void *p = calloc(1, size ? size : 1);

	if (!p)
		no_memory();
	return p;
}

void *regrab(void *old, size_t size)
{
	void *p = realloc(old, size ? size : 1);

	if (!p)
		no_memory();
	return p;
}

/* Note a failure; always the code. */
int failed(struct failure *f, enum exit_code code, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(f->message, sizeof(f->message), fmt, ap);
	va_end(ap);
	f->code = code;
	return code;
}

void text_flush(struct text *t)
{
	if (t->to && t->len)
		fwrite(t->buf, 1, t->len, t->to);
	if (t->to)
		t->len = 0;
}

static void text_room(struct text *t, size_t more)
{
	if (t->to && t->len > FLUSH_AT)
		text_flush(t);
	if (t->cap - t->len > more)
		return;
	t->cap = (t->cap + more) * 2 + 256;
	t->buf = regrab(t->buf, t->cap);
}

void text_add(struct text *t, const char *fmt, ...)
{
	va_list ap, again;
	int n;

	va_start(ap, fmt);
	va_copy(again, ap);
	text_room(t, 128);
	n = vsnprintf(t->buf + t->len, t->cap - t->len, fmt, ap);
	if (n > 0 && (size_t)n >= t->cap - t->len) {
		text_room(t, (size_t)n);
		n = vsnprintf(t->buf + t->len, t->cap - t->len, fmt, again);
	}
	va_end(again);
	va_end(ap);
	if (n > 0)
		t->len += (size_t)n;
}

/* Add bytes as a JSON string of lower case hexadecimal. */
void text_hex(struct text *t, const uint8_t *at, size_t len)
{
	text_add(t, "\"");
	for (size_t i = 0; i < len; i++)
		text_add(t, "%02x", at[i]);
	text_add(t, "\"");
}
