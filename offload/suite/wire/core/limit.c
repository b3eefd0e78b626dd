/* SPDX-License-Identifier: Apache-2.0 */
/* What could threads gain at best on this machine? Each one has its own copy of the files: no lock, no queue, no part
 * that one thread does alone. What is left is how the processors share memory. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "limit.h"

struct lane {
	struct question q;
	uint8_t *copy; /* of the capture, then of the payload */
	uint64_t sum; /* of its words: their reader must use them */
	bool bad, alive;
	void (*work)(struct lane *l);
	pthread_t thread;
};

struct limit {
	unsigned int lanes;
	size_t len; /* of a copy */
	struct lane lane[];
};

/* Memory as that of a mapped file is: shared pages, of a file without a name. */
static uint8_t *map(size_t len)
{
	int fd = memfd_create("ktls-wire", MFD_CLOEXEC);
	void *at = MAP_FAILED;

	if (fd >= 0 && ftruncate(fd, (off_t)len) == 0)
		at = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (fd >= 0)
		close(fd);
	return at == MAP_FAILED ? NULL : at;
}

static bool fill(struct lane *l, const struct question *q, size_t len)
{
	l->q = *q;
	l->q.threads = 1;
	l->copy = map(len);
	if (!l->copy)
		return false;
	memcpy(l->copy, q->capture.at, q->capture.len);
	memcpy(l->copy + q->capture.len, q->payload.at, q->payload.len);
	l->q.capture.at = l->copy;
	l->q.payload.at = l->copy + q->capture.len;
	return true;
}

/* A copy of the capture and of the payload for each thread; NULL and a sentence if there is no memory for them. */
struct limit *limit_new(const struct question *q, struct failure *f)
{
	struct limit *l = grab(sizeof(*l) + q->threads * sizeof(l->lane[0]));

	l->len = q->capture.len + q->payload.len;
	for (; l->lanes < q->threads; l->lanes++)
		if (!fill(&l->lane[l->lanes], q, l->len)) {
			failed(f, RC_INTERNAL, "no memory for %u copies of the files: %s", q->threads, strerror(errno));
			limit_free(l);
			return NULL;
		}
	return l;
}

void limit_free(struct limit *l)
{
	for (unsigned int i = 0; i < l->lanes; i++)
		munmap(l->lane[i].copy, l->len);
	free(l);
}

static void verify(struct lane *l)
{
	struct text document = { .to = NULL };
	struct failure why;

	l->bad = wire_verify(&l->q, &document, &why) != RC_OK || !strstr(document.buf, "\"outcome\":\"equal\"");
	free(document.buf);
}

static void read_all(struct lane *l)
{
	const uint8_t *end = l->copy + l->q.capture.len + l->q.payload.len;
	uint64_t sum[8] = { 0 };

	for (const uint8_t *at = l->copy; at + sizeof(sum) <= end; at += sizeof(sum))
		for (int k = 0; k < 8; k++) {
			uint64_t word;

			memcpy(&word, at + k * sizeof(word), sizeof(word));
			sum[k] += word;
		}
	for (int k = 0; k < 8; k++)
		l->sum += sum[k];
}

static void *lane(void *arg)
{
	struct lane *l = arg;

	l->work(l);
	return NULL;
}

static double clock_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Seconds until every thread has done its work; this thread does the first lane. */
static double together(struct limit *l, unsigned int threads, void (*work)(struct lane *l))
{
	double begin = clock_now();

	for (unsigned int i = 1; i < threads; i++) {
		l->lane[i].work = work;
		l->lane[i].alive = pthread_create(&l->lane[i].thread, NULL, lane, &l->lane[i]) == 0;
	}
	work(&l->lane[0]);
	for (unsigned int i = 1; i < threads; i++)
		if (l->lane[i].alive)
			pthread_join(l->lane[i].thread, NULL);
		else
			work(&l->lane[i]); /* a thread that cannot be had */
	return clock_now() - begin;
}

/* Seconds until each thread has verified its own copy by itself; negative if one was not equal. */
double limit_verify(struct limit *l, unsigned int threads)
{
	double seconds = together(l, threads, verify);

	for (unsigned int i = 0; i < threads; i++)
		if (l->lane[i].bad)
			return -1;
	return seconds;
}

/* Bytes a second that `threads` threads read together, each from its own copy. */
double limit_read(struct limit *l, unsigned int threads)
{
	double seconds = together(l, threads, read_all);

	return (double)l->len * threads / seconds;
}
