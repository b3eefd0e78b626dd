/* SPDX-License-Identifier: Apache-2.0 */
/* Which thread checks a batch? Batches go to workers by a bounded queue; when it is full, or without threads, the reader
 * checks one itself. How they are checked, the pool is given. */
#include <stdlib.h>

#include "core.h"

struct pool {
	pthread_mutex_t lock;
	pthread_cond_t work, idle;
	struct batch *first, *last, *spare, *filling;
	unsigned int queued, busy, threads;
	bool stop;
	pthread_t *thread;
	checker *check;
};

void pool_lock(struct pool *p)
{
	pthread_mutex_lock(&p->lock);
}

void pool_unlock(struct pool *p)
{
	pthread_mutex_unlock(&p->lock);
}

static struct batch *pop(struct pool *p)
{
	struct batch *b = p->first;

	p->first = b->next;
	p->queued--;
	p->busy++;
	return b;
}

/* The lock is held, but not while the batch is checked. */
static void check_one(struct pool *p, struct opener *o)
{
	struct batch *b = pop(p);

	pool_unlock(p);
	p->check(p, o, b);
	pool_lock(p);
	b->next = p->spare;
	p->spare = b;
	if (!--p->busy && !p->queued)
		pthread_cond_signal(&p->idle);
}

static void *worker(void *arg)
{
	struct pool *p = arg;
	struct opener o = { .scratch = NULL };

	pool_lock(p);
	while (!p->stop) {
		if (p->queued)
			check_one(p, &o);
		else
			pthread_cond_wait(&p->work, &p->lock);
	}
	pool_unlock(p);
	opener_free(&o);
	return NULL;
}

/* `threads` counts the caller's own. A thread that cannot be had is done without. */
struct pool *pool_new(unsigned int threads, checker *check)
{
	struct pool *p = grab(sizeof(*p));

	pthread_mutex_init(&p->lock, NULL);
	pthread_cond_init(&p->work, NULL);
	pthread_cond_init(&p->idle, NULL);
	p->check = check;
	p->thread = grab(threads * sizeof(*p->thread));
	while (p->threads + 1 < threads && pthread_create(&p->thread[p->threads], NULL, worker, p) == 0)
		p->threads++;
	return p;
}

static void batch_free(struct batch *b)
{
	struct batch *next;

	for (; b; b = next) {
		next = b->next;
		for (uint32_t i = 0; i < b->jobs; i++)
			epoch_drop(b->job[i].diff.epoch);
		free(b->piece);
		free(b);
	}
}

void pool_free(struct pool *p)
{
	pool_lock(p);
	p->stop = true;
	pthread_cond_broadcast(&p->work);
	pool_unlock(p);
	for (unsigned int i = 0; i < p->threads; i++)
		pthread_join(p->thread[i], NULL);
	batch_free(p->first);
	batch_free(p->spare);
	batch_free(p->filling);
	pthread_mutex_destroy(&p->lock);
	pthread_cond_destroy(&p->work);
	pthread_cond_destroy(&p->idle);
	free(p->thread);
	free(p);
}

/* Hand the batch over, or check it here if nobody waits for more. */
void pool_flush(struct wire *w)
{
	struct pool *p = w->pool;
	struct batch *b = p->filling;

	if (!b || (!b->jobs && !b->span.needles))
		return;
	pool_lock(p);
	if (p->queued >= 4 * p->threads) {
		pool_unlock(p);
		p->check(p, &w->opener, b);
		return;
	}
	b->next = NULL;
	if (p->first)
		p->last->next = b;
	else
		p->first = b;
	p->last = b;
	p->queued++;
	p->filling = p->spare;
	if (p->spare) {
		p->spare = p->spare->next;
		p->filling->next = NULL;
	}
	pthread_cond_signal(&p->work);
	pool_unlock(p);
}

/* The batch that the reader fills at present. */
struct batch *pool_filling(struct pool *p)
{
	if (!p->filling)
		p->filling = grab(sizeof(*p->filling));
	return p->filling;
}

/* Needles that a thread must look through. */
void pool_span(struct wire *w, const struct span *s)
{
	pool_flush(w);
	pool_filling(w->pool)->span = *s;
	pool_flush(w);
}

/* Check what is left, together with the workers. */
void pool_wait(struct wire *w)
{
	struct pool *p = w->pool;

	pool_flush(w);
	pool_lock(p);
	while (p->queued)
		check_one(p, &w->opener);
	while (p->busy)
		pthread_cond_wait(&p->idle, &p->lock);
	pool_unlock(p);
}
