/* SPDX-License-Identifier: Apache-2.0 */
/* How much of the mapped files stays in memory? What was read long ago is given back to the page cache. */
#define _GNU_SOURCE
#include <sys/mman.h>

#include "core.h"

enum { KEEP = 64 << 20, KEEP_CANARY = 12 << 20, STEP = 4 << 20, PAGE = 4096 };

/* Mapping a page costs half as much as sealing it, so files of usual size stay; in all it is less than 160 MiB. */
static intptr_t kept(const struct wire *w, enum pages which)
{
	if (which == PAGES_CANARY)
		return KEEP_CANARY;
	return which != PAGES_CAPTURE && w->q->payload.given && w->q->reply.given ? KEEP / 2 : KEEP;
}

/* Does a file of this length stay in memory, as far as it was read? One that is not mapped always does. */
bool pages_stay(const struct wire *w, uint64_t len)
{
	return !w->q->mapped || len <= (uint64_t)kept(w, PAGES_CLIENT);
}

/* Release the pages of mapped bytes; a later reader reads them again. */
void pages_done(const uint8_t *from, const uint8_t *to)
{
	uintptr_t first = (uintptr_t)from / PAGE * PAGE;

	madvise((void *)first, (uintptr_t)to - first, MADV_DONTNEED);
}

/* Release what lies more than kept() bytes before pos, STEP bytes at a time. */
void pages_drop(struct wire *w, enum pages which, const uint8_t *start, const uint8_t *pos)
{
	intptr_t keep = kept(w, which);
	uintptr_t from, to;

	if (!w->q->mapped)
		return;
	if (!w->dropped[which])
		w->dropped[which] = start;
	if (pos - w->dropped[which] < keep + STEP)
		return;
	from = ((uintptr_t)w->dropped[which] + PAGE - 1) / PAGE * PAGE;
	to = ((uintptr_t)pos - (uintptr_t)keep) / PAGE * PAGE;
	madvise((void *)from, to - from, MADV_DONTNEED);
	w->dropped[which] = (const uint8_t *)to;
}
