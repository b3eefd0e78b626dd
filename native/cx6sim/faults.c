/* SPDX-License-Identifier: Apache-2.0 */
/* Knobs that make the card a bad one: each is hit every Nth time, so that two equal runs go wrong alike. */
#include "cx6.h"

static const char *const names[FAULTS] = {
	[FAULT_RX_DROP] = "rx-drop",	   [FAULT_TX_DROP] = "tx-drop",	      [FAULT_TX_TAG] = "tx-wrong-tag",
	[FAULT_TX_NONCE] = "tx-wrong-nonce", [FAULT_TX_KEY] = "tx-wrong-salt", [FAULT_TX_LEAK] = "tx-leak",
	[FAULT_TX_FORGET] = "tx-forget-number", [FAULT_RX_STATUS] = "rx-false-error",
	[FAULT_RX_RESYNC] = "rx-wrong-number", [FAULT_PSV] = "rx-no-resync-answer", [FAULT_IRQ] = "lost-interrupt",
	[FAULT_COMMAND] = "command-error", [FAULT_TIMEOUT] = "command-timeout", [FAULT_DEK] = "no-key-left",
	[FAULT_HEALTH] = "health",
};

bool fault_hit(struct card *c, enum fault fault)
{
	struct knob *k = &c->fault[fault];

	if (!k->every || ++k->seen % k->every)
		return false;
	k->hit++;
	return true;
}

const char *fault_name(enum fault fault)
{
	return names[fault];
}

/* The health knob's number is the syndrome, and the card is in trouble from then on, until it is reset. */
bool fault_set(struct card *c, const char *name, uint64_t every)
{
	for (int i = 0; i < FAULTS; i++) {
		if (strcmp(names[i], name))
			continue;
		if (i == FAULT_HEALTH)
			c->syndrome = (uint8_t)every;
		c->fault[i] = (struct knob){ .every = i == FAULT_HEALTH ? 0 : every, .hit = i == FAULT_HEALTH };
		return true;
	}
	return false;
}
