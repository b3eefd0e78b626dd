/* SPDX-License-Identifier: Apache-2.0 */
/* Where what lies in the guest's memory: tests/lib/flow/migration.py reads it from a dump. */
#ifndef GUEST_H
#define GUEST_H

#include <stdint.h>

#define PAGE 4096u
#define STATUS 0x200000u
#define AREA 0x400000u
#define MAGIC 0x59545244u /* "DRTY", written last: memory is filled, the clock runs */

/* mib, seed and rate are QEMU's: `-device loader,addr=...,data=...,data-len=4` */
struct status {
	uint32_t magic, mib, seed, rate, pages, ticks;
	uint64_t written; /* pages, all rounds together */
};

void on_tick(void);
void tick(void);
void run(void);

#endif
