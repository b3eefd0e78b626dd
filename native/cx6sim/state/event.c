/* SPDX-License-Identifier: Apache-2.0 */
/* What the card tells the driver: completions in CQs, events in EQs, and an interrupt where one is armed. */
#include "cx6.h"

#define EQE 64u
#define CQE 64u

/* The last byte goes last: it hands the entry over. Its low bit turns with every round of the queue. */
static void hand_over(uint8_t *to, const uint8_t *entry, uint8_t last)
{
	memcpy(to, entry, 63);
	__atomic_store_n(to + 63, last, __ATOMIC_RELEASE);
}

static uint8_t round_bit(uint32_t made, uint32_t log_size)
{
	return (uint8_t)(made >> log_size & 1);
}

/* An EQ without a mask has completions only. Where commands and other events are, `command-timeout` is the fault. */
static void interrupt(struct card *c, const struct eq *eq)
{
	bool events = eq->mask[0] | eq->mask[1] | eq->mask[2] | eq->mask[3];

	if (events || !fault_hit(c, FAULT_IRQ))
		irq_raise(c, eq->vector);
}

void event_post(struct card *c, struct eq *eq, uint8_t type, uint8_t subtype, const uint8_t *data, uint32_t len)
{
	uint8_t entry[EQE] = { 0, type, 0, subtype };
	uint8_t *to = ring_at(&c->guest, &eq->ring, (uint64_t)(eq->made & ((1u << eq->log_size) - 1)) * EQE, EQE);

	if (!to)
		return;
	memcpy(entry + 32, data, len < 28 ? len : 28);
	hand_over(to, entry, round_bit(eq->made, eq->log_size));
	eq->made++;
	if (eq->armed) {
		eq->armed = false;
		interrupt(c, eq);
	}
}

static struct eq *listener(struct card *c, uint8_t type)
{
	uint32_t number = 0;
	struct eq *eq;

	while ((eq = object_next(c, KIND_EQ, &number)))
		if (eq->mask[type >> 6] >> (type & 63) & 1)
			return eq;
	return NULL;
}

bool event_heard(struct card *c, uint8_t type)
{
	return listener(c, type) != NULL;
}

/* An event to the first EQ whose mask has its type. */
void event_say(struct card *c, uint8_t type, uint8_t subtype, const uint8_t *data, uint32_t len)
{
	struct eq *eq = listener(c, type);

	if (eq)
		event_post(c, eq, type, subtype, data, len);
}

/* How far the driver has read. If it armed the EQ and is behind, the interrupt comes at once. */
void eq_doorbell(struct card *c, uint32_t value, bool arm)
{
	struct eq *eq = object_find(c, KIND_EQ, value >> 24);

	if (!eq)
		return;
	eq->seen = value & 0xffffff;
	if (!arm)
		return;
	eq->armed = (eq->made & 0xffffff) == eq->seen;
	if (!eq->armed)
		interrupt(c, eq);
}

static void cq_event(struct card *c, struct cq *cq)
{
	struct eq *eq = object_find(c, KIND_EQ, cq->eq);
	uint8_t data[28] = { 0 };

	cq->armed = false;
	store32(data + 24, cq->number);
	if (eq)
		event_post(c, eq, EVENT_COMPLETION, 0, data, sizeof(data));
}

void cq_doorbell(struct card *c, uint32_t value, uint32_t number)
{
	struct cq *cq = object_find(c, KIND_CQ, number & 0xffffff);

	if (!cq)
		return;
	cq->armed = true;
	if ((cq->made & 0xffffff) != (value & 0xffffff))
		cq_event(c, cq);
}

void completion(struct card *c, uint32_t number, const uint8_t entry[static 64], uint8_t opcode)
{
	struct cq *cq = object_find(c, KIND_CQ, number);
	uint8_t *to;

	if (!cq)
		return;
	to = ring_at(&c->guest, &cq->ring, (uint64_t)(cq->made & ((1u << cq->log_size) - 1)) * CQE, CQE);
	if (!to)
		return;
	hand_over(to, entry, (uint8_t)(opcode << 4 | round_bit(cq->made, cq->log_size)));
	cq->made++;
	if (cq->armed)
		cq_event(c, cq);
}
