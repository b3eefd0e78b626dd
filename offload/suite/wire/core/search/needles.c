/* SPDX-License-Identifier: Apache-2.0 */
/* Is this window of 16 bytes in the payload? Windows at multiples of a step, at most 2^20 of them, in a table. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/mman.h>

#include "core.h"

enum { DISTINCT = 6, STEP_UNIT = 1 << 24, NUMBER_BITS = 21, IN_FLIGHT = 32, GROUP = 8, SPAN = 2 << 20, HUGE = 2 << 20 };

/* A slot of the table: number of the needle + 1, and above it what is left of the hash. */
static uint32_t tag_of(uint64_t h)
{
	return (uint32_t)h << NUMBER_BITS;
}

static uint64_t hash(const uint8_t *at, uint64_t seed)
{
	return mix64((raw64(at) ^ seed) * 0xff51afd7ed558ccdu + raw64(at + 8));
}

/* The least n with 2^n >= value. */
static unsigned int log_above(uint64_t value)
{
	unsigned int n = 6;

	while (1ull << n < value)
		n++;
	return n;
}

/* Zeroed memory on big pages, if the system has them: the places that are looked at are far apart. */
static void *big(size_t size)
{
	void *p = NULL;

	if (size < HUGE || posix_memalign(&p, HUGE, size))
		return grab(size);
	madvise(p, size, MADV_HUGEPAGE);
	return memset(p, 0, size);
}

/* A set of windows by their first halves only: one bit each, an eighth of the bits set. */
void sieve_init(struct sieve *s, uint64_t windows, uint64_t seed)
{
	unsigned int bits = log_above(windows);

	s->shift = 64 - bits - 3;
	s->seed = seed;
	s->bits = big(1u << bits);
}

void sieve_add(struct sieve *s, const uint8_t *at)
{
	uint64_t bit = (raw64(at) ^ s->seed) * 0x9e3779b97f4a7c15u >> s->shift;

	s->bits[bit >> 3] |= (uint8_t)(1u << (bit & 7));
}

/* False: certainly not in the set. */
static bool sieve_has(const struct sieve *s, const uint8_t *at)
{
	uint64_t bit = (raw64(at) ^ s->seed) * 0x9e3779b97f4a7c15u >> s->shift;

	return s->bits[bit >> 3] >> (bit & 7) & 1;
}

static void add_half(uint64_t word[GATE_WORDS], uint64_t half)
{
	word[half % GATE_WORDS] |= 1ull << (half >> 32 & 63);
}

void gate_add(struct gate *g, const uint8_t *at)
{
	add_half(g->first, raw64(at));
	add_half(g->second, raw64(at + 8));
}

/* Its lowest bit: may this half of a window be among those that were added? */
static inline uint64_t half_bit(const uint64_t word[GATE_WORDS], uint64_t half)
{
	return word[half % GATE_WORDS] >> (half >> 32 & 63);
}

/* The slot that holds this window, or the empty one where it would be. */
static uint32_t *slot_of(const struct needles *n, uint64_t h, const uint8_t *at)
{
	for (uint64_t i = h >> 31;; i++) {
		uint32_t *slot = &n->table[i & n->mask];
		uint32_t number = *slot & ((1u << NUMBER_BITS) - 1);

		if (!number)
			return slot;
		if ((*slot ^ tag_of(h)) >> NUMBER_BITS == 0 &&
		    memcmp(n->payload + (number - 1) * n->step, at, NEEDLE) == 0)
			return slot;
	}
}

static void add(struct needles *n, uint64_t number)
{
	const uint8_t *at = n->payload + number * n->step;
	uint64_t h = hash(at, n->sieve.seed);
	uint32_t *slot = slot_of(n, h, at);

	if (!*slot) /* the first of equal ones counts */
		*slot = tag_of(h) | (uint32_t)(number + 1);
	sieve_add(&n->sieve, at);
}

static void make_room(struct needles *n, uint64_t count, uint64_t seed)
{
	sieve_init(&n->sieve, count, seed);
	n->mask = (2u << log_above(count)) - 1;
	n->table = big((n->mask + 1) * sizeof(*n->table));
}

/* Pages that were read for needles alone. Those of a short payload are read anyway, and stay. */
static void drop(struct wire *w, const struct needles *n, const uint8_t *at)
{
	if (!pages_stay(w, n->count * n->step))
		pages_drop(w, PAGES_CANARY, n->payload, at);
}

/* Memory is asked for in time: what is added now was looked at IN_FLIGHT needles ago. */
static void add_all(struct wire *w, struct needles *n, uint64_t count)
{
	make_room(n, count, w->seed);
	for (uint64_t i = 0; i < count + IN_FLIGHT; i++) {
		const uint8_t *at = n->payload + i * n->step;

		if (i < count) {
			__builtin_prefetch(at + IN_FLIGHT * n->step);
			__builtin_prefetch(&n->table[hash(at, w->seed) >> 31 & n->mask], 1);
		}
		if (i >= IN_FLIGHT)
			add(n, i - IN_FLIGHT);
		if (i % 4096 == 0)
			drop(w, n, at);
	}
}

