/* SPDX-License-Identifier: Apache-2.0 */
/* An arriving frame goes into a receive queue: into the memory of its next entry. */
#include "cx6.h"

enum { CQE_RX_ERROR = 14, SYNDROME_PROTECTION = 0x04 };
#define INVALID_LKEY 0x100u

static void break_queue(struct card *c, struct rq *q)
{
	uint8_t e[64] = { 0 };

	q->state = QUEUE_ERROR;
	e[55] = SYNDROME_PROTECTION;
	store32(e + 24, q->number);
	store16(e + 60, q->at);
	completion(c, q->cq, e, CQE_RX_ERROR);
}

/* Copy a frame to the data segments of an entry. False if the memory that they name is not there. */
static bool scatter(struct card *c, const uint8_t *entry, uint32_t size, const uint8_t *data, uint32_t len)
{
	for (uint32_t at = 0; at + 16 <= size && len; at += 16) {
		uint32_t room = load32(entry + at) & 0x7fffffff, part = len < room ? len : room;
		uint8_t *to;

		if (load32(entry + at + 4) == INVALID_LKEY)
			break;
		to = guest_at(&c->guest, load64(entry + at + 8), part);
		if (!to)
			return false;
		memcpy(to, data, part);
		data += part;
		len -= part;
	}
	return !len;
}

static void deliver(struct card *c, struct rq *q, const struct arrival *a)
{
	uint32_t size = 1u << q->log_stride, at = q->at & ((1u << q->log_size) - 1);
	const uint8_t *posted = ring_at(&c->guest, &q->ring, (uint64_t)at * size, size);
	uint8_t entry[1024];

	if (posted)
		memcpy(entry, posted, size);
	if (!posted || !scatter(c, entry, size, a->frame->data, a->frame->len)) {
		break_queue(c, q);
		return;
	}
	rx_complete(c, q, a, a->frame->len, 0, q->at++);
}

/* Take the tag out of the frame: the MAC addresses move up over it. */
static void strip(struct frame *f)
{
	memmove(f->data + 4, f->data, 12);
	f->data += 4;
	f->len -= 4;
	f->end -= 4;
	f->l3 -= 4;
	f->l4 -= f->l4 ? 4 : 0;
	f->payload -= f->payload ? 4 : 0;
}

void rx_deliver(struct card *c, uint32_t number, const struct arrival *a)
{
	struct rq *q = object_find(c, KIND_RQ, number);
	const uint8_t *doorbell = q && q->state == QUEUE_READY ? guest_at(&c->guest, q->doorbell, 8) : NULL;
	uint16_t posted, waiting;
	struct arrival one = *a;
	struct frame f = *a->frame;
	uint8_t macs[16];

	if (!doorbell)
		return;
	posted = load16(doorbell + 2);
	waiting = (uint16_t)(posted - q->at);
	if (!waiting || waiting >= 0x8000) {
		c->truth.rx_no_buffer++;
		return;
	}
	c->truth.rx_frames++;
	c->truth.rx_bytes += f.len;
	one.frame = &f;
	memcpy(macs, f.data, sizeof(macs) < f.len ? sizeof(macs) : f.len);
	if (f.tagged && q->strips_vlan)
		strip(&f);
	if (q->striding)
		stride_deliver(c, q, posted, &one);
	else
		deliver(c, q, &one);
	memcpy(a->frame->data, macs, sizeof(macs) < a->frame->len ? sizeof(macs) : a->frame->len);
}
