/* SPDX-License-Identifier: Apache-2.0 */
/* The resident: one process, a thread per hand-over, bounded in number, time and memory. The protocol is in
 * docs/reference/ktls-handoff.8. It never falls back: the client gets the reason and falls back, so that one place warns. */
#define _GNU_SOURCE
#include <errno.h>
#include <malloc.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <openssl/crypto.h>

#include "handoff.h"

/* STACK: the C library keeps 40 MiB of stacks of threads that ended, with some pages in each: 20 stacks, not 80. */
enum { STACK = 2 * 1024 * 1024, BURN = 64 * 1024, MANY = 8 };

struct resident {
	const struct options *o;
	struct standing rules;
	int listener;
	sem_t free; /* places for clients */
	atomic_bool crowded; /* the heap has grown by many at a time */
};

struct visit {
	struct client client;
	struct resident *home;
};

static volatile sig_atomic_t stopped;

static void stop(int number)
{
	(void)number;
	stopped = 1;
}

/* What OpenSSL left on this stack is gone before the stack is used again, or kept for later. */
static __attribute__((noinline)) void burn(void)
{
	char stack[BURN];

	OPENSSL_cleanse(stack, sizeof(stack));
}

static int busy(struct resident *home)
{
	int left = 0;

	sem_getvalue(&home->free, &left);
	return home->o->clients - left;
}

static void *attend_thread(void *arg)
{
	struct visit v = *(struct visit *)arg;

	free(arg);
	attend(&v.client);
	OPENSSL_thread_stop();
	burn();
	attend_end(v.client.conn);
	if (busy(v.home) == 1 && atomic_exchange(&v.home->crowded, false))
		malloc_trim(0); /* what many clients took goes back to the system */
	sem_post(&v.home->free); /* from here on there may be no home */
	return NULL;
}

static void take(struct resident *home, int conn, const pthread_attr_t *attr)
{
	struct visit *v = malloc(sizeof(*v));
	pthread_t thread;

	if (v)
		*v = (struct visit){ { .home = &home->rules, .conn = conn }, home };
	if (busy(home) >= MANY)
		atomic_store(&home->crowded, true);
	if (v && attend_welcome(&v->client) && !pthread_create(&thread, attr, attend_thread, v))
		return;
	free(v);
	attend_end(conn);
	sem_post(&home->free);
}

static void loop(struct resident *home)
{
	pthread_attr_t attr;
	sigset_t none;

	sigemptyset(&none);
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attr, STACK);
	while (!stopped) {
		struct pollfd p = { .fd = home->listener, .events = POLLIN };
		struct timespec soon = { 0, 100 * 1000000L };
		int conn;

		if (ppoll(&p, 1, NULL, &none) < 1)
			continue;
		while (sem_trywait(&home->free) && !stopped) /* full: the others wait in the queue of the socket */
			ppoll(NULL, 0, &(struct timespec){ 0, 2000000L }, &none);
		conn = stopped ? -1 : accept4(home->listener, NULL, NULL, SOCK_CLOEXEC);
		if (conn >= 0) {
			take(home, conn, &attr);
			continue;
		}
		sem_post(&home->free);
		if (!stopped && errno != EAGAIN && errno != ECONNABORTED && errno != EINTR) {
			say("accept: %s", strerror(errno));
			ppoll(NULL, 0, &soon, &none);
		}
	}
	pthread_attr_destroy(&attr);
}

/* No arena per thread, no huge page (a thread's first page would take 2 MiB where its stack lies at the edge of one; one
 * of a hundred runs did), no descriptor limit below what --clients needs. */
static void settle(void)
{
	struct rlimit files;

	mallopt(M_ARENA_MAX, 1);
	mallopt(M_MMAP_THRESHOLD, 128 * 1024); /* a bundle that was read is given back at once */
	prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		files.rlim_cur = files.rlim_max < 8192 ? files.rlim_max : 8192;
		setrlimit(RLIMIT_NOFILE, &files);
	}
}

/* Wait a second for who is still being served: after that, they are told by the end of their socket. */
static void leave(struct resident *home)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec++;
	for (int i = 0; i < home->o->clients; i++)
		if (sem_timedwait(&home->free, &until))
			_exit(RC_OK); /* no exit handlers: threads still use OpenSSL */
	SSL_CTX_free(home->rules.ctx);
	sem_destroy(&home->free);
}

/* The verb: ktls-handoff serve SOCKET. Ends with 0 on SIGTERM or SIGINT; the socket is removed. */
int serve_main(const struct options *said)
{
	struct options o = *said;
	struct resident home = { .o = &o, .rules = { .said = &o, .lock = PTHREAD_MUTEX_INITIALIZER } };
	struct rules first;
	struct place place = { .listener = -1 };
	struct sigaction end = { .sa_handler = stop };
	struct failure f = { 0 };
	sigset_t ends;
	bool ok;

	settle();
	sigemptyset(&ends);
	sigaddset(&ends, SIGTERM);
	sigaddset(&ends, SIGINT);
	sigprocmask(SIG_BLOCK, &ends, NULL); /* only ppoll() lets them in */
	sigaction(SIGTERM, &end, NULL);
	sigaction(SIGINT, &end, NULL);
	o.verb = VERB_CONNECT;
	ok = rules_renew(&home.rules, &first, &f) && place_take(&o, &place, &f);
	rules_free(&first); /* OpenSSL is ready, and the files are right: each client brings them again */
	if (!ok) {
		say("%s", f.message);
		SSL_CTX_free(home.rules.ctx);
		return f.exit;
	}
	home.listener = place.listener;
	sem_init(&home.free, 0, (unsigned int)o.clients);
	loop(&home);
	place_leave(&place);
	leave(&home);
	return RC_OK;
}
