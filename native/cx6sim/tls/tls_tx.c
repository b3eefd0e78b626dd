/* SPDX-License-Identifier: Apache-2.0 */
/* Sending with TLS: a stream's records are sealed as their bytes come by; DUMP bytes count and are not sent. */
#include "cx6.h"

static struct tls *stream(struct card *c, uint32_t tis)
{
	struct tis *found = object_find(c, KIND_TIS, tis);

	return found && found->tls.on ? &found->tls : NULL;
}

/* The bad card has room for `every` streams: one that others have pushed out comes back without its number. */
static bool pushed_out(struct card *c, struct tls *t)
{
	struct knob *k = &c->fault[FAULT_TX_CACHE];
	uint64_t since = t->used, others = 0;
	uint32_t number = 0;
	struct tis *tis;

	t->used = ++c->uses;
	if (!k->every || !since)
		return false;
	while ((tis = object_next(c, KIND_TIS, &number)))
		others += tis->tls.on && &tis->tls != t && tis->tls.used > since;
	k->hit += others >= k->every;
	return others >= k->every;
}

/* The bad cards: one sends a piece as it is, one loses the record number. */
static bool leaks(struct card *c, struct tls *t)
{
	if (pushed_out(c, t) || fault_hit(c, FAULT_TX_FORGET))
		memset(t->record.number, 0, sizeof(t->record.number));
	if (t->again && fault_hit(c, FAULT_TX_AGAIN))
		return true;
	return fault_hit(c, FAULT_TX_LEAK);
}

/* Seal the payload of a frame, which goes out in pieces of `mss` bytes, or whole if that is 0. False if it must not be sent: it does not follow what was sent before. */
bool tls_tx(struct card *c, uint32_t tis, struct frame *f, uint32_t mss)
{
	struct tls *t = stream(c, tis);
	uint32_t len = f->end - f->payload, seq;

	if (!t || f->protocol != 6 || !len)
		return true;
	seq = load32(f->data + f->l4 + 4);
	if (t->open_start)
		t->next = seq;
	t->open_start = false;
	if (seq != t->next) {
		c->truth.tx_out_of_sync++;
		say(c, 0, "TIS %u: dropped a frame with TCP sequence number %u, expected %u", tis, seq, t->next);
		return false;
	}
	t->next += len;
	c->truth.tx_tls_frames += mss ? (len + mss - 1) / mss : 1;
	c->truth.tx_tls_bytes += len;
	if (leaks(c, t))
		return true;
	t->again = false;
	return record_run(c, &t->record, f->data + f->payload, len) >= 0;
}

/*
 * The start of a record that was sent before: the cipher must see it again. The next SEND says where it goes on.
 * The bad card reads no further than the page in which it begins.
 */
void tls_dump(struct card *c, uint32_t tis, uint8_t *data, uint32_t len, uint32_t in_page)
{
	struct tls *t = stream(c, tis);

	if (!t)
		return;
	c->truth.dumps++;
	c->truth.dumps_over_page += len > in_page;
	if (len > in_page && fault_hit(c, FAULT_TX_PAGE))
		memset(data + in_page, 0, len - in_page);
	record_run(c, &t->record, data, len);
}
