/* SPDX-License-Identifier: Apache-2.0 */
/* Did plaintext leave the host where nobody looks for it? What is not compared is searched for windows of the payload:
 * other frames, other streams, Ethernet trailers. The bytes are collected first: while they are few, only those windows
 * of the payload are worth keeping that may be among them. */
#include <stdlib.h>

#include "core.h"

enum { FLUSH_AT = 1 << 20 };

static void note(struct leak *all, const struct leak *one, bool count)
{
	if (!all->frame || one->frame < all->frame || (one->frame == all->frame && one->at < all->at)) {
		all->frame = one->frame;
		all->at = one->at;
		all->payload = one->payload;
	}
	all->frames += count;
}

static bool search(const struct wire *w, const struct part *p, const uint8_t *at, struct leak *l)
{
	for (uint32_t i = 0; i + NEEDLE <= p->len; i++) {
		if (!needles_find(&w->needles, at + i, &l->payload))
			continue;
		l->frame = p->frame;
		l->at = p->at + i;
		return true;
	}
	return false;
}

/* Which windows are there to be looked for? */
static void collect(const struct wire *w, struct sieve *s)
{
	const struct canary *c = &w->canary;
	const uint8_t *at = c->bytes;

	sieve_init(s, c->len, w->seed);
	for (uint32_t i = 0; i < c->parts; at += c->part[i++].len)
		for (uint32_t k = 0; k + NEEDLE <= c->part[i].len; k++)
			sieve_add(s, at + k);
}

static void prepare(struct wire *w, bool these_are_all)
{
	struct sieve s = { .bits = NULL };

	if (w->needles.table)
		return;
	if (these_are_all)
		collect(w, &s);
	needles_build(w, these_are_all ? &s : NULL);
	free(s.bits);
}

/* Search what was collected. A frame counts once, also if plaintext is in two parts of it. What is found in the payload
 * of a connection that may still turn out to be TLS is kept with it. */
static void flush(struct wire *w, bool last)
{
	struct canary *c = &w->canary;
	const uint8_t *at = c->bytes;
	uint64_t counted = 0;

	prepare(w, last);
	for (uint32_t i = 0; i < c->parts; at += c->part[i++].len) {
		const struct part *p = &c->part[i];
		struct leak l;

		if ((p->conn && p->conn->listed) || !search(w, p, at, &l))
			continue;
		note(p->conn ? &p->conn->leak : &w->leak, &l, counted != p->frame);
		counted = p->frame;
	}
	c->parts = 0;
	c->len = 0;
}

static void add(struct canary *c, const struct frame *f, uint32_t from, uint32_t to, struct conn *conn)
{
	if (to - from < NEEDLE)
		return;
	if (c->parts == c->part_room) {
		c->part_room = c->part_room ? c->part_room * 2 : 16;
		c->part = regrab(c->part, c->part_room * sizeof(*c->part));
	}
	if (c->room - c->len < to - from) {
		c->room = (c->room + to - from) * 2;
		c->bytes = regrab(c->bytes, c->room);
	}
	c->part[c->parts++] = (struct part){ conn, f->number, from, to - from };
	memcpy(c->bytes + c->len, f->at + from, to - from);
	c->len += to - from;
}

/* A frame that is not compared with anything: all of it is searched. */
void canary_frame(struct wire *w, const struct frame *f)
{
	if (!w->canary.on)
		return;
	add(&w->canary, f, 0, f->cap, NULL);
	if (w->canary.len > FLUSH_AT)
		flush(w, false);
}

/* A segment: what lies behind its packet is searched, and its payload unless the connection is listed. */
void canary_segment(struct wire *w, const struct frame *f, const struct segment *s, struct conn *conn)
{
	struct canary *c = &w->canary;

	if (!c->on)
		return;
	if (!conn || !conn->listed)
		add(c, f, s->at, s->at + s->cap, conn);
	add(c, f, s->at + s->cap, f->cap, NULL);
	if (c->len > FLUSH_AT)
		flush(w, false);
}

/* Search the rest, and count what was found in the payload of connections that are not TLS after all. */
void canary_finish(struct wire *w)
{
	if (w->canary.parts)
		flush(w, true);
	for (uint32_t i = 0; i < w->conn_count; i++) {
		const struct leak *l = &w->conns[i]->leak;

		if (w->conns[i]->listed || !l->frame)
			continue;
		note(&w->leak, l, false);
		w->leak.frames += l->frames;
	}
}

void canary_free(struct canary *c)
{
	free(c->part);
	free(c->bytes);
	*c = (struct canary){ 0 };
}
