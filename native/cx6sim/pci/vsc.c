/* SPDX-License-Identifier: Apache-2.0 */
/* The vendor-specific capability: a window of the card through configuration space (the driver's lib/pci_vsc.c). */
#include "cx6.h"

enum { CTRL = 0x04, COUNTER = 0x08, OWNER = 0x0c, ADDRESS = 0x10, DATA = 0x14 };
enum { SPACE_TOOLS_TOO = 0x1, SPACE_CARD = 0x2, SPACE_TOOLS = 0x3, SPACE_SCAN = 0x7, SPACE_SEMAPHORES = 0xa };
#define SPACE 0xffffu
#define SUPPORTED (1u << 29)
#define SIZE_VALID (1u << 28)
#define FLAG (1u << 31) /* of ADDRESS: the guest asks for a write, or the card has read */
#define REFUSED (1u << 30)
#define ADDRESS_BITS (REFUSED - 1)
#define DEVICE_ID 0xf0014u /* in SPACE_CARD; what else a program reads there is 0 */
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

static bool has_space(uint32_t space)
{
	return (space >= SPACE_TOOLS_TOO && space <= SPACE_TOOLS) || space == SPACE_SCAN || space == SPACE_SEMAPHORES;
}

static void choose_space(struct card *c, uint32_t value)
{
	uint32_t space = value & SPACE, size = space == SPACE_SCAN ? SCAN_SIZE : 0;

	put(c, CTRL, space | (has_space(space) ? SUPPORTED : 0) | (size ? SIZE_VALID : 0));
	put(c, ADDRESS, size);
}

/* Whoever writes the number that COUNTER showed owns the window, until 0 is written. */
static void own(struct card *c, uint32_t value)
{
	if (!value || !c->vsc_owner)
		c->vsc_owner = value;
	put(c, OWNER, c->vsc_owner);
	put(c, COUNTER, ++c->vsc_counter);
}

/* A word of a space. False if it is not there. */
static bool space_read(struct card *c, uint32_t space, uint32_t at, uint32_t *value)
{
	uint8_t bytes[4];

	switch (space) {
	case SPACE_CARD:
		*value = at == DEVICE_ID ? HW_ID : 0;
		return true;
	case SPACE_TOOLS:
	case SPACE_TOOLS_TOO:
		return tool_read(c, at, value);
	case SPACE_SEMAPHORES:
		*value = at < SEMAPHORES ? c->semaphore[at] : 0;
		return at < SEMAPHORES;
	case SPACE_SCAN:
		bar_read(c, at, bytes, sizeof(bytes));
		*value = load32(bytes);
		return at < SCAN_SIZE && !(at & 3);
	}
	return false;
}

/* A semaphore that is taken stays with its owner; the card and its dump cannot be written. */
static bool space_write(struct card *c, uint32_t space, uint32_t at, uint32_t value)
{
	if (space == SPACE_TOOLS || space == SPACE_TOOLS_TOO)
		return tool_write(c, at, value);
	if (space != SPACE_SEMAPHORES || at >= SEMAPHORES)
		return false;
	if (!value || !c->semaphore[at])
		c->semaphore[at] = value;
	return true;
}

static void read_word(struct card *c, uint32_t space, uint32_t at)
{
	uint32_t value = 0;
	bool there = space_read(c, space, at, &value);

	put(c, DATA, value);
	put(c, ADDRESS, FLAG | (!there ? at | REFUSED : space == SPACE_SCAN ? at + 4 : at)); /* of a dump, the next one */
}

static void write_word(struct card *c, uint32_t space, uint32_t at)
{
	put(c, ADDRESS, space_write(c, space, at, word(c, DATA)) ? at : at | REFUSED);
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
