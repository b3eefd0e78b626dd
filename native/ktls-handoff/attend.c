/* SPDX-License-Identifier: Apache-2.0 */
/* One client of the resident, from its request to its answer: nothing that it does may cost more than its place. */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "handoff.h"

enum { REQUEST_MS = 2000, STRAYS = 8 };

/* One line about a client that does not keep to the protocol. */
static void complain(const struct client *c, const char *why)
{
	say("client pid %d user %u: %s", c->pid, c->uid, why);
}

/* Close what a client gave us: a request brings no descriptors. True if there was any. */
static bool close_strays(struct msghdr *msg)
{
	bool any = msg->msg_flags & MSG_CTRUNC;

	for (struct cmsghdr *m = CMSG_FIRSTHDR(msg); m; m = CMSG_NXTHDR(msg, m)) {
		size_t bytes = m->cmsg_len - CMSG_LEN(0);

		if (m->cmsg_level != SOL_SOCKET || m->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t at = 0; at + sizeof(int) <= bytes; at += sizeof(int)) {
			int fd;

			memcpy(&fd, CMSG_DATA(m) + at, sizeof(fd));
			close(fd);
			any = true;
		}
	}
	return any;
}

/* The one message of a client into data (REQUEST_MAX + 1 bytes): its length, or -1 with *f. */
static ssize_t receive(const struct client *c, char *data, struct failure *f)
{
	union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(STRAYS * sizeof(int))];
	} control;
	struct iovec iov = { data, REQUEST_MAX + 1 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1,
			      .msg_control = control.buf, .msg_controllen = sizeof(control.buf) };
	int most = c->home->said->timeout_ms;
	ssize_t n;

	if (!most || most > REQUEST_MS)
		most = REQUEST_MS;
	if (wait_fd(c->conn, POLLIN, now_ms() + most) != 1)
		return failed(f, RC_TIMEOUT, "timeout", "no request within %g s", most / 1e3) - 1;
	n = recvmsg(c->conn, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (n < 0)
		return failed(f, RC_INTERNAL, "internal", "recvmsg: %s", strerror(errno)) - 1;
	if (close_strays(&msg))
		return failed(f, RC_USAGE, "usage", "the request carries file descriptors") - 1;
	if (n == 0)
		return failed(f, RC_PARENT, "internal", "the client disconnected without a request") - 1;
	if (msg.msg_flags & MSG_TRUNC || n > REQUEST_MAX)
		return failed(f, RC_USAGE, "usage", "the request is longer than %d bytes", REQUEST_MAX) - 1;
	return n;
}

/* The whole way to a socket with kernel TLS; *the caller must close sock in any case. */
static bool hand(const struct rules *rules, int *sock, struct result *r, struct failure *f)
{
	if (!rules_agree(rules, rules->o.digest, f) || !ktls_possible(f))
		return false;
	*sock = net_connect(&rules->o, f);
	return *sock >= 0 && establish(rules->ctx, *sock, &rules->o, r, f);
}

static void answer(const struct client *c, const struct options *o, const struct result *r, struct failure *f, bool ok)
{
	struct text t = { .len = 0 };

	if (ok)
		text_result(&t, r);
	else
		text_failure(&t, f);
	if (!handoff_send(c->conn, &t, ok ? r->sock : -1, o->timeout_ms, f) && o->timeout_ms)
		complain(c, f->message);
}

/* End a connection so that its answer arrives: the close of a unix socket with unread messages, as of one who may not
 * ask or asks twice, resets it, and an answer that was not read yet is lost. Descriptors in them go with them. */
void attend_end(int conn)
{
	char byte;

	shutdown(conn, SHUT_RDWR); /* no message comes after this */
	while (recv(conn, &byte, 1, MSG_DONTWAIT) > 0)
		;
	close(conn);
}

/* Serve one client, from request to answer; c->conn stays the caller's. */
void attend(const struct client *c)
{
	struct failure f = { .exit = RC_INTERNAL, .cause = "internal" };
	struct result r = { .sock = -1 };
	struct rules rules = { .policy = NULL };
	char data[REQUEST_MAX + 1];
	int sock = -1;
	ssize_t n = receive(c, data, &f);
	bool read = n > 0 && rules_now(c->home, &rules, &f), ok = false;

	if (read && request_parse(data, (size_t)n, &rules.o, &f))
		ok = hand(&rules, &sock, &r, &f);
	if (!ok && (n < 0 || f.exit == RC_USAGE)) {
		complain(c, f.message);
		rules.o.timeout_ms = 0; /* an answer that does not go out at once is lost */
	}
	if (n > 0 || f.exit == RC_USAGE)
		answer(c, &rules.o, &r, &f, ok);
	rules_free(&rules);
	if (sock >= 0)
		close(sock);
}

/* May this process ask? SO_PEERCRED, because the mode of the socket can be changed by others. */
bool attend_welcome(struct client *c)
{
	const int user = c->home->said->user;
	struct failure f = { 0 };
	struct ucred who;
	socklen_t len = sizeof(who);

	if (getsockopt(c->conn, SOL_SOCKET, SO_PEERCRED, &who, &len))
		return false;
	c->pid = who.pid;
	c->uid = who.uid;
	if (who.uid == geteuid() || who.uid == 0 || (user >= 0 && who.uid == (uid_t)user))
		return true;
	failed(&f, RC_NOT_HERE, "internal", "user %u is not allowed to ask", c->uid);
	complain(c, f.message);
	answer(c, &(struct options){ .timeout_ms = 0 }, NULL, &f, false);
	return false;
}
