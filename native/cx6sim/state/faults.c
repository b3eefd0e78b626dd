/* SPDX-License-Identifier: Apache-2.0 */
/* Knobs that make the card a bad one: each is hit every Nth time, so that two equal runs go wrong alike. */
#include "cx6.h"

static const char *const names[FAULTS] = {
	[FAULT_TX_DROP] = "tx-drop",
	[FAULT_TX_REORDER] = "tx-reorder",
	[FAULT_TX_TWICE] = "tx-twice",
	[FAULT_TX_SUM] = "tx-wrong-checksum",
	[FAULT_TX_TAG] = "tx-wrong-tag",
	[FAULT_TX_NONCE] = "tx-wrong-nonce",
	[FAULT_TX_SALT] = "tx-wrong-salt",
	[FAULT_TX_FORGET] = "tx-forget-number",
	[FAULT_TX_CACHE] = "tx-small-cache",
	[FAULT_TX_LEAK] = "tx-leak",
	[FAULT_TX_AGAIN] = "tx-leak-again",
	[FAULT_TX_PAGE] = "tx-dump-one-page",
	[FAULT_TX_ERROR] = "tx-error",
	[FAULT_RX_DROP] = "rx-drop",
	[FAULT_RX_NO_RULE] = "rx-no-rule",
	[FAULT_RX_NO_ROOM] = "rx-no-room",
	[FAULT_RX_FALSE_ERROR] = "rx-false-error",
	[FAULT_RX_FALSE_OPENED] = "rx-false-opened",
	[FAULT_RX_FALSE_TAG] = "rx-false-tag",
	[FAULT_RX_BYTE] = "rx-wrong-byte",
	[FAULT_RX_FORGET] = "rx-forget",
	[FAULT_RX_NO_RESYNC] = "rx-no-resync",
	[FAULT_RX_NUMBER] = "rx-wrong-number",
	[FAULT_RX_NO_ANSWER] = "rx-no-resync-answer",
	[FAULT_RX_ANSWER] = "rx-wrong-resync-answer",
	[FAULT_IRQ] = "lost-interrupt",
	[FAULT_COMMAND] = "command-error",
	[FAULT_DELAY] = "command-delay",
	[FAULT_TIMEOUT] = "command-timeout",
	[FAULT_KEY] = "wrong-key",
	[FAULT_HALF_KEY] = "half-key",
	[FAULT_NO_KEY] = "no-key-left",
	[FAULT_NO_STREAM] = "no-stream-left",
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

uint64_t fault_value(struct card *c, enum fault fault)
{
	c->fault[fault].hit += c->fault[fault].every != 0;
	return c->fault[fault].every < UINT32_MAX ? c->fault[fault].every : UINT32_MAX;
}

const char *fault_name(enum fault fault)
{
	return names[fault];
}

/* The health knob's number is the syndrome, and the card is in trouble from then on, until it is reset. */
static void turn(struct card *c, enum fault fault, uint64_t every)
{
	if (fault == FAULT_HEALTH) {
		c->syndrome = (uint8_t)every;
		c->fault[fault].hit += c->syndrome != 0;
		return;
	}
	c->fault[fault] = (struct knob){ .every = every };
}

/* "all" is for 0 only: a card without knobs again, which goes on counting from nothing. */
bool fault_set(struct card *c, const char *name, uint64_t every)
{
	bool all = !strcmp(name, "all") && !every, found = all;

	for (int i = 0; i < FAULTS; i++) {
		if (!all && strcmp(names[i], name))
			continue;
		turn(c, (enum fault)i, every);
		found = true;
	}
	return found;
}
