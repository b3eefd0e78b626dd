/* SPDX-License-Identifier: Apache-2.0 */
/* Who checks the records? Batches go to worker threads by a bounded queue; when it is full, or without threads, the
 * reader checks one itself. */
#include <stdlib.h>

#include "core.h"

struct pool {
	pthread_mutex_t lock;
	pthread_cond_t work, idle;
	struct batch *first, *last, *spare, *filling;
	unsigned int queued, busy, threads;
	bool stop;
	pthread_t *thread;
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
	check_batch(p, o, b);
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
struct pool *pool_new(unsigned int threads)
{
	struct pool *p = grab(sizeof(*p));

	pthread_mutex_init(&p->lock, NULL);
	pthread_cond_init(&p->work, NULL);
	pthread_cond_init(&p->idle, NULL);
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
		check_batch(p, &w->opener, b);
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

/* Needles that somebody has to look through. */
void pool_span(struct wire *w, const struct span *s)
{
	struct pool *p = w->pool;

	pool_flush(w);
	if (!p->filling)
		p->filling = grab(sizeof(*p->filling));
	p->filling->span = *s;
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

static void add_pieces(struct batch *b, const struct dir *d, size_t skip, size_t len)
{
	struct place p = d->place;
	uint64_t off = d->pos;

	record_skip(d, &off, &p, skip);
	while (len) {
		size_t n;
		const uint8_t *at = ranges_at(d, p, off, &n);

		n = smaller(n, len);
		if (b->pieces == b->piece_room) {
			b->piece_room = b->piece_room ? b->piece_room * 2 : 32;
			b->piece = regrab(b->piece, b->piece_room * sizeof(*b->piece));
		}
		b->piece[b->pieces++] = (struct piece){ at, (uint32_t)n };
		off += n, len -= n;
		ranges_step(d, &p);
	}
}

/* A job for the record at d->pos: its bytes from `skip` on. */
struct job *pool_job(struct wire *w, const struct dir *d, size_t skip, size_t len)
{
	struct pool *p = w->pool;
	struct batch *b = p->filling;
	struct job *j;

	if (b && (b->jobs == BATCH_JOBS || b->pieces >= BATCH_PIECES)) {
		pool_flush(w);
		b = p->filling;
	}
	if (!b)
		b = p->filling = grab(sizeof(*b));
	j = &b->job[b->jobs++];
	*j = (struct job){ .dir = (struct dir *)d, .piece = b->pieces };
	add_pieces(b, d, skip, len);
	j->pieces = b->pieces - j->piece;
	return j;
}
