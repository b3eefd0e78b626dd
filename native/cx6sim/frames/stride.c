/* SPDX-License-Identifier: Apache-2.0 */
/* A striding receive queue: many frames lie in one large entry, in strides that a UMR memory key leads to. */
#include "cx6.h"

#define FILLER 0x80000000u

/* The entry is used up: the next one is where its link leads. */
static void go_on(struct rq *q, const uint8_t *entry)
{
	q->used = 0;
	q->current = load16(entry + 2);
	q->at++;
}

/* Copy to an address within a memory key, page by page. False if the key does not lead there. */
static bool copy_to_key(struct card *c, const struct mkey *key, uint64_t addr, const uint8_t *data, uint32_t len)
{
	uint64_t size = 1ULL << key->shift;

	while (len) {
		uint64_t page = addr >> key->shift, within = addr & (size - 1);
		uint32_t part = size - within < len ? (uint32_t)(size - within) : len;
		uint8_t *to = page < key->count ? guest_at(&c->guest, (key->page[page] & ~7ULL) + within, part) : NULL;

		if (!to)
			return false;
		memcpy(to, data, part);
		addr += part;
		data += part;
		len -= part;
	}
	return true;
}

static bool place(struct card *c, struct rq *q, const uint8_t *entry, const struct frame *f)
{
	const struct mkey *key = object_find(c, KIND_MKEY, load32(entry + 20) >> 8);
	uint64_t addr = load64(entry + 24) + (uint64_t)q->used * q->stride_size;

	return key && key->page && key->shift < 32 && copy_to_key(c, key, addr, f->data, f->len);
}

static void fill_rest(struct card *c, struct rq *q, const uint8_t *entry)
{
	uint32_t left = q->strides - q->used;

	if (left)
		rx_complete(c, q, NULL, FILLER | left << 16, (uint16_t)q->current, (uint16_t)q->used);
	go_on(q, entry);
}

/* A frame that does not fit into what is left of an entry closes it, and begins the next. */
void stride_deliver(struct card *c, struct rq *q, uint16_t posted, const struct arrival *a)
{
	uint32_t need = (a->frame->len + q->stride_size - 1) / q->stride_size;

	for (int turn = 0; turn < 2 && need <= q->strides && q->at != posted; turn++) {
		uint32_t used = q->used, current = q->current;
		const uint8_t *posted_at = ring_at(&c->guest, &q->ring, (uint64_t)current << q->log_stride, 32);
		uint8_t entry[32];

		if (!posted_at)
			return;
		memcpy(entry, posted_at, sizeof(entry));
		if (need > q->strides - used) {
			fill_rest(c, q, entry);
			continue;
		}
		if (!place(c, q, entry, a->frame))
			return;
		q->used += need;
		if (q->used == q->strides)
			go_on(q, entry);
		rx_complete(c, q, a, need << 16 | a->frame->len, (uint16_t)current, (uint16_t)used);
		return;
	}
	c->truth.rx_no_buffer++;
}
