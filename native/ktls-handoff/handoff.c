/* SPDX-License-Identifier: Apache-2.0 */
/* One line of JSON and one socket to the parent (SCM_RIGHTS); one line to people (standard error). */
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

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

/* Say whether the descriptor can carry a line and a socket. */
bool handoff_usable(int fd, struct failure *f)
{
	int domain = 0, type = 0;
	socklen_t len = sizeof(int);

	if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) || domain != AF_UNIX ||
	    getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) || (type != SOCK_STREAM && type != SOCK_SEQPACKET))
		return failed(f, RC_USAGE, "usage", "--fd %d is no unix socket (stream or seqpacket)", fd);
	return true;
}

static ssize_t send_part(int fd, const char *data, size_t len, int sock)
{
	union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(sizeof(int))];
	} control = { .buf = { 0 } };
	struct iovec iov = { (void *)data, len };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (sock >= 0) {
		struct cmsghdr *c;

		msg.msg_control = control.buf;
		msg.msg_controllen = sizeof(control.buf);
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(c), &sock, sizeof(int));
	}
	return sendmsg(fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* Send the line to the parent, with the socket unless it is -1; false: the parent is gone or does not read. */
bool handoff_send(int fd, const struct text *line, int sock, int timeout_ms, struct failure *f)
{
	long long deadline = now_ms() + timeout_ms;
	size_t sent = 0;

	while (sent < line->len) {
		/* The socket travels with the first byte only. */
		ssize_t n = send_part(fd, line->buf + sent, line->len - sent, sent ? -1 : sock);

		if (n > 0) {
			sent += (size_t)n;
			continue;
		}
		if (errno != EAGAIN && errno != EINTR)
			return failed(f, RC_PARENT, "internal", "hand-over to the parent: %s", strerror(errno));
		if (wait_fd(fd, POLLOUT, deadline) == 0)
			return failed(f, RC_PARENT, "internal", "hand-over: the parent did not read within %g s",
				      timeout_ms / 1e3);
	}
	return true;
}
