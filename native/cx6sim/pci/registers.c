/* SPDX-License-Identifier: Apache-2.0 */
/* What a guest writes to BAR0: the command queue, the state of the function and the doorbells in the UAR pages. */
#include "cx6.h"

enum { QUEUE_HIGH = 0x10, QUEUE_LOW = 0x14, DOORBELL = 0x18 };
enum { UAR_CQ = 0x20, UAR_EQ_ARM = 0x40, UAR_EQ = 0x48, UAR_SQ = 0x800 };
enum { NIC_FULL = 0, NIC_DISABLED = 1, NIC_SW_RESET = 7 };

/* The driver asks a card in trouble to reset itself, or lets go of one: either way the objects are gone. */
static void set_nic_state(struct card *c, uint32_t state)
{
	if (state == NIC_SW_RESET || (state == NIC_DISABLED && c->syndrome)) {
		card_reset(c);
		c->nic_state = NIC_DISABLED;
		return;
	}
	c->nic_state = state == NIC_DISABLED ? NIC_DISABLED : NIC_FULL;
}

static void write_queue(struct card *c, uint32_t value)
{
	c->command_queue = (uint64_t)c->command_high << 32 | (value & ~0xfffu);
	set_nic_state(c, value >> 8 & 7);
}

static void write_doorbell(struct card *c, uint32_t at, const uint8_t *data, uint32_t len)
{
	uint32_t word = load32(data), second = len >= 8 ? load32(data + 4) : 0;

	c->truth.doorbells++;
	if (at == UAR_EQ_ARM || at == UAR_EQ)
		eq_doorbell(c, word, at == UAR_EQ_ARM);
	else if (at == UAR_CQ && len == 8)
		cq_doorbell(c, word, second);
	else if (at >= UAR_SQ && len == 8)
		sq_doorbell(c, second >> 8);
}

void bar_write(struct card *c, uint64_t at, const uint8_t *data, uint32_t len)
{
	if (len < 4)
		return;
	if (at >= UARS)
		write_doorbell(c, (uint32_t)at & 0xfff, data, len);
	else if (at == QUEUE_HIGH)
		c->command_high = load32(data);
	else if (at == QUEUE_LOW)
		write_queue(c, load32(data));
	else if (at == DOORBELL)
		command_doorbell(c, load32(data));
}
