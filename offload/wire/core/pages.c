/* SPDX-License-Identifier: Apache-2.0 */
/* How much of the mapped files stays in memory? What was read long ago is given back to the page cache. */
#define _GNU_SOURCE
#include <sys/mman.h>

#include "core.h"

enum { KEEP = 12 << 20, STEP = 4 << 20, PAGE = 4096 };

/* Give back what lies more than KEEP bytes before pos, STEP bytes at a time. */
void pages_drop(struct wire *w, enum pages which, const uint8_t *start, const uint8_t *pos)
{
	uintptr_t from, to;

	if (!w->q->mapped)
		return;
	if (!w->dropped[which])
		w->dropped[which] = start;
	if (pos - w->dropped[which] < KEEP + STEP)
		return;
	from = ((uintptr_t)w->dropped[which] + PAGE - 1) / PAGE * PAGE;
	to = ((uintptr_t)pos - KEEP) / PAGE * PAGE;
	madvise((void *)from, to - from, MADV_DONTNEED);
	w->dropped[which] = (const uint8_t *)to;
}
