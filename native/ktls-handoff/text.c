/* SPDX-License-Identifier: Apache-2.0 */
/* What happened, in words: a failure, a result as one line of JSON, one line to people (standard error). */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <openssl/err.h>

#include "handoff.h"

/* Note a failure; always false. */
bool failed(struct failure *f, int code, const char *cause, const char *fmt, ...)
{
	char message[MESSAGE_MAX]; /* apart: the arguments may lie in *f */
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(message, sizeof(message), fmt, ap);
	va_end(ap);
	f->exit = code;
	f->cause = cause;
	memcpy(f->message, message, sizeof(message));
	return false;
}

/* Add formatted text; what does not fit is cut, never written past the end. */
void text_add(struct text *t, const char *fmt, ...)
{
	size_t room = sizeof(t->buf) - t->len;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(t->buf + t->len, room, fmt, ap);
	va_end(ap);
	if (n > 0)
		t->len += (size_t)n < room ? (size_t)n : room - 1;
}

/* The inside of a JSON string in ASCII: a byte above 0x7e stands as the code point of the same number. */
static void escape(struct text *t, const char *value)
{
	for (const unsigned char *c = (const unsigned char *)value; *c; c++) {
		if (*c == '"' || *c == '\\')
			text_add(t, "\\%c", *c);
		else if (*c < 0x20 || *c > 0x7e)
			text_add(t, "\\u%04x", *c);
		else
			text_add(t, "%c", *c);
	}
}

/* Add a JSON string, or null for NULL and the empty string. */
void text_json(struct text *t, const char *value)
{
	if (!value || !*value) {
		text_add(t, "null");
		return;
	}
	text_add(t, "\"");
	escape(t, value);
	text_add(t, "\"");
}

static void member(struct text *t, const char *name, const char *value)
{
	text_add(t, ",\"%s\":", name);
	text_json(t, value);
}

void text_result(struct text *t, const struct result *r)
{
	text_add(t, "{\"ok\":true");
	member(t, "via", r->via);
	member(t, "version", r->version);
	member(t, "cipher", r->cipher);
	member(t, "kernel_cipher", r->kernel_cipher);
	member(t, "tx", r->tx);
	member(t, "rx", r->rx);
	member(t, "tx_by", r->tx_by);
	member(t, "rx_by", r->rx_by);
	member(t, "tx_seq", r->tx_seq);
	member(t, "rx_seq", r->rx_seq);
	member(t, "peer", r->peer);
	text_add(t, ",\"pending\":%d}\n", r->pending);
}

void text_failure(struct text *t, const struct failure *f)
{
	text_add(t, "{\"ok\":false");
	member(t, "cause", f->cause);
	member(t, "message", f->message);
	text_add(t, ",\"exit\":%d}\n", f->exit);
}

/* One line on standard error, all but printable ASCII escaped: names come from strangers. */
void say(const char *fmt, ...)
{
	char line[2 * MESSAGE_MAX];
	struct text t = { .len = 0 };
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	for (const unsigned char *c = (const unsigned char *)line; *c; c++)
		text_add(&t, *c < 0x20 || *c > 0x7e ? "\\x%02x" : "%c", *c);
	fprintf(stderr, "ktls-handoff: %s\n", t.buf);
}

/* The newest entry of OpenSSL's error queue as text, or the system's before it ("system lib" says nothing); empties
 * the queue. */
const char *openssl_reason(char *out, size_t size)
{
	unsigned long code = ERR_peek_last_error();
	const char *reason;

	if (!ERR_SYSTEM_ERROR(code) && ERR_SYSTEM_ERROR(ERR_peek_error()))
		code = ERR_peek_error();
	reason = ERR_reason_error_string(code);
	if (ERR_SYSTEM_ERROR(code))
		reason = strerror(ERR_GET_REASON(code));
	snprintf(out, size, "%s", reason ? reason : "no reason given");
	ERR_clear_error();
	return out;
}
