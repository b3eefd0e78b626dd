/* SPDX-License-Identifier: Apache-2.0 */
/* Did plaintext leave the host where nobody looks for it? Every byte that is not TCP payload of a listed connection is
 * searched for windows of the payload. */
#include <stdlib.h>

#include "core.h"

enum { NEEDLE = 16, DISTINCT = 6, STEP_UNIT = 1 << 24, NUMBER_BITS = 21, AHEAD_OF = 16 };

/* A slot of the table: number of the needle + 1, and above it what is left of the hash. */
static uint32_t tag_of(uint64_t h)
{
	return (uint32_t)h << NUMBER_BITS;
}

static uint64_t hash(const uint8_t *at, uint64_t seed)
{
	return mix64((raw64(at) ^ seed) * 0xff51afd7ed558ccdu + raw64(at + 8));
}

/* Two bits of one word: a window that is no needle is thrown out here with one look at memory. */
static uint64_t *filter_of(const struct canary *c, uint64_t h, uint64_t *bits)
{
	*bits = 1ull << (h >> 58) | 1ull << (h >> 52 & 63);
	return &c->filter[h >> 11 & c->filter_mask];
}

/* The slot that holds this window, or the empty one where it would be. */
static uint32_t *slot_of(const struct canary *c, uint64_t h, const uint8_t *at)
{
	uint32_t number_mask = (1u << NUMBER_BITS) - 1;

	for (uint64_t i = h >> 31;; i++) {
		uint32_t *slot = &c->table[i & c->table_mask];

		if (!*slot)
			return slot;
		if ((*slot ^ tag_of(h)) >> NUMBER_BITS == 0 &&
		    memcmp(c->payload + ((*slot & number_mask) - 1) * c->step, at, NEEDLE) == 0)
			return slot;
	}
}

static void add(struct canary *c, uint32_t number, uint64_t h)
{
	uint32_t *slot = slot_of(c, h, c->payload + number * c->step);
	uint64_t bits, *word = filter_of(c, h, &bits);

	if (!*slot)
		*slot = tag_of(h) | (number + 1);
	*word |= bits;
}

static uint32_t power_above(uint64_t n)
{
	uint32_t p = 64;

	while (p < n)
		p *= 2;
	return p;
}

/* Collect the needles: at most 2^20, at offsets that are multiples of `step`. */
void canary_build(struct wire *w)
{
	struct canary *c = &w->canary;
	const struct bytes *payload = &w->q->payload;
	uint64_t count, h[AHEAD_OF];

	if (!payload->given || payload->len < NEEDLE || !w->use_payload)
		return;
	c->payload = payload->at;
	c->step = NEEDLE * ((payload->len + STEP_UNIT - 1) / STEP_UNIT);
	count = (payload->len - NEEDLE) / c->step + 1;
	c->filter_mask = power_above(count / 4) - 1;
	c->table_mask = power_above(count * 2) - 1;
	c->filter = grab((c->filter_mask + 1) * sizeof(*c->filter));
	c->table = grab((c->table_mask + 1) * sizeof(*c->table));
	for (uint64_t i = 0; i < count + AHEAD_OF; i++) {
		if (i >= AHEAD_OF)
			add(c, (uint32_t)(i - AHEAD_OF), h[i % AHEAD_OF]);
		if (i >= count)
			continue;
		h[i % AHEAD_OF] = hash(c->payload + i * c->step, w->seed);
		if (i % 4096 == 0)
			pages_drop(w, PAGES_CANARY, c->payload, c->payload + i * c->step);
		__builtin_prefetch(&c->table[h[i % AHEAD_OF] >> 31 & c->table_mask]);
		__builtin_prefetch(&c->filter[h[i % AHEAD_OF] >> 11 & c->filter_mask]);
	}
}

static bool distinct(const uint8_t *at)
{
	uint64_t seen[4] = { 0 };
	int n = 0;

	for (int i = 0; i < NEEDLE; i++) {
		n += !(seen[at[i] >> 6] >> (at[i] & 63) & 1);
		seen[at[i] >> 6] |= 1ull << (at[i] & 63);
	}
	return n >= DISTINCT;
}

/* Search bytes [from, to) of a frame; true and *l for the first needle. */
static bool search(const struct wire *w, const struct frame *f, uint32_t from, uint32_t to, struct leak *l)
{
	const struct canary *c = &w->canary;

	for (uint32_t i = from; i + NEEDLE <= to; i++) {
		uint64_t h = hash(f->at + i, w->seed), bits, *word = filter_of(c, h, &bits);
		uint32_t slot;

		if ((*word & bits) != bits)
			continue;
		slot = *slot_of(c, h, f->at + i);
		if (!slot || !distinct(f->at + i))
			continue;
		*l = (struct leak){ .frame = f->number, .at = i, .frames = 1,
				    .payload = ((slot & ((1u << NUMBER_BITS) - 1)) - 1) * c->step };
		return true;
	}
	return false;
}

static void note(struct leak *all, const struct leak *one, bool count)
{
	if (!all->frame || one->frame < all->frame || (one->frame == all->frame && one->at < all->at)) {
		all->frame = one->frame;
		all->at = one->at;
		all->payload = one->payload;
	}
	all->frames += count;
}

/* Search a frame; s and c are NULL where it is not of a connection. What is found in the payload of a connection that
 * may still turn out to be TLS is kept with it. */
void canary_frame(struct wire *w, const struct frame *f, const struct segment *s, struct conn *c)
{
	struct leak l;
	bool outside;

	if (!w->canary.table)
		return;
	if (!c) {
		if (search(w, f, 0, f->cap, &l))
			note(&w->leak, &l, true);
		return;
	}
	outside = search(w, f, 0, s->at, &l) || search(w, f, s->at + s->cap, f->cap, &l);
	if (outside)
		note(&w->leak, &l, true);
	if (!c->listed && s->cap && search(w, f, s->at, s->at + s->cap, &l))
		note(&c->leak, &l, !outside);
}

/* Was it no TLS after all? Then what was found in its payload counts. */
void canary_unlisted(struct wire *w, const struct conn *c)
{
	if (!c->leak.frame)
		return;
	note(&w->leak, &c->leak, false);
	w->leak.frames += c->leak.frames;
}

void canary_free(struct canary *c)
{
	free(c->filter);
	free(c->table);
	*c = (struct canary){ 0 };
}
