/* SPDX-License-Identifier: Apache-2.0 */
/* Did plaintext leave the host where nobody looks for it? What is not compared is searched for windows of the payload:
 * other frames, other streams, headers, trailers, records in plaintext. The bytes are collected first: while they are few, only those windows
 * of the payload are worth keeping that may be among them. */
#include <stdlib.h>

#include "core.h"

enum { SPARSE = 1 << 18 /* windows: few of the payload's are in a sieve for this many by chance */ };
enum { MARGIN = NEEDLE - 1 /* bytes of a payload that a neighboring needle may be in */ };

static void note(struct leak *all, const struct leak *one, bool count)
{
	if (!all->frame || one->frame < all->frame || (one->frame == all->frame && one->at < all->at)) {
		all->frame = one->frame;
		all->at = one->at;
		all->payload = one->payload;
		all->of = one->of;
	}
	all->frames += count;
}

/* l->at is where in the part. */
static bool search(const struct wire *w, const struct part *p, const uint8_t *at, struct leak *l)
{
	l->frame = p->frame;
	for (l->at = 0; l->at + NEEDLE <= p->len; l->at++)
		for (l->of = PAYLOAD; l->of < SOURCES; l->of++)
			if (needles_find(&w->needles[l->of], at + l->at, &l->payload))
				return true;
	return false;
}

/* Payload in a record that is not protected is a difference of it. */
static void note_clear(struct wire *w, const struct part *p, const struct leak *l)
{
	struct diff f = { .record = p->frame, .seq = p->frame, .off = p->off, .payload = l->payload, .kind = DIFF_CLEAR,
			  .type = l->of, .len = l->at > p->at ? l->at - p->at : 0 };

	differs(w, p->dir, &f);
}

static void add_window(struct wanted *s, const uint8_t *at)
{
	sieve_add(&s->sieve, at);
	gate_add(&s->gate, at);
}

/* Which windows are there to be looked for? */
static void collect(const struct wire *w, struct wanted *s)
{
	const struct canary *c = &w->canary;
	const uint8_t *at = c->bytes;

	s->gate = (struct gate){ 0 };
	sieve_init(&s->sieve, c->len < SPARSE / 64 ? c->len * 64 : c->len < SPARSE ? SPARSE : c->len, w->seed);
	for (uint32_t i = 0; i < c->parts; at += c->part[i++].len)
		for (uint32_t k = 0; k + NEEDLE <= c->part[i].len; k++)
			add_window(s, at + k);
}

static void prepare(struct wire *w, bool these_are_all)
{
	struct canary *c = &w->canary;

	if (c->ready)
		return;
	c->ready = true;
	if (these_are_all && c->len != c->frozen) {
		w->needles[PAYLOAD].seen = w->needles[REPLY].seen = 0; /* what was seen was not held against all */
		free(c->wanted.sieve.bits);
		collect(w, &c->wanted);
	}
	for (int of = PAYLOAD; of < SOURCES; of++)
		needles_build(w, (enum source)of, these_are_all ? &c->wanted.sieve : NULL);
}

/* While this record's payload is in the cache, it is looked through for the windows that are known by now. If no more
 * come, nobody must go through the payload for them. */
void canary_job(struct wire *w, struct job *j)
{
	struct needles *n = &w->needles[j->dir->side == CLIENT ? PAYLOAD : REPLY];
	struct canary *c = &w->canary;

	if (!c->on || c->ready || !n->count)
		return;
	if (!c->wanted.sieve.bits) {
		collect(w, &c->wanted);
		c->frozen = c->len;
	}
	if (c->len != c->frozen)
		return;
	j->needles = n;
	j->wanted = &c->wanted;
}

/* Is it known by now that this part does not count? */
static bool moot(const struct part *p)
{
	return p->conn && (p->conn->listed ? !p->listed : p->listed && p->conn->hopeless);
}

/* Search what was collected. A frame counts once, also if plaintext is in two parts of it. What is found in a frame of a
 * connection that may still turn out to be TLS is kept with it. */
static void flush(struct wire *w, bool last)
{
	struct canary *c = &w->canary;
	const uint8_t *at = c->bytes;
	uint64_t counted[3] = { 0 };

	prepare(w, last);
	for (uint32_t i = 0; i < c->parts; at += c->part[i++].len) {
		const struct part *p = &c->part[i];
		int kind = !p->conn ? 2 : p->listed;
		struct leak l;

		if (moot(p) || !search(w, p, at, &l))
			continue;
		if (p->dir) {
			note_clear(w, p, &l);
			continue;
		}
		l.at += p->at;
		note(p->conn ? &p->conn->leak[kind] : &w->leak, &l, counted[kind] != p->frame);
		counted[kind] = p->frame;
	}
	c->parts = 0;
	c->len = 0;
}

