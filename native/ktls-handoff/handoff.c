/* SPDX-License-Identifier: Apache-2.0 */
/* One line of JSON and one socket to the parent (SCM_RIGHTS). */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "handoff.h"

/* Say whether the descriptor can carry a line and a socket. */
bool handoff_usable(int fd, struct failure *f)
{
	int domain = 0, type = 0;
	socklen_t len = sizeof(int);

	if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) || domain != AF_UNIX ||
	    getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) || (type != SOCK_STREAM && type != SOCK_SEQPACKET))
		return failed(f, RC_USAGE, "usage", "--fd %d is not a unix socket (stream or seqpacket)", fd);
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
			return failed(f, RC_PARENT, "internal", "cannot pass the socket to the parent: %s", strerror(errno));
		if (wait_fd(fd, POLLOUT, deadline) == 0)
			return failed(f, RC_PARENT, "internal", "the parent did not read the socket within %g s",
				      timeout_ms / 1e3);
	}
	return true;
}
