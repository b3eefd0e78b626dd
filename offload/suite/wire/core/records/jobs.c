/* SPDX-License-Identifier: Apache-2.0 */
/* What must be checked of a record, and where are its bytes? The reader puts it into a batch. */
#include "core.h"

static void add_pieces(struct batch *b, const struct dir *d, size_t skip, size_t len)
{
	struct place p = d->place;
	uint64_t off = d->pos;

	stream_skip(d, &off, &p, skip);
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
struct job *job_new(struct wire *w, const struct dir *d, size_t skip, size_t len)
{
	struct batch *b = pool_filling(w->pool);
	struct job *j;

	if (b->jobs == BATCH_JOBS || b->pieces >= BATCH_PIECES) {
		pool_flush(w);
		b = pool_filling(w->pool);
	}
	j = &b->job[b->jobs++];
	*j = (struct job){ .dir = (struct dir *)d, .piece = b->pieces };
	add_pieces(b, d, skip, len);
	j->pieces = b->pieces - j->piece;
	return j;
}
