/* SPDX-License-Identifier: Apache-2.0 */
/* TCP with a deadline on each step: resolve, connect, listen, accept. Sockets come back non-blocking. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "handoff.h"

bool set_blocking(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	return flags >= 0 && fcntl(fd, F_SETFL, flags & ~O_NONBLOCK) == 0;
}

bool is_ip(const char *host)
{
	unsigned char address[sizeof(struct in6_addr)];

	return inet_pton(AF_INET, host, address) == 1 || inet_pton(AF_INET6, host, address) == 1;
}

static bool address_text(const struct sockaddr *sa, socklen_t len, char *out, size_t size)
{
	char host[64], port[8];

	if (getnameinfo(sa, len, host, sizeof(host), port, sizeof(port), NI_NUMERICHOST | NI_NUMERICSERV))
		return false;
	snprintf(out, size, strchr(host, ':') ? "[%s]:%s" : "%s:%s", host, port);
	return true;
}

bool peer_name(int fd, char *out, size_t size)
{
	struct sockaddr_storage sa;
	socklen_t len = sizeof(sa);

	return getpeername(fd, (struct sockaddr *)&sa, &len) == 0 &&
	       address_text((struct sockaddr *)&sa, len, out, size);
}

/* A question to the resolver. One that nobody waits for any longer cannot be canceled, and still writes here
 * when it ends: it is kept, and freed when a later question finds it done. */
struct question {
	struct gaicb job;
	struct question *next;
	char host[256], port[8];
};
static struct question *abandoned;
static pthread_mutex_t abandoned_lock = PTHREAD_MUTEX_INITIALIZER;
static const struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV };

static void abandon(struct question *q)
{
	pthread_mutex_lock(&abandoned_lock);
	q->next = abandoned;
	abandoned = q;
	pthread_mutex_unlock(&abandoned_lock);
}

static void sweep(void)
{
	pthread_mutex_lock(&abandoned_lock);
	for (struct question **at = &abandoned; *at;) {
		struct question *q = *at;

		if (gai_error(&q->job) == EAI_INPROGRESS) {
			at = &q->next;
			continue;
		}
		*at = q->next;
		if (q->job.ar_result)
			freeaddrinfo(q->job.ar_result);
		free(q);
	}
	pthread_mutex_unlock(&abandoned_lock);
}

/* getaddrinfo() has no time-out of its own, getaddrinfo_a() has one. 0, EAI_INPROGRESS after a
 * time-out, or another EAI_. */
static int ask(const struct options *o, struct addrinfo **found)
{
	struct timespec limit = { o->timeout_ms / 1000, o->timeout_ms % 1000 * 1000000L };
	struct question *q = calloc(1, sizeof(*q));
	struct gaicb *jobs[] = { q ? &q->job : NULL };
	int rc;

	sweep();
	if (!q)
		return EAI_MEMORY;
	snprintf(q->host, sizeof(q->host), "%s", o->host);
	snprintf(q->port, sizeof(q->port), "%s", o->port);
	q->job = (struct gaicb){ .ar_name = q->host, .ar_service = q->port, .ar_request = &hints };
	rc = getaddrinfo_a(GAI_NOWAIT, jobs, 1, NULL);
	if (!rc && gai_suspend((const struct gaicb *const *)jobs, 1, &limit) == EAI_AGAIN) {
		gai_cancel(&q->job);
		abandon(q);
		return EAI_INPROGRESS;
	}
	if (!rc)
		rc = gai_error(&q->job);
	*found = q->job.ar_result;
	free(q);
	return rc;
}

/* The addresses of HOST PORT, or NULL; an IP literal asks nobody. */
static struct addrinfo *resolve(const struct options *o, struct failure *f)
{
	struct addrinfo *found = NULL;
	int rc = is_ip(o->host) ? getaddrinfo(o->host, o->port, &hints, &found) : ask(o, &found);

	if (rc == EAI_INPROGRESS)
		failed(f, RC_TIMEOUT, "timeout", "no address for %s within %g s", o->host, o->timeout_ms / 1e3);
	else if (rc)
		failed(f, RC_CONNECT, "connect", "%s has no address: %s", o->host, gai_strerror(rc));
	return rc ? NULL : found;
}

