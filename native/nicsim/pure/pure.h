/* SPDX-License-Identifier: GPL-2.0-only */
/* What the pure files (gcm.c, record.c, rxtrack.c) need, in the kernel and in user space. */
#ifndef NICSIM_PURE_H
#define NICSIM_PURE_H

#ifdef __KERNEL__
#include <linux/types.h>
#include <linux/string.h>
#include <linux/errno.h>
#include <linux/minmax.h>
#else
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <linux/types.h>

typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
typedef __s32 s32;

#define min_t(type, a, b) ({ \
	type min_a = (a), min_b = (b); \
	min_a < min_b ? min_a : min_b; \
})
#endif

static inline u64 nicsim_load64(const u8 *p)
{
	return (u64)p[0] << 56 | (u64)p[1] << 48 | (u64)p[2] << 40 |
	       (u64)p[3] << 32 | (u64)p[4] << 24 | (u64)p[5] << 16 |
	       (u64)p[6] << 8 | p[7];
}

static inline void nicsim_store32(u8 *p, u32 v)
{
	p[0] = v >> 24;
	p[1] = v >> 16;
	p[2] = v >> 8;
	p[3] = v;
}

static inline void nicsim_store64(u8 *p, u64 v)
{
	nicsim_store32(p, v >> 32);
	nicsim_store32(p + 4, v);
}

#endif
