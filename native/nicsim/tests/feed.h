/* SPDX-License-Identifier: GPL-2.0-only */
/* A stream and the record engine that it goes through; each file that includes this has its own. */
#ifndef NICSIM_FEED_H
#define NICSIM_FEED_H

#include "model.h"

static struct stream s;
static u8 buf[STREAM_MAX];
static struct rec r;

/* Feed @buf from @from to @to in random pieces. */
static int feed(enum rec_op op, u32 from, u32 to, struct rec_events *ev)
{
	while (from < to) {
		u32 n = min_t(u32, to - from, rnd_range(1, rnd() & 0x30000 ? 1448 : 20));

		NEED(rec_feed(&r, op, buf + from, n, ev) == n);
		from += n;
	}
	return 0;
}

static inline void fresh(u32 most)
{
	stream_make(&s, rnd_range(1, 30), most);
	rec_init(&r, &s.key, s.salt, s.sn);
}

/* The same, in TLS 1.2 or 1.3. */
static inline void fresh_any(u32 most)
{
	if (rnd() & 0x20000)
		stream_make13(&s, rnd_range(1, 30), most);
	else
		stream_make(&s, rnd_range(1, 30), most);
	stream_start(&s, &r);
}

#endif
