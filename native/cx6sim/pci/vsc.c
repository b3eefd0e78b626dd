/* SPDX-License-Identifier: Apache-2.0 */
/* The vendor-specific capability: a window of the card through configuration space (the driver's lib/pci_vsc.c). */
#include "cx6.h"

enum { CTRL = 0x04, COUNTER = 0x08, OWNER = 0x0c, ADDRESS = 0x10, DATA = 0x14 };
enum { SPACE_SCAN = 0x7, SPACE_SEMAPHORES = 0xa };
#define SPACE 0xffffu
#define SUPPORTED (1u << 29)
#define SIZE_VALID (1u << 28)
#define FLAG (1u << 31) /* of ADDRESS: the guest asks for a write, or the card has read */
#define REFUSED (1u << 30)
#define ADDRESS_BITS (REFUSED - 1)
#define SCAN_SIZE 0x1000u /* of the crash dump: the registers at the start of BAR0 */

static uint32_t word(const struct card *c, uint32_t at)
{
	const uint8_t *p = c->config + CAP_VSC + at;

	return p[0] | p[1] << 8 | p[2] << 16 | (uint32_t)p[3] << 24;
}

static void put(struct card *c, uint32_t at, uint32_t v)
{
	uint8_t *p = c->config + CAP_VSC + at;

	p[0] = (uint8_t)v;
	p[1] = (uint8_t)(v >> 8);
	p[2] = (uint8_t)(v >> 16);
	p[3] = (uint8_t)(v >> 24);
}

void vsc_init(struct card *c)
{
	c->config[CAP_VSC] = 0x09; /* vendor-specific */
	c->config[CAP_VSC + 2] = VSC_SIZE;
	put(c, COUNTER, ++c->vsc_counter);
}

static void choose_space(struct card *c, uint32_t value)
{
	uint32_t space = value & SPACE;

	if (space != SPACE_SCAN && space != SPACE_SEMAPHORES) {
		put(c, CTRL, space);
		return;
	}
	put(c, CTRL, space | SUPPORTED | (space == SPACE_SCAN ? SIZE_VALID : 0));
	put(c, ADDRESS, space == SPACE_SCAN ? SCAN_SIZE : 0);
}

/* Whoever writes the number that COUNTER showed owns the window, until 0 is written. */
static void own(struct card *c, uint32_t value)
{
	if (!value || !c->vsc_owner)
		c->vsc_owner = value;
	put(c, OWNER, c->vsc_owner);
	put(c, COUNTER, ++c->vsc_counter);
}

static void read_word(struct card *c, uint32_t space, uint32_t at)
{
	uint8_t bytes[4];

	if (space == SPACE_SEMAPHORES && at < SEMAPHORES) {
		put(c, DATA, c->semaphore[at]);
		put(c, ADDRESS, at | FLAG);
	} else if (space == SPACE_SCAN && at < SCAN_SIZE && !(at & 3)) {
		bar_read(c, at, bytes, sizeof(bytes));
		put(c, DATA, load32(bytes));
		put(c, ADDRESS, (at + 4) | FLAG); /* the next one */
	} else {
		put(c, ADDRESS, at | FLAG | REFUSED);
	}
}

/* A semaphore that is taken stays with its owner; the dump cannot be written. */
static void write_word(struct card *c, uint32_t space, uint32_t at)
{
	bool there = space == SPACE_SEMAPHORES && at < SEMAPHORES;
	uint32_t value = word(c, DATA);

	if (there && (!value || !c->semaphore[at]))
		c->semaphore[at] = value;
	put(c, ADDRESS, there ? at : at | REFUSED);
}

/* The guest has written a word of the capability. */
void vsc_write(struct card *c, uint32_t at)
{
	uint32_t value = word(c, at), space = word(c, CTRL) & SPACE;

	if (at == CTRL)
		choose_space(c, value);
	else if (at == COUNTER)
		put(c, COUNTER, ++c->vsc_counter);
	else if (at == OWNER)
		own(c, value);
	else if (at == ADDRESS && value & FLAG)
		write_word(c, space, value & ADDRESS_BITS);
	else if (at == ADDRESS)
		read_word(c, space, value & ADDRESS_BITS);
}
