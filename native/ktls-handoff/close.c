/* SPDX-License-Identifier: Apache-2.0 */
/* The only safe end of a kTLS socket: close_notify, shutdown(WR), read until end of file, close.
 * Unread bytes at close() make TCP send a reset, and the peer then drops what it had not read yet: with
 * TLS 1.3 the session tickets that nobody reads are enough (1 MiB sent, 64 to 144 KiB arrived). */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <linux/tls.h>

#include "handoff.h"

#ifndef SOL_TLS
#define SOL_TLS 282
#endif
enum { RECORD_ALERT = 21, RECORD_DATA = 23 }; /* RFC 8446 section 5.1 */

/* What one recvmsg() brought: the bytes, and the kind of record where the kernel does receive. */
struct piece {
	unsigned char data[65536];
	size_t len;
	int type;
};

static bool broken(struct failure *f, const char *step)
{
	return failed(f, RC_CONNECT, "connect", "%s: %s; data may not have arrived", step, strerror(errno));
}

/* Send warning(1) close_notify(0) as a record of its own; plain write() would send it as data. */
static bool send_close_notify(int fd, long long deadline, struct failure *f)
{
	unsigned char alert[2] = { 1, 0 };
	union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(1)];
	} control = { .buf = { 0 } };
	struct iovec iov = { alert, sizeof(alert) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1,
			      .msg_control = control.buf, .msg_controllen = sizeof(control.buf) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
	int ready;

	c->cmsg_level = SOL_TLS;
	c->cmsg_type = TLS_SET_RECORD_TYPE;
	c->cmsg_len = CMSG_LEN(1);
	*CMSG_DATA(c) = RECORD_ALERT;
	for (;;) {
		if (sendmsg(fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL) == sizeof(alert))
			return true;
		if (errno != EAGAIN && errno != EINTR)
			return broken(f, "cannot send close_notify");
		ready = wait_fd(fd, POLLOUT, deadline);
		if (ready <= 0)
			return failed(f, RC_TIMEOUT, "timeout", "the peer accepts no more data: close_notify was not sent");
	}
}

/* recvmsg() always with a control buffer: without one, a control record answers EIO for ever. */
static ssize_t receive(int fd, struct piece *p)
{
	union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(1)];
	} control = { .buf = { 0 } };
	struct iovec iov = { p->data, sizeof(p->data) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1,
			      .msg_control = control.buf, .msg_controllen = sizeof(control.buf) };
	ssize_t n = recvmsg(fd, &msg, MSG_DONTWAIT);
	const struct cmsghdr *c = n > 0 ? CMSG_FIRSTHDR(&msg) : NULL;

	p->type = c && c->cmsg_level == SOL_TLS && c->cmsg_type == TLS_GET_RECORD_TYPE ? *CMSG_DATA(c) : RECORD_DATA;
	p->len = n > 0 ? (size_t)n : 0;
	return n;
}

static void note(const struct piece *p, struct closed *c)
{
	if (p->type == RECORD_DATA)
		c->drained += p->len;
	else if (p->type == RECORD_ALERT && p->len == 2 && p->data[1] == 0)
		snprintf(c->alert, sizeof(c->alert), "close_notify");
	else if (p->type == RECORD_ALERT && p->len == 2)
		snprintf(c->alert, sizeof(c->alert), "alert %d", p->data[1]);
}

static bool drain(int fd, long long deadline, struct closed *c, struct failure *f)
{
	static struct piece piece;

	for (;;) {
		/* A peer that never stops sending must not keep us: the deadline counts for busy ones too. */
		int ready = wait_fd(fd, POLLIN, deadline);
		ssize_t n;

		if (ready == 0 || now_ms() > deadline)
			return failed(f, RC_TIMEOUT, "timeout", "the peer did not close in time (%llu bytes drained)",
				      c->drained);
		n = ready < 0 ? -1 : receive(fd, &piece);
		if (n == 0)
			return true;
		if (n > 0)
			note(&piece, c);
		else if (errno == EBADMSG)
			return failed(f, RC_KTLS, "ktls", "a record of the peer could not be decrypted");
		else if (errno != EAGAIN && errno != EINTR)
			return broken(f, "reading until the peer closes");
	}
}

/* Close a kTLS socket so that everything sent arrives. Refuses (socket untouched) one without kTLS send:
 * there the alert would go out as two plain bytes. In every other case fd is closed. */
bool safe_close(int fd, int timeout_ms, struct closed *c, struct failure *f)
{
	long long deadline = now_ms() + timeout_ms;
	bool ok;

	*c = (struct closed){ .drained = 0 };
	if (!ktls_installed(fd, TLS_TX))
		return failed(f, RC_KTLS, "ktls", "descriptor %d is not a socket with kTLS transmit", fd);
	ok = send_close_notify(fd, deadline, f);
	if (ok && shutdown(fd, SHUT_WR))
		ok = broken(f, "shutdown");
	ok = ok && drain(fd, deadline, c, f);
	close(fd);
	return ok;
}

/* The verb: ktls-handoff close --fd N. One JSON line on standard output. */
int close_main(const struct options *o)
{
	struct failure f = { 0 };
	struct text t = { .len = 0 };
	struct closed c;
	bool ok = safe_close(o->fd, o->timeout_ms, &c, &f);

	if (ok) {
		text_add(&t, "{\"ok\":true,\"drained\":%llu,\"alert\":", c.drained);
		text_json(&t, *c.alert ? c.alert : NULL);
		text_add(&t, "}\n");
	} else {
		text_failure(&t, &f);
		say("%s", f.message);
	}
	if (fwrite(t.buf, 1, t.len, stdout) != t.len || fflush(stdout))
		return RC_PARENT;
	return ok ? RC_OK : f.exit;
}