/* Connect to one address: the socket, or -1 with errno (ETIMEDOUT when the deadline passed). */
static int connect_one(const struct addrinfo *ai, long long deadline)
{
	int fd = socket(ai->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	socklen_t len = sizeof(int);
	int error = 0, ready;

	if (fd < 0)
		return -1;
	if (connect(fd, ai->ai_addr, ai->ai_addrlen) == 0)
		return fd;
	error = errno;
	if (error == EINPROGRESS) {
		ready = wait_fd(fd, POLLOUT, deadline);
		if (ready == 0)
			error = ETIMEDOUT;
		else if (ready < 0 || getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len))
			error = errno;
	}
	if (!error)
		return fd;
	close(fd);
	errno = error;
	return -1;
}

/* Connect to HOST PORT, address by address; what is left of the time is shared between those left. */
int net_connect(const struct options *o, struct failure *f)
{
	long long deadline;
	struct addrinfo *all = resolve(o, f);
	int left = 0, fd = -1, error = 0;

	if (!all)
		return -1;
	deadline = now_ms() + o->timeout_ms;
	for (struct addrinfo *ai = all; ai; ai = ai->ai_next)
		left++;
	for (struct addrinfo *ai = all; ai && fd < 0; ai = ai->ai_next, left--) {
		fd = connect_one(ai, now_ms() + (deadline - now_ms()) / left);
		error = errno;
	}
	freeaddrinfo(all);
	if (fd < 0)
		failed(f, error == ETIMEDOUT ? RC_TIMEOUT : RC_CONNECT, error == ETIMEDOUT ? "timeout" : "connect",
		       "cannot connect to %s port %s: %s", o->host, o->port, strerror(error));
	return fd;
}

static void announce(int fd)
{
	struct sockaddr_storage sa;
	socklen_t len = sizeof(sa);
	char where[80];

	if (getsockname(fd, (struct sockaddr *)&sa, &len) ||
	    !address_text((struct sockaddr *)&sa, len, where, sizeof(where)))
		return;
	printf("listening on %s\n", where);
	fflush(stdout);
}

/* Listen on ADDR PORT (numeric); the socket, or -1. */
int net_listen(const struct options *o, struct failure *f)
{
	static const struct addrinfo here = {
		.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV | AI_NUMERICHOST | AI_PASSIVE };
	struct addrinfo *ai;
	int on = 1, fd, rc = getaddrinfo(o->host, o->port, &here, &ai);

	if (rc) {
		failed(f, RC_USAGE, "usage", "ADDR must be an IP address of this host, not '%s': %s",
		       o->host, gai_strerror(rc));
		return -1;
	}
	fd = socket(ai->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) ||
	    bind(fd, ai->ai_addr, ai->ai_addrlen) || listen(fd, 1)) {
		failed(f, RC_CONNECT, "connect", "cannot listen on %s port %s: %s", o->host, o->port, strerror(errno));
		if (fd >= 0)
			close(fd);
		fd = -1;
	}
	freeaddrinfo(ai);
	if (fd >= 0 && o->announce)
		announce(fd);
	return fd;
}

/* Wait for one connection; non-blocking socket, or -1. */
int net_accept(int listener, const struct options *o, struct failure *f)
{
	long long deadline = now_ms() + o->timeout_ms;
	int fd, ready;

	for (;;) {
		ready = wait_fd(listener, POLLIN, deadline);
		if (ready == 0) {
			failed(f, RC_TIMEOUT, "timeout", "no client connected to %s port %s within %g s",
			       o->host, o->port, o->timeout_ms / 1e3);
			return -1;
		}
		fd = ready < 0 ? -1 : accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd >= 0)
			return fd;
		/* ECONNABORTED: that client is gone already, the next may not be. */
		if (ready < 0 || (errno != EAGAIN && errno != ECONNABORTED && errno != EINTR)) {
			failed(f, RC_CONNECT, "connect", "accept on %s port %s: %s", o->host, o->port, strerror(errno));
			return -1;
		}
	}
}
