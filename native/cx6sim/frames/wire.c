/* SPDX-License-Identifier: Apache-2.0 */
/* The cable between two cards: both links are up or down, and a frame that one sends arrives at the other. */
#include <stdlib.h>

#include "cx6.h"

#define FRAME_MIN 60u

enum { PORT_DOWN = 1, PORT_ACTIVE = 4 };

/* A frame to the card's own address goes round within the card, and out as well only if it is for many. */
static bool is_own(const struct card *c, const uint8_t *data)
{
	return !memcmp(data, c->mac, sizeof(c->mac));
}

static void carry(struct card *c, uint8_t *data, uint32_t len)
{
	if (is_own(c, data)) {
		c->truth.own_frames++;
		steer(c, data, len, true);
	} else if (c->link && c->far_end) {
		cable_count(c, c->far_end, data, len);
		steer(c->far_end, data, len, false);
	}
}

/* The receiver may change a frame, so its twin is a copy. */
static void carry_twin(struct card *c, const uint8_t *data, uint32_t len)
{
	static uint8_t twin[FRAME_MAX];

	if (len > sizeof(twin))
		return;
	memcpy(twin, data, len);
	carry(c, twin, len);
}

void wire_forget(struct card *c)
{
	free(c->held);
	c->held = NULL;
	c->held_len = 0;
}

/* The bad card that reorders: this frame goes behind the next one. */
static bool hold(struct card *c, const uint8_t *data, uint32_t len)
{
	if (c->held || !fault_hit(c, FAULT_TX_REORDER))
		return false;
	c->held = malloc(len);
	if (!c->held)
		return false;
	memcpy(c->held, data, len);
	c->held_len = len;
	return true;
}

/* The frame's buffer has room for the shortest one there is; the receiver may change it. */
void wire_send(struct card *c, uint8_t *data, uint32_t len)
{
	if (len < FRAME_MIN) {
		memset(data + len, 0, FRAME_MIN - len);
		len = FRAME_MIN;
	}
	c->truth.tx_frames++;
	c->truth.tx_bytes += len;
	if (fault_hit(c, FAULT_TX_DROP) || hold(c, data, len))
		return;
	if (fault_hit(c, FAULT_TX_TWICE))
		carry_twin(c, data, len);
	carry(c, data, len);
	if (c->held)
		carry(c, c->held, c->held_len);
	wire_forget(c);
}

static void say_link(struct card *c, bool up)
{
	uint8_t port[28] = { 0 };

	if (c->link == up)
		return;
	c->link = up;
	c->cable.downs += !up;
	port[8] = 1 << 4;
	event_say(c, EVENT_PORT, up ? PORT_ACTIVE : PORT_DOWN, port, sizeof(port));
	say(c, 1, "link %s", up ? "up" : "down");
}

/* A link is up if the drivers at both ends want it: a port sees that its cable leads to one that is down. */
void link_settle(struct card *c)
{
	bool up = c->link_wanted && (!c->far_end || c->far_end->link_wanted);

	say_link(c, up);
	if (c->far_end)
		say_link(c->far_end, up);
}
