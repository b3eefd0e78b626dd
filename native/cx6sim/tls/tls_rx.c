/* SPDX-License-Identifier: Apache-2.0 */
/* Receiving with TLS: a stream is opened while it is in sync; after a gap a header is searched and the driver asked. */
#include <stdlib.h>

#include "cx6.h"

enum { HEAD = 5, TYPE_DATA = 23 };

static int32_t ahead(uint32_t a, uint32_t b)
{
	return (int32_t)(a - b);
}

static void search(struct card *c, struct tls *t)
{
	t->state = RX_SEARCHING;
	t->have = 0;
	c->truth.searches++;
}

/* Open bytes of the stream in place. What cannot be opened stays as it came: the driver's software opens it. */
static enum rx_mark open_in_place(struct card *c, struct tls *t, uint8_t *data, uint32_t len)
{
	static uint8_t kept[FRAME_MAX];
	int got;

	memcpy(kept, data, len);
	got = record_run(c, &t->record, data, len);
	t->next += len;
	if (got > 0 && fault_hit(c, FAULT_RX_FALSE_TAG))
		got = 0;
	if (!got) {
		if (fault_hit(c, FAULT_RX_BYTE))
			data[len / 2] ^= 1;
		if (fault_hit(c, FAULT_RX_FALSE_OPENED))
			memcpy(data, kept, len);
		return fault_hit(c, FAULT_RX_FALSE_ERROR) ? MARK_ERROR : MARK_DECRYPTED;
	}
	memcpy(data, kept, len);
	if (got < 0) {
		search(c, t);
		return MARK_NONE;
	}
	t->state = RX_FAILED;
	return MARK_ERROR;
}

/* Follow the headers behind the one that was found; a header may lie in two frames. False if one is wrong. */
static bool follow(struct tls *t, const uint8_t *data, uint32_t len, uint32_t seq)
{
	while (len) {
		int32_t gap = ahead(t->follow + t->have, seq);

		if (gap < 0)
			return false;
		if ((uint32_t)gap >= len)
			return true;
		data += gap;
		len -= (uint32_t)gap;
		seq += (uint32_t)gap;
		while (t->have < HEAD && len) {
			t->part[t->have++] = *data++;
			len--;
			seq++;
		}
		if (t->have < HEAD)
			return true;
		if (!record_head_right(t->part))
			return false;
		t->passed++;
		t->follow += HEAD + load16(t->part + 3);
		t->have = 0;
	}
	return true;
}

/* The first bytes that look like the header of application data. */
static enum rx_mark look(struct card *c, struct tls *t, const uint8_t *data, uint32_t len, uint32_t seq)
{
	for (uint32_t i = 0; i + HEAD <= len; i++) {
		if (data[i] != TYPE_DATA || !record_head_right(data + i))
			continue;
		t->state = RX_TRACKING;
		t->found = t->follow = seq + i;
		t->passed = 0;
		t->have = 0;
		t->next = seq + len;
		if (!follow(t, data + i, len - i, seq + i))
			break;
		c->truth.found++;
		return fault_hit(c, FAULT_RX_NO_RESYNC) ? MARK_NONE : MARK_RESYNC;
	}
	t->state = RX_SEARCHING;
	return MARK_NONE;
}

static void set_number(struct tls *t)
{
	uint64_t number = load64(t->first) + t->passed;

	store64(t->record.number, number);
	t->record.at = 0;
}

/* The driver has confirmed the header that was found: from the next header on the stream is in sync again. */
static enum rx_mark resume(struct card *c, struct tls *t, uint8_t *data, uint32_t len, uint32_t seq)
{
	uint32_t skip = t->follow - seq;
	static uint8_t rest[FRAME_MAX];

	set_number(t);
	t->state = RX_IN_STEP;
	t->next = t->follow;
	if (!skip)
		return open_in_place(c, t, data, len);
	/* a frame of which only the end could be opened goes up as it came */
	memcpy(rest, data + skip, len - skip);
	open_in_place(c, t, rest, len - skip);
	return MARK_NONE;
}

static enum rx_mark track(struct card *c, struct tls *t, uint8_t *data, uint32_t len, uint32_t seq)
{
	if (ahead(seq, t->next) < 0)
		return MARK_NONE; /* sent again */
	if (t->state == RX_CONFIRMED && !t->have && ahead(t->follow, seq) >= 0 && t->follow - seq < len)
		return resume(c, t, data, len, seq);
	if (seq != t->next && (t->have || ahead(t->follow, seq) < 0)) {
		search(c, t);
		return look(c, t, data, len, seq);
	}
	t->next = seq + len;
	if (!follow(t, data, len, seq))
		search(c, t);
	return MARK_NONE;
}

static enum rx_mark in_step(struct card *c, struct tls *t, uint8_t *data, uint32_t len, uint32_t seq)
{
	if (ahead(seq, t->next) < 0)
		return MARK_NONE;
	if (seq == t->next)
		return open_in_place(c, t, data, len);
	search(c, t);
	return look(c, t, data, len, seq);
}

/* What the card does with a segment of a TLS stream; its checksum was right. */
enum rx_mark tls_rx(struct card *c, struct tls *t, struct frame *f)
{
	uint8_t *data = f->data + f->payload;
	uint32_t len = f->end - f->payload, seq = load32(f->data + f->l4 + 4);

	if (t->on && len && fault_hit(c, FAULT_RX_FORGET))
		t->on = false;
	if (!t->on || !len || len > FRAME_MAX)
		return MARK_NONE;
	switch (t->state) {
	case RX_IN_STEP:
		return in_step(c, t, data, len, seq);
	case RX_SEARCHING:
		return look(c, t, data, len, seq);
	case RX_TRACKING:
	case RX_CONFIRMED:
		return track(c, t, data, len, seq);
	case RX_FAILED:
		break;
	}
	return MARK_NONE;
}
