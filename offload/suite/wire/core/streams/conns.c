/* SPDX-License-Identifier: Apache-2.0 */
/* To which connection and direction does a segment belong? A pair of endpoints may have several, one after another. */
#include <stdlib.h>

#include <openssl/crypto.h>

#include "core.h"

/* The two endpoints in one order, whoever sends; true if the sender is a. */
static bool pair_of(const struct segment *s, struct pair *p)
{
	int order = memcmp(s->src, s->dst, s->alen);
	bool sender_is_a = order < 0 || (order == 0 && s->sport <= s->dport);

	*p = (struct pair){ .alen = s->alen };
	memcpy(p->a, sender_is_a ? s->src : s->dst, s->alen);
	memcpy(p->b, sender_is_a ? s->dst : s->src, s->alen);
	p->aport = sender_is_a ? s->sport : s->dport;
	p->bport = sender_is_a ? s->dport : s->sport;
	return sender_is_a;
}

static uint64_t hash(const struct wire *w, const struct pair *p)
{
	uint64_t h = w->seed;

	for (size_t i = 0; i < sizeof(*p); i += 8)
		h = mix64(h ^ raw64((const uint8_t *)p + i));
	return h;
}

static uint32_t *slot_of(const struct wire *w, const struct pair *p)
{
	uint64_t i = hash(w, p);

	for (;; i++) {
		uint32_t *slot = &w->index[i & w->index_mask];

		if (!*slot || memcmp(&w->conns[*slot - 1]->pair, p, sizeof(*p)) == 0)
			return slot;
	}
}

/* An older connection of a pair leaves the index to its successor. */
static void grow(struct wire *w)
{
	w->conn_room = w->conn_room ? w->conn_room * 2 : 8;
	w->conns = regrab(w->conns, w->conn_room * sizeof(struct conn *));
	free(w->index);
	w->index_mask = w->conn_room * 2 - 1;
	w->index = grab(w->conn_room * 2 * sizeof(*w->index));
	for (uint32_t i = 0; i < w->conn_count; i++)
		*slot_of(w, &w->conns[i]->pair) = i + 1;
}

static struct conn *open_conn(struct wire *w, const struct pair *p, bool client_is_a, uint64_t frame)
{
	struct conn *c;

	if (w->conn_count == CONNECTIONS_MAX) {
		problem(&w->problems, TOO_MANY_CONNECTIONS, frame);
		return NULL;
	}
	if (w->conn_count == w->conn_room)
		grow(w);
	c = w->latest = grab(sizeof(*c));
	c->pair = *p;
	c->client_is_a = client_is_a;
	c->first_frame = frame;
	c->dir[CLIENT] = (struct dir){ .conn = c, .side = CLIENT };
	c->dir[SERVER] = (struct dir){ .conn = c, .side = SERVER };
	w->conns[w->conn_count++] = c;
	*slot_of(w, p) = w->conn_count;
	return c;
}

/* Somebody who talks to himself is both client and server. */
static bool is_loop(const struct pair *p)
{
	return p->aport == p->bport && memcmp(p->a, p->b, sizeof(p->a)) == 0;
}

/* A SYN opens a connection where it cannot be a repetition of the one that opened the present one. */
static bool opens(const struct conn *c, bool sender_is_a, uint32_t isn)
{
	return !c || is_loop(&c->pair) || sender_is_a != c->client_is_a || !c->isn_known || c->isn != isn;
}

/* A SYN that opens another connection while this one is still used by its ends. */
static void note_second(struct conn *c, bool sender_is_a, uint64_t frame)
{
	bool closed = c->dir[CLIENT].rst || c->dir[SERVER].rst || (c->dir[CLIENT].fin && c->dir[SERVER].fin);

	if (c->has_payload && !closed)
		problem(&c->dir[sender_is_a == c->client_is_a ? CLIENT : SERVER].problems, SECOND_SYN, frame);
}

/* The newest connection of a pair: most segments are of that of the one before. */
static struct conn *newest(struct wire *w, const struct pair *p)
{
	uint32_t slot;

	if (w->latest && memcmp(&w->latest->pair, p, sizeof(*p)) == 0)
		return w->latest;
	slot = w->index ? *slot_of(w, p) : 0;
	if (slot)
		w->latest = w->conns[slot - 1];
	return slot ? w->latest : NULL;
}

/* Open a connection whose client began at this number. */
static struct conn *open_at(struct wire *w, const struct pair *p, bool client_is_a, uint32_t isn, uint64_t frame)
{
	struct conn *c = open_conn(w, p, client_is_a, frame);

	if (c) {
		c->isn_known = true;
		c->isn = isn;
	}
	return c;
}

static struct conn *conn_of(struct wire *w, const struct pair *p, bool sender_is_a, const struct segment *s,
			    uint64_t frame)
{
	struct conn *c = newest(w, p);

	if ((s->flags & (TCP_SYN | TCP_ACK)) == TCP_SYN) {
		if (!opens(c, sender_is_a, s->seq))
			return c;
		if (c)
			note_second(c, sender_is_a, frame);
		return open_at(w, p, sender_is_a, s->seq, frame);
	}
	if (c || (s->flags & (TCP_RST | TCP_SYN)) == TCP_RST)
		return c;
	if (s->flags & TCP_SYN) /* SYN+ACK names the SYN, which may be captured after it */
		return open_at(w, p, is_loop(p) ? sender_is_a : !sender_is_a, s->ack - 1, frame);
	return open_conn(w, p, sender_is_a, frame);
}

/* Is it of the port that was asked for? */
bool conns_selects(const struct wire *w, const struct segment *s)
{
	return !w->q->port || s->sport == w->q->port || s->dport == w->q->port;
}

/* The direction that this segment is of; NULL for a lone RST, or one connection too many. */
struct dir *conns_find(struct wire *w, const struct segment *s, uint64_t frame)
{
	struct pair p;
	struct conn *c;
	bool sender_is_a;

	sender_is_a = pair_of(s, &p);
	c = conn_of(w, &p, sender_is_a, s, frame);
	return c ? &c->dir[sender_is_a == c->client_is_a ? CLIENT : SERVER] : NULL;
}

static void dir_free(struct dir *d)
{
	ranges_free(d);
	ahead_free(&d->ahead);
	problems_free(&d->problems);
	epoch_drop(d->epoch);
	epoch_drop(d->first.epoch);
	if (d->secret)
		OPENSSL_cleanse(d->secret, SECRET_MAX);
	free(d->secret);
	free(d->message);
	free(d->resent);
	free(d->sizes);
}

void conns_free(struct wire *w)
{
	for (uint32_t i = 0; i < w->conn_count; i++) {
		dir_free(&w->conns[i]->dir[CLIENT]);
		dir_free(&w->conns[i]->dir[SERVER]);
		problems_free(&w->conns[i]->problems);
		free(w->conns[i]);
	}
	free(w->conns);
	free(w->index);
}
