/* SPDX-License-Identifier: Apache-2.0 */
/* What a guest reads in BAR0: the initialization segment (mlx5_init_seg in device.h). */
#include "cx6.h"

enum { FW_REV = 0x00, CMDIF = 0x04, QUEUE_HIGH = 0x10, QUEUE_LOW = 0x14, STARTING = 0x1fc, HEALTH = 0x200,
       TIMER_HIGH = 0x1000, TIMER_LOW = 0x1004, HEALTH_COUNTER = 0x1010 };
enum { CMDIF_REV = 5, LOG_QUEUE = 5, LOG_STRIDE = 6 };
enum { HEALTH_FW_VER = HEALTH + 0x30, HEALTH_HW_ID = HEALTH + 0x34, HEALTH_SEVERITY = HEALTH + 0x38,
       HEALTH_SYNDROME = HEALTH + 0x3c };
#define NO_ACCESS 0xbadacce5u /* what a doorbell page reads as (mtcr_ul/mtcr_ul_com.c of mstflint) */

/* 156.25 MHz, which caps.c says as well. */
static uint64_t timer(void)
{
	return nanoseconds() / 1000 * 15625 / 100;
}

/* It moves ten times a second, and with each look, for a guest's clock may be faster; a card in trouble stands still. */
static uint32_t health_counter(struct card *c)
{
	return c->syndrome ? 0 : (uint32_t)(nanoseconds() / 100000000 + c->looks++) & 0xffffff;
}

static uint32_t read_register(struct card *c, uint32_t at)
{
	switch (at) {
	case FW_REV:
		return FW_MAJOR | FW_MINOR << 16;
	case CMDIF:
		return CMDIF_REV << 16 | FW_SUB;
	case QUEUE_HIGH:
		return (uint32_t)(c->command_queue >> 32);
	case QUEUE_LOW:
		return ((uint32_t)c->command_queue & ~0xfffu) | c->nic_state << 8 | LOG_QUEUE << 4 | LOG_STRIDE;
	case STARTING: /* bit 31: not ready yet; bit 30: it can reset itself */
		return 1u << 30;
	case HEALTH_FW_VER:
		return FW_MAJOR << 24 | FW_MINOR << 16 | FW_SUB;
	case HEALTH_HW_ID:
		return HW_ID;
	case HEALTH_SEVERITY: /* the top bit asks for a reset of the firmware */
		return c->syndrome ? 0x80000000u : 0;
	case HEALTH_SYNDROME:
		return (uint32_t)c->syndrome << 16;
	case TIMER_HIGH:
		return (uint32_t)(timer() >> 32);
	case TIMER_LOW:
		return (uint32_t)timer();
	case HEALTH_COUNTER:
		return health_counter(c);
	}
	return at < UARS ? 0 : NO_ACCESS;
}

void bar_read(struct card *c, uint64_t at, uint8_t *data, uint32_t len)
{
	for (uint32_t i = 0; i < len; i++) {
		uint8_t word[4];

		store32(word, read_register(c, (uint32_t)(at + i) & ~3u));
		data[i] = word[(at + i) & 3];
	}
}