/* Room for one more part and its bytes. */
static uint8_t *enter(struct canary *c, const struct part *p)
{
	if (c->parts == c->part_room) {
		c->part_room = c->part_room ? c->part_room * 2 : 16;
		c->part = regrab(c->part, c->part_room * sizeof(*c->part));
	}
	if (c->room - c->len < p->len) {
		c->room = (c->room + p->len) * 2;
		c->bytes = regrab(c->bytes, c->room);
	}
	c->part[c->parts++] = *p;
	c->len += p->len;
	return c->bytes + c->len - p->len;
}

/* Part of a frame; `conn`, if it counts only if that is (not) listed. */
static void add(struct canary *c, const struct frame *f, uint32_t from, uint32_t to, struct conn *conn, bool listed)
{
	struct part p = { .conn = conn, .frame = f->number, .at = from, .len = to - from, .listed = listed };

	if (p.len >= NEEDLE)
		memcpy(enter(c, &p), f->at + from, p.len);
}

static bool all_zero(const uint8_t *at, const uint8_t *end)
{
	while (at < end && !*at)
		at++;
	return at == end;
}

/* May its payload begin in a record that is not protected? A needle may then begin in any header before it. */
bool canary_early(const struct segment *s, const struct dir *d)
{
	return s->cap && (uint32_t)(s->seq + !!(s->flags & TCP_SYN) - d->base) < EARLY;
}

/* A frame of a listed connection: what is around a payload that is compared, or all of it. */
static void around(struct canary *c, const struct frame *f, const struct segment *s, const struct dir *d, bool laid)
{
	struct conn *conn = d->conn->listed ? NULL : d->conn;
	uint32_t behind = s->at + s->cap;

	if (!laid) {
		add(c, f, 0, f->cap, conn, true);
		return;
	}
	if (!s->plain || canary_early(s, d))
		add(c, f, s->plain ? s->at - MARGIN : 0, s->at + (uint32_t)smaller(MARGIN, s->cap), conn, true);
	if (!all_zero(f->at + behind, f->at + f->cap))
		add(c, f, behind > MARGIN ? behind - MARGIN : 0, f->cap, conn, true);
}

/* A frame that is not compared with anything: all of it is searched. */
void canary_frame(struct wire *w, const struct frame *f)
{
	if (!w->canary.on)
		return;
	add(&w->canary, f, 0, f->cap, NULL, false);
	if (w->canary.len > FLUSH_AT)
		flush(w, false);
}

/* A segment; `laid`: its payload has a place in the stream. */
void canary_segment(struct wire *w, const struct frame *f, const struct segment *s, const struct dir *d, bool laid)
{
	struct conn *conn = d ? d->conn : NULL;
	struct canary *c = &w->canary;

	if (!c->on)
		return;
	if (conn && conn->listed) {
		around(c, f, s, d, laid);
	} else if (!conn || conn->hopeless) {
		add(c, f, 0, f->cap, NULL, false);
	} else {
		add(c, f, 0, f->cap, conn, false);
		around(c, f, s, d, laid);
	}
	if (c->len > FLUSH_AT)
		flush(w, false);
}

/* The body of a record that is not protected, from stream offset `off` on. */
void canary_record(struct wire *w, struct dir *d, const struct record *r, uint64_t off, bool handshake)
{
	struct part p = { .dir = d, .frame = r->number, .off = r->off, .at = handshake ? d->carry : 0 };
	struct canary *c = &w->canary;
	uint8_t *to;

	if (!c->on || !r->len)
		return;
	p.len = p.at + r->len;
	to = enter(c, &p);
	memcpy(to, d->carried, p.at);
	if (stream_copy(d, off, to + p.at, r->len) < r->len)
		problem(&d->problems, OLD_RETRANSMISSION, off);
	if (handshake) {
		d->carry = (uint8_t)smaller(MARGIN, p.len);
		memcpy(d->carried, to + p.len - d->carry, d->carry);
	}
	if (p.len < NEEDLE) {
		c->parts--;
		c->len -= p.len;
	}
	if (c->len > FLUSH_AT)
		flush(w, false);
}

/* Search the records that were read before it was known that they may be. */
void canary_so_far(struct wire *w, struct dir *d)
{
	struct record r = { .number = 0 };

	for (; r.off < d->pos; r.off += HEAD + r.len, r.number++) {
		if (stream_copy(d, r.off, r.head, HEAD) < HEAD) {
			problem(&d->problems, OLD_RETRANSMISSION, r.off);
			return;
		}
		r.len = be16(r.head + 3);
		canary_record(w, d, &r, r.off + HEAD, r.head[0] == HANDSHAKE);
	}
}

/* Search the rest, and count what was found in connections of which it is known only now whether they are TLS. */
void canary_finish(struct wire *w)
{
	if (w->canary.parts)
		flush(w, true);
	for (uint32_t i = 0; i < w->conn_count; i++) {
		const struct leak *l = &w->conns[i]->leak[w->conns[i]->listed];

		if (!l->frame)
			continue;
		note(&w->leak, l, false);
		w->leak.frames += l->frames;
	}
}

void canary_free(struct canary *c)
{
	free(c->part);
	free(c->bytes);
	free(c->wanted.sieve.bits);
	*c = (struct canary){ 0 };
}