static void list_one(struct needles *n, uint64_t number)
{
	if (n->found == n->room) {
		n->room = n->room ? n->room * 2 : 64;
		n->list = regrab(n->list, n->room * sizeof(*n->list));
	}
	n->list[n->found++] = (uint32_t)number;
}

static void list_group(struct pool *p, struct needles *n, const struct wanted *wanted, uint64_t from, uint64_t to)
{
	for (; from < to; from++) {
		const uint8_t *at = n->payload + from * n->step;

		if (!(half_bit(wanted->gate.first, raw64(at)) & half_bit(wanted->gate.second, raw64(at + 8)) & 1) ||
		    !sieve_has(&wanted->sieve, at))
			continue;
		pool_lock(p);
		list_one(n, from);
		pool_unlock(p);
	}
}

/* List those that begin in these bytes of the record's payload, and may be among the wanted windows. */
void needles_along(struct pool *p, struct job *j, size_t skip, size_t len)
{
	struct needles *n = j->needles;
	const struct gate *gate = &j->wanted->gate;
	uint64_t from = (uint64_t)(j->payload - n->payload) + skip, i = (from + n->step - 1) / n->step;
	uint64_t last = (from + len + n->step - 1) / n->step;

	last = last < n->count ? last : n->count;
	j->seen += last > i ? (uint32_t)(last - i) : 0;
	for (uint64_t end; i < last; i = end) {
		const uint8_t *at = n->payload + i * n->step;
		uint64_t any = 0;

		end = i + GROUP < last ? i + GROUP : last;
		for (uint64_t k = i; k < end; k++, at += n->step)
			any |= half_bit(gate->first, raw64(at));
		if (any & 1)
			list_group(p, n, j->wanted, i, end);
	}
}

/* List those of a span that may be among the wanted windows. */
void needles_span(struct pool *p, const struct span *s)
{
	const uint8_t *at = s->needles->payload + s->from * s->needles->step;

	for (uint64_t i = s->from; i < s->to; i++, at += s->needles->step) {
		__builtin_prefetch(at + IN_FLIGHT * s->needles->step);
		if (sieve_has(s->wanted, at)) {
			pool_lock(p);
			list_one(s->needles, i);
			pool_unlock(p);
		}
	}
	if (s->drop)
		pages_done(s->needles->payload + s->from * s->needles->step, at);
}

/* For qsort(); no two are equal. */
static int by_number(const void *a, const void *b)
{
	return *(const uint32_t *)a < *(const uint32_t *)b ? -1 : 1;
}

/* Look through all of them, together with the workers. */
static void list_all(struct wire *w, struct needles *n, const struct sieve *wanted)
{
	uint64_t each = SPAN / n->step + 1, end;

	n->found = 0;
	for (uint64_t i = 0; i < n->count; i = end) {
		end = i + each < n->count ? i + each : n->count;
		pool_span(w, &(struct span){ n, wanted, i, end, !pages_stay(w, n->count * n->step) });
	}
	pool_wait(w);
}

/* Only those that may be among the `wanted` windows; the workers listed them in any order. */
static void add_wanted(struct wire *w, struct needles *n, const struct sieve *wanted)
{
	if (n->seen != n->count)
		list_all(w, n, wanted);
	if (n->found)
		qsort(n->list, n->found, sizeof(*n->list), by_number);
	make_room(n, n->found, w->seed);
	w->dropped[PAGES_CANARY] = NULL; /* to add one reads its page again */
	for (uint32_t i = 0; i < n->found; i++) {
		add(n, n->list[i]);
		drop(w, n, n->payload + n->list[i] * n->step);
	}
}

/* How many needles have payload and reply? */
void needles_measure(struct wire *w)
{
	for (int of = PAYLOAD; of < SOURCES; of++) {
		const struct bytes *source = of == PAYLOAD ? &w->q->payload : &w->q->reply;
		struct needles *n = &w->needles[of];

		if (!source->given || source->len < NEEDLE)
			continue;
		n->payload = source->at;
		n->step = NEEDLE * ((source->len + STEP_UNIT - 1) / STEP_UNIT);
		n->count = (source->len - NEEDLE) / n->step + 1;
	}
}

/* Collect the needles of payload or reply, if it has any; with `wanted` only what these windows could be. */
void needles_build(struct wire *w, enum source of, const struct sieve *wanted)
{
	struct needles *n = &w->needles[of];

	if (!n->count)
		return;
	w->dropped[PAGES_CANARY] = NULL;
	if (wanted)
		add_wanted(w, n, wanted);
	else
		add_all(w, n, n->count);
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

/* Is this window a needle? Then where in the payload it was taken from. */
bool needles_find(const struct needles *n, const uint8_t *at, uint64_t *offset)
{
	uint32_t number;

	if (!n->table || !sieve_has(&n->sieve, at))
		return false;
	number = *slot_of(n, hash(at, n->sieve.seed), at) & ((1u << NUMBER_BITS) - 1);
	if (!number || !distinct(at))
		return false;
	*offset = (number - 1) * n->step;
	return true;
}

void needles_free(struct needles *n)
{
	free(n->sieve.bits);
	free(n->table);
	free(n->list);
	*n = (struct needles){ 0 };
}
