/* SPDX-License-Identifier: Apache-2.0 */
/* Send queues: WQEs are fetched, copied and done, in order; a bad one breaks its queue, as on the card. */
#include "cx6.h"

enum { BLOCK = 64, DS = 16 };
enum { OP_NOP = 0x00, OP_SEND = 0x0a, OP_TSO = 0x0e, OP_SET_PSV = 0x20, OP_GET_PSV = 0x21, OP_DUMP = 0x23, OP_UMR = 0x25 };
enum { MOD_TIS = 1, MOD_TIR = 2 };
enum { CQE_TX = 0, CQE_TX_ERROR = 13 };
enum { SYNDROME_NONE, SYNDROME_OPERATION = 0x02, SYNDROME_FLUSH = 0x05 };
enum { ALWAYS_COMPLETE = 2 << 2, COMPLETE_MASK = 3 << 2 };
enum { UMR_LIST = 16 + 48 + 64, UMR_COUNT = 16 + 4, UMR_OFFSET = 16 + 6, UMR_OFFSET_HIGH = 16 + 16 };

/* Pages of a memory key: a number of units of 16 bytes, at an offset in such units. */
static bool change_key(struct card *c, const struct wqe *w)
{
	struct mkey *key = object_find(c, KIND_MKEY, w->target);
	uint64_t at = 2 * (load16(w->byte + UMR_OFFSET) | (uint64_t)load32(w->byte + UMR_OFFSET_HIGH) << 16);
	uint32_t count = 2u * load16(w->byte + UMR_COUNT);

	if (!key || w->len < UMR_LIST || count > (w->len - UMR_LIST) / 8 || at > key->count || count > key->count - at)
		return false;
	for (uint32_t i = 0; i < count; i++)
		key->page[at + i] = load64(w->byte + UMR_LIST + 8 * i);
	return true;
}

static bool umr(struct card *c, const struct wqe *w)
{
	if (!w->modifier)
		return change_key(c, w);
	tls_static(c, w, w->modifier == MOD_TIS);
	return true;
}

bool tx_execute(struct card *c, const struct wqe *w)
{
	switch (w->opcode) {
	case OP_NOP:
		return true;
	case OP_SEND:
	case OP_TSO:
		return send_frame(c, w, w->opcode == OP_TSO);
	case OP_DUMP:
		return send_dump(c, w);
	case OP_UMR:
		return umr(c, w);
	case OP_SET_PSV:
		tls_progress(c, w, w->modifier == MOD_TIS);
		return true;
	case OP_GET_PSV:
		tls_ask(c, w);
		return true;
	}
	say(c, 0, "unknown WQE opcode %#x", w->opcode);
	return false;
}

void tx_parse(struct wqe *w)
{
	uint32_t first = load32(w->byte), second = load32(w->byte + 4);

	w->opcode = first & 0xff;
	w->modifier = first >> 24;
	w->len = (second & 0x3f) * DS;
	w->target = load32(w->byte + 12) >> 8;
}

/* Copy a WQE, block by block: it may go round the end of the queue. Its blocks, or 0 if they are not there. */
static uint32_t fetch(struct card *c, const struct sq *q, struct wqe *w)
{
	uint32_t mask = (1u << q->log_size) - 1, blocks = 1;

	for (uint32_t i = 0; i < blocks; i++) {
		const uint8_t *p = ring_at(&c->guest, &q->ring, (uint64_t)((q->at + i) & mask) * BLOCK, BLOCK);

		if (!p)
			return 0;
		memcpy(w->byte + i * BLOCK, p, BLOCK);
		if (!i) {
			tx_parse(w);
			blocks = w->len ? (w->len + BLOCK - 1) / BLOCK : 1;
		}
	}
	return blocks;
}

static void complete(struct card *c, const struct sq *q, uint32_t opcode, uint8_t syndrome)
{
	uint8_t e[64] = { 0 };

	e[55] = syndrome;
	store32(e + 56, q->number | opcode << 24);
	store16(e + 60, q->at);
	completion(c, q->cq, e, syndrome ? CQE_TX_ERROR : CQE_TX);
}

static void break_queue(struct card *c, struct sq *q, uint32_t opcode)
{
	complete(c, q, opcode, SYNDROME_OPERATION);
	q->state = QUEUE_ERROR;
	say(c, 0, "SQ %u: error at WQE %u, the queue stops", q->number, q->at);
}

/* What is posted on a broken queue comes back undone: the driver waits for all of it before it mends the queue. */
static void do_wqe(struct card *c, struct sq *q, const struct wqe *w)
{
	if (q->state == QUEUE_ERROR)
		complete(c, q, w->opcode, SYNDROME_FLUSH);
	else if (fault_hit(c, FAULT_TX_ERROR) || !tx_execute(c, w))
		break_queue(c, q, w->opcode);
	else if ((w->byte[11] & COMPLETE_MASK) == ALWAYS_COMPLETE)
		complete(c, q, w->opcode, SYNDROME_NONE);
}

/* The doorbell record says how far; the driver rings after it has written it. */
void sq_doorbell(struct card *c, uint32_t number)
{
	struct sq *q = object_find(c, KIND_SQ, number);
	const uint8_t *record = q && q->state != QUEUE_RESET ? guest_at(&c->guest, q->doorbell, 8) : NULL;
	uint16_t end = record ? load16(record + 6) : 0;
	uint32_t blocks;
	struct wqe w;

	for (int left = 1 << 16; record && q->at != end && left > 0; left -= (int)blocks) {
		blocks = fetch(c, q, &w);
		if (!blocks) {
			if (q->state == QUEUE_READY)
				break_queue(c, q, 0);
			return;
		}
		do_wqe(c, q, &w);
		q->at = (uint16_t)(q->at + blocks);
	}
}
