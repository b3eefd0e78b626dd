/* SPDX-License-Identifier: Apache-2.0 */
/* Between which addresses was there something that may be TCP and cannot be read? A fragment, a bad header, a cut one. */
#include <stdlib.h>

#include "core.h"

/* Both addresses in one order, whoever sends. */
static struct stranger pair_of(const uint8_t *one, const uint8_t *other, uint8_t len)
{
	bool sorted = memcmp(one, other, len) <= 0;
	struct stranger s = { .alen = len };

	memcpy(s.a, sorted ? one : other, len);
	memcpy(s.b, sorted ? other : one, len);
	return s;
}

static bool same(const struct stranger *one, const struct stranger *other)
{
	return one->alen == other->alen && memcmp(one->a, other->a, 16) == 0 && memcmp(one->b, other->b, 16) == 0;
}

/* The slot that holds this pair, or the empty one where it would be. */
static uint32_t *slot_of(const struct wire *w, const struct stranger *s)
{
	const struct unread *u = &w->unread;
	uint64_t h = w->seed;

	for (int i = 0; i < 16; i += 8)
		h = mix64(mix64(h ^ raw64(s->a + i)) ^ raw64(s->b + i));
	for (;; h++) {
		uint32_t *slot = &u->index[h & u->mask];

		if (!*slot || same(&u->who[*slot - 1], s))
			return slot;
	}
}

static void grow(struct wire *w)
{
	struct unread *u = &w->unread;

	u->room = u->room ? u->room * 2 : 8;
	u->who = regrab(u->who, u->room * sizeof(*u->who));
	free(u->index);
	u->mask = u->room * 2 - 1;
	u->index = grab(u->room * 2 * sizeof(*u->index));
	for (uint32_t i = 0; i < u->count; i++)
		*slot_of(w, &u->who[i]) = i + 1;
}

/* A frame that is no segment: remember the first one of each pair. */
void unread_frame(struct wire *w, const struct frame *f)
{
	struct unread *u = &w->unread;
	struct stranger who;
	struct segment s;

	if (!net_may_be_tcp(f, &s))
		return;
	who = pair_of(s.src, s.dst, s.alen);
	who.frame = f->number;
	if (u->count && *slot_of(w, &who))
		return;
	if (u->count == CONNECTIONS_MAX) {
		problem(&w->problems, TOO_MANY_CONNECTIONS, f->number);
		return;
	}
	if (u->count == u->room)
		grow(w);
	u->who[u->count++] = who;
	*slot_of(w, &who) = u->count;
}

/* Which of them were between the ends of a listed connection? */
void unread_finish(struct wire *w)
{
	for (uint32_t i = 0; i < w->conn_count && w->unread.count; i++) {
		const struct conn *c = w->conns[i];
		struct stranger who = pair_of(c->pair.a, c->pair.b, (uint8_t)c->pair.alen);
		uint32_t slot = c->listed ? *slot_of(w, &who) : 0;

		if (slot)
			problem_lower(&w->problems, UNREAD_TCP, w->unread.who[slot - 1].frame);
	}
}

void unread_free(struct unread *u)
{
	free(u->who);
	free(u->index);
	*u = (struct unread){ 0 };
}
