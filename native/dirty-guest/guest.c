/* SPDX-License-Identifier: Apache-2.0 */
/* A guest that does nothing but dirty memory at a set rate, so that a live migration has something to do. */
#include <stdint.h>

#include "guest.h"

#define HZ 20
#define PIT_HZ 1193182
#define PIC1 0x20
#define PIC2 0xa0

static volatile struct status *const status = (volatile struct status *)STATUS;
static volatile uint32_t ticks;
static uint64_t idt[256];

static void out8(uint16_t port, uint8_t value)
{
	__asm__ volatile("outb %0, %1" : : "a"(value), "d"(port));
}

void tick(void)
{
	ticks++;
	out8(PIC1, 0x20);
}

/* The PC's two interrupt controllers in cascade, all masked but line 0; it becomes vector 0x20. */
static void interrupts(void)
{
	static const uint8_t icw[4] = { 0x11, 0x20, 0x04, 0x01 };
	uint32_t at = (uint32_t)on_tick;
	uint64_t base = (uint32_t)idt;
	struct { uint16_t limit; uint32_t base; } __attribute__((packed)) idtr = { sizeof(idt) - 1, base };
	int i;

	idt[0x20] = (at & 0xffff) | 0x80000 | 0x8e0000000000 | ((uint64_t)(at >> 16) << 48);
	__asm__ volatile("lidt %0" : : "m"(idtr));
	for (i = 0; i < 4; i++) {
		out8(PIC1 + !!i, icw[i]);
		out8(PIC2 + !!i, i == 1 ? 0x28 : i == 2 ? 2 : icw[i]);
	}
	out8(PIC1 + 1, 0xfe);
	out8(PIC2 + 1, 0xff);
	out8(0x43, 0x34);
	out8(0x40, (PIT_HZ / HZ) & 0xff);
	out8(0x40, (PIT_HZ / HZ) >> 8);
}

/* Word 0 of a page counts its writes; the others are a sequence that depends on the seed and on the page. */
static void fill(uint32_t pages, uint32_t seed)
{
	uint32_t page, i, x;

	for (page = 0; page < pages; page++) {
		uint32_t *word = (uint32_t *)(AREA + page * PAGE);

		word[0] = 0;
		for (x = seed * 2654435761u + page, i = 1; i < PAGE / 4; i++)
			word[i] = x = x * 1664525u + 1013904223u;
	}
}

/*
 * QEMU 7.2.22 with TCG, seen: once a migration has read the dirty bits, a store to a page that is still in
 * QEMU's TLB is not noted, and the destination lacks it. A change of CR0.WP, which means nothing without
 * paging, empties the TLB.
 */
static void forget(void)
{
	uint32_t cr0;

	__asm__ volatile("mov %%cr0, %0" : "=r"(cr0));
	__asm__ volatile("mov %0, %%cr0" : : "r"(cr0 ^ 0x10000));
}

/* Pages are written one after the other, and round again: what is where follows from `written` alone. */
static void dirty(uint32_t count)
{
	static uint32_t next;

	while (count--) {
		forget();
		++*(volatile uint32_t *)(AREA + next * PAGE);
		next = next + 1 < status->pages ? next + 1 : 0;
		status->written++;
	}
}

void run(void)
{
	uint32_t done = 0, each = status->rate / HZ;

	status->pages = (status->mib << 8) - AREA / PAGE;
	fill(status->pages, status->seed);
	interrupts();
	status->magic = MAGIC;
	for (;;) {
		__asm__ volatile("cli");
		forget();
		if (done == ticks)
			__asm__ volatile("sti; hlt");
		__asm__ volatile("sti");
		if (done == ticks)
			continue;
		done = status->ticks = ticks;
		dirty(each);
	}
}
