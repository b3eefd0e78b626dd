/* SPDX-License-Identifier: Apache-2.0 */
/* Where in the capture is byte N of a stream? Segments are remembered as references; the oldest of all are forgotten
 * when there are too many. */
#include <stdlib.h>

#include "core.h"

enum { CHUNK_FIRST = 4, CHUNK_MAX = 4096 };

/* Is there a byte in this chunk that the record layer has not read yet? */
static bool still_needed(const struct dir *d, const struct chunk *c)
{
	return !d->ended &&
	       (c->slot > d->place.slot || (c->slot == d->place.slot && d->place.index < c->count));
}

/* The first difference of a direction is explained at the end: what surrounds it is kept. */
static bool pinned(const struct dir *d, uint32_t slot)
{
	uint64_t from = d->ranges.slots[slot].off;
	uint64_t to = slot + 1 < d->ranges.count ? d->ranges.slots[slot + 1].off : d->next;
	uint64_t off = d->first.off;

	return d->different && to + WINDOW > off && from < off + 3 * RECORD_MAX;
}

/* Forget the oldest chunk of all. A direction that still needed it can only end. */
static void forget_one(struct wire *w)
{
	struct chunk *c = w->oldest;
	struct dir *d = c->owner;
	bool keep;

	w->oldest = c->younger;
	if (!w->oldest)
		w->youngest = NULL;
	w->remembered -= c->count;
	pool_lock(w->pool);
	keep = pinned(d, c->slot);
	pool_unlock(w->pool);
	if (keep)
		return;
	if (still_needed(d, c)) {
		problem(&d->problems, OLD_RETRANSMISSION, d->pos);
		d->ended = d->lost = true;
	}
	d->ranges.slots[c->slot].chunk = NULL;
	free(c);
}

static struct chunk *new_chunk(struct wire *w, struct dir *d, uint64_t off)
{
	struct ranges *r = &d->ranges;
	uint32_t room = r->count < 10 ? CHUNK_FIRST << r->count : CHUNK_MAX;
	struct chunk *c = grab(sizeof(*c) + room * sizeof(struct range));

	if (r->count == r->room) {
		r->room = r->room ? r->room * 2 : 1;
		r->slots = regrab(r->slots, r->room * sizeof(*r->slots));
	}
	*c = (struct chunk){ .owner = d, .slot = r->count, .room = room };
	r->slots[r->count++] = (struct slot){ off, c };
	if (w->youngest)
		w->youngest->younger = c;
	else
		w->oldest = c;
	w->youngest = c;
	return c;
}

/* Remember that the stream goes on at `off` with the bytes at `at`. */
void ranges_append(struct wire *w, struct dir *d, uint64_t off, const uint8_t *at)
{
	struct ranges *r = &d->ranges;
	struct chunk *c = r->count ? r->slots[r->count - 1].chunk : NULL;

	if (!c || c->count == c->room) {
		while (w->remembered >= REMEMBERED_MAX && w->oldest)
			forget_one(w);
		c = new_chunk(w, d, off);
	}
	c->r[c->count++] = (struct range){ off, at };
	w->remembered++;
}

/* The place of the range that holds byte `off` (which must be in the stream); false if it is forgotten. */
bool ranges_find(const struct dir *d, uint64_t off, struct place *p)
{
	const struct ranges *r = &d->ranges;
	uint32_t low = 0, high = r->count;
	const struct chunk *c;

	while (high - low > 1) {
		uint32_t middle = low + (high - low) / 2;

		if (r->slots[middle].off <= off)
			low = middle;
		else
			high = middle;
	}
	c = r->count ? r->slots[low].chunk : NULL;
	if (!c)
		return false;
	p->slot = low;
	for (low = 0, high = c->count; high - low > 1;) {
		uint32_t middle = low + (high - low) / 2;

		if (c->r[middle].off <= off)
			low = middle;
		else
			high = middle;
	}
	p->index = low;
	return true;
}

/* A place behind the last range of a chunk is the first one of the next chunk, once there is one. */
static struct place settled(const struct dir *d, struct place p)
{
	const struct slot *s = d->ranges.slots;

	while (p.slot + 1 < d->ranges.count && (!s[p.slot].chunk || p.index >= s[p.slot].chunk->count))
		p = (struct place){ p.slot + 1, 0 };
	return p;
}

/* The bytes of the range at p from `off` on, and how many there are. */
const uint8_t *ranges_at(const struct dir *d, struct place p, uint64_t off, size_t *len)
{
	const struct chunk *c;
	uint64_t end = d->next;

	p = settled(d, p);
	c = d->ranges.slots[p.slot].chunk;
	if (p.index + 1 < c->count)
		end = c->r[p.index + 1].off;
	else if (p.slot + 1 < d->ranges.count)
		end = d->ranges.slots[p.slot + 1].off;
	*len = (size_t)(end - off);
	return c->r[p.index].at + (off - c->r[p.index].off);
}

void ranges_step(const struct dir *d, struct place *p)
{
	*p = settled(d, *p);
	p->index++;
}

void ranges_free(struct dir *d)
{
	for (uint32_t i = 0; i < d->ranges.count; i++)
		free(d->ranges.slots[i].chunk);
	free(d->ranges.slots);
}

/* Copy stream bytes from `off` on; how many there were (less than len at the end, or where they are forgotten). */
size_t stream_copy(const struct dir *d, uint64_t off, uint8_t *out, size_t len)
{
	size_t done = 0;
	struct place p;

	if (off < d->next)
		len = (size_t)(d->next - off < len ? d->next - off : len);
	else
		len = 0;
	while (done < len && ranges_find(d, off + done, &p)) {
		size_t n;
		const uint8_t *at = ranges_at(d, p, off + done, &n);

		n = smaller(n, len - done);
		memcpy(out + done, at, n);
		done += n;
	}
	return done;
}

/* Move (*off, *p) n bytes on; they must be in the stream. */
void stream_skip(const struct dir *d, uint64_t *off, struct place *p, size_t n)
{
	for (;;) {
		size_t here;

		ranges_at(d, *p, *off, &here);
		if (n < here) {
			*off += n;
			return;
		}
		*off += here;
		n -= here;
		ranges_step(d, p);
		if (!n)
			return;
	}
}

/* Copy bytes of the stream, all of which must be there. */
void stream_take(const struct dir *d, uint64_t off, struct place p, uint8_t *out, size_t len)
{
	while (len) {
		size_t n;
		const uint8_t *at = ranges_at(d, p, off, &n);

		n = smaller(n, len);
		memcpy(out, at, n);
		off += n, out += n, len -= n;
		ranges_step(d, &p);
	}
}
