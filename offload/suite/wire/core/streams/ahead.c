/* SPDX-License-Identifier: Apache-2.0 */
/* What was captured beyond a hole in the stream: ranges that do not overlap, sorted, in blocks, so that nobody can make
 * an insertion cost more than a few thousand bytes of moving. */
#include <stdlib.h>

#include "core.h"

enum { BLOCK_FIRST = 4, BLOCK_MAX = 128 };

struct block {
	uint32_t count, room;
	struct held h[];
};

static uint64_t end_of(const struct held *h)
{
	return h->off + h->len;
}

/* The first block whose last range ends beyond off; a->count if there is none. */
static uint32_t block_after(const struct ahead *a, uint64_t off)
{
	uint32_t low = 0, high = a->count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		const struct block *b = a->blocks[middle];

		if (end_of(&b->h[b->count - 1]) > off)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

static uint32_t range_after(const struct block *b, uint64_t off)
{
	uint32_t low = 0, high = b->count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (end_of(&b->h[middle]) > off)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

/* The first range that ends beyond off, or NULL. */
const struct held *ahead_after(const struct ahead *a, uint64_t off)
{
	uint32_t i = block_after(a, off);

	return i < a->count ? &a->blocks[i]->h[range_after(a->blocks[i], off)] : NULL;
}

static void insert_block(struct ahead *a, uint32_t at, uint32_t room)
{
	struct block *b = grab(sizeof(*b) + room * sizeof(struct held));

	if (a->count == a->room) {
		a->room = a->room ? a->room * 2 : 1;
		a->blocks = regrab(a->blocks, a->room * sizeof(*a->blocks));
	}
	memmove(a->blocks + at + 1, a->blocks + at, (a->count - at) * sizeof(*a->blocks));
	b->room = room;
	a->blocks[at] = b;
	a->count++;
}

/* Make room in block i: bigger, or its upper half goes to a new one. */
static void widen(struct ahead *a, uint32_t i)
{
	struct block *b = a->blocks[i], *upper;

	if (b->room < BLOCK_MAX) {
		b->room *= 2;
		a->blocks[i] = regrab(b, sizeof(*b) + b->room * sizeof(struct held));
		return;
	}
	insert_block(a, i + 1, BLOCK_MAX);
	upper = a->blocks[i + 1];
	upper->count = BLOCK_MAX / 2;
	b->count -= upper->count;
	memcpy(upper->h, b->h + b->count, upper->count * sizeof(struct held));
}

/* Add a range that overlaps none. */
void ahead_insert(struct ahead *a, const struct held *h)
{
	struct block *b;
	uint32_t i, at;

	if (!a->count)
		insert_block(a, 0, BLOCK_FIRST);
	for (;; widen(a, i)) {
		i = a->blocks[0]->count ? block_after(a, h->off) : 0;
		i -= i == a->count;
		b = a->blocks[i];
		if (b->count < b->room)
			break;
	}
	at = range_after(b, h->off);
	memmove(b->h + at + 1, b->h + at, (b->count - at) * sizeof(*h));
	b->h[at] = *h;
	b->count++;
	a->ranges++;
}

/* Take out the first range if it begins at off. */
bool ahead_pop(struct ahead *a, uint64_t off, struct held *h)
{
	struct block *b = a->count ? a->blocks[0] : NULL;

	if (!b || b->h[0].off != off)
		return false;
	*h = b->h[0];
	memmove(b->h, b->h + 1, --b->count * sizeof(*h));
	if (!b->count) {
		free(b);
		memmove(a->blocks, a->blocks + 1, --a->count * sizeof(*a->blocks));
	}
	a->ranges--;
	return true;
}

void ahead_free(struct ahead *a)
{
	for (uint32_t i = 0; i < a->count; i++)
		free(a->blocks[i]);
	free(a->blocks);
	*a = (struct ahead){ 0 };
}
