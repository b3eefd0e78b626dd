// SPDX-License-Identifier: GPL-2.0-only
/*
 * The receive tracker on a bad network, with a model of the kernel that answers resync
 * requests: never a wrong byte in a packet called decrypted, and always back in sync.
 */
#include "model.h"
#include "pure/rxtrack.h"

#define SEGMENT 1448

static struct stream s;
static struct rxt t;
static u8 packet[SEGMENT];
static u32 base;	/* TCP sequence number of the stream's first byte */

/* The kernel: knows the number of each record, answers some packets later, or never. */
static struct {
	u32 cand;
	int wait;
	bool mute, confused;
} kernel;

/* A damaged byte on the wire; s.len means none. */
static u32 damaged;

static void kernel_hears(const struct rxt_out *out)
{
	if (out->confirm && !kernel.mute) {
		kernel.cand = out->cand;
		kernel.wait = rnd_range(0, 5);
	}
}

static int kernel_speaks(void)
{
	u32 at = kernel.cand - base;

	if (kernel.wait < 0 || kernel.wait-- > 0)
		return 0;
	if (kernel.confused && rnd_range(0, 3) == 0)
		NEED(!rxt_answer(&t, kernel.cand + 1, rnd()));
	if (stream_is_start(&s, at))
		rxt_answer(&t, kernel.cand, s.sn + stream_record(&s, at));
	return 0;
}

/* A record with the damaged byte ends in [at, at + n): its tag must not be called good. */
static bool damage_ends_in(u32 at, u32 n)
{
	u32 end;

	if (damaged == s.len)
		return false;
	end = s.start[stream_record(&s, damaged) + 1];
	return end > at && end <= at + n;
}

static bool damaged_record(u32 at)
{
	return damaged != s.len && stream_record(&s, at) == stream_record(&s, damaged);
}

static int same_as_clear(u32 at, u32 n)
{
	u32 i;

	for (i = 0; i < n; i++)
		NEED(packet[i] == s.clear[at + i] || damaged_record(at + i));
	return 0;
}

/* The packet with stream bytes [at, at + n) arrives. */
static int arrive(u32 at, u32 n, struct rxt_out *out)
{
	NEED(!kernel_speaks());
	memcpy(packet, s.wire + at, n);
	rxt_packet(&t, base + at, packet, n, out);
	kernel_hears(out);
	NEED(!out->bad_tags || damaged != s.len);
	if (out->decrypted && !out->bad_tags) {
		NEED(!same_as_clear(at, n));
		NEED(!damage_ends_in(at, n));
	}
	if (!out->touched)
		NEED(!memcmp(packet, s.wire + at, n));
	return 0;
}

static void start(u32 most)
{
	if (rnd() & 0x20000)
		stream_make13(&s, RECORDS_MAX, most);
	else
		stream_make(&s, RECORDS_MAX, most);
	/* Every fourth run crosses the wrap of the sequence number. */
	base = rnd_range(0, 3) ? (u32)rnd() : 0U - rnd_range(0, s.len);
	damaged = s.len;
	memset(&kernel, 0, sizeof(kernel));
	kernel.wait = -1;
	rxt_init(&t, &s.key, s.salt, s.sn, base);
	stream_start(&s, &t.rec);
}

static int in_order_all_decrypted(u32 rounds)
{
	struct rxt_out out;
	u32 at, n;

	for (rounds /= 10; rounds--;) {
		start(rounds % 2 ? 400 : REC_MAX_PAYLOAD);
		for (at = 0; at < s.len; at += n) {
			n = min_t(u32, s.len - at, rnd_range(1, SEGMENT));
			NEED(!arrive(at, n, &out));
			NEED(out.decrypted && out.touched && !out.gaps && !out.errors);
		}
	}
	return 0;
}

/* One packet of the bad part of a run; moves *at, like a sender, by what was sent. */
static int impaired(u32 *at, u32 loss, u32 *held, u32 *held_n)
{
	struct rxt_out out;
	u32 n = min_t(u32, s.len - *at, rnd_range(1, SEGMENT));
	u32 dice = rnd_range(0, 99), old;

	if (dice < loss) {
		*held = *at;	/* lost, or late: comes again after a while */
		*held_n = n;
	} else {
		NEED(!arrive(*at, n, &out));
	}
	if (dice > 95 && *held_n) {
		NEED(!arrive(*held, *held_n, &out));
		*held_n = 0;
	}
	if (dice == 95) {
		/* A retransmission that is cut differently. */
		old = *at - min_t(u32, *at, rnd_range(0, 3000));
		NEED(!arrive(old, min_t(u32, s.len - old, rnd_range(1, SEGMENT)), &out));
	}
	*at += n;
	return 0;
}

/* Impairment for the first half; then none, and the tracker must find back. */
static int run_impaired(u32 loss, u32 most)
{
	struct rxt_out out;
	u32 at = 0, held = 0, held_n = 0, n, clear = 0;

	while (at < s.len / 2)
		NEED(!impaired(&at, loss, &held, &held_n));
	kernel.mute = false;
	while (at < s.len) {
		n = min_t(u32, s.len - at, SEGMENT);
		NEED(!arrive(at, n, &out));
		at += n;
		clear += n;
		/* Worst case: an unanswered request has to run out, then ask and wait. */
		if (clear > (RXT_PATIENCE + 20) * (most + 29) + 12 * SEGMENT)
			NEED(out.decrypted);
	}
	return 0;
}

static int recovers(u32 rounds)
{
	for (rounds /= 5; rounds--;) {
		u32 most = rounds % 2 ? 300 : 1500;

		start(most);
		kernel.mute = rounds % 7 == 0;
		kernel.confused = rounds % 3 == 0;
		NEED(!run_impaired(rnd_range(1, 30), most));
	}
	return 0;
}

static int damage_is_never_good(u32 rounds)
{
	for (rounds /= 5; rounds--;) {
		u32 rec;

		start(1000);
		rec = rnd_range(0, s.records - 1);
		damaged = rnd_range(s.start[rec] + REC_HEADER, s.start[rec + 1] - 1);
		s.wire[damaged] ^= 1 << rnd_range(0, 7);
		NEED(!run_impaired(rnd_range(0, 3), 1000));
	}
	return 0;
}

/* Without an answer nothing may be called decrypted after the loss of a header. */
static int mute_kernel(u32 rounds)
{
	struct rxt_out out;
	u32 at, asked = 0;

	(void)rounds;
	start(300);
	kernel.mute = true;
	for (at = 100; at + SEGMENT < s.len; at += SEGMENT) {
		NEED(!arrive(at, SEGMENT, &out));
		NEED(!out.decrypted);
		asked += out.resync;
	}
	NEED(asked > s.records / RXT_PATIENCE / 2);
	return 0;
}

/* In sync, and then no header where one must be: not a record stream any more. */
static int rubbish_loses_step(u32 rounds)
{
	struct rxt_out out;

	(void)rounds;
	start(300);
	NEED(!arrive(0, s.start[3], &out) && out.decrypted);
	memset(packet, 0x55, 200);
	rxt_packet(&t, base + s.start[3], packet, 200, &out);
	NEED(!out.decrypted && out.errors == 1 && out.lost == 1 && !out.resync);
	NEED(t.state == RXT_LOST);
	return 0;
}

static int starts_late(u32 rounds)
{
	struct rxt_out out;

	(void)rounds;
	start(300);
	/* The first bytes came before the context did: one resync, then in sync. */
	for (u32 at = 700; at + SEGMENT < s.len; at += SEGMENT)
		NEED(!arrive(at, SEGMENT, &out));
	NEED(out.decrypted && t.state == RXT_SYNC);
	return 0;
}

/* A retransmission while the place is lost: the kernel has read its headers and stays silent. */
static int asks_for_nothing_old(u32 rounds)
{
	struct rxt_out out;
	u32 record = 5;

	(void)rounds;
	start(300);
	while (s.start[record + 1] - s.start[record] < 64)
		record++;
	NEED(!arrive(s.start[record] + 16, 32, &out) && t.state == RXT_LOST && !out.resync);
	NEED(!arrive(s.start[2], 64, &out) && t.state == RXT_LOST && !out.resync);
	NEED(out.old == 1);
	NEED(!arrive(s.start[record], SEGMENT, &out) && out.cand != base + s.start[record]);
	return 0;
}

const struct test rxtrack_tests[] = {
	{ "rxtrack: in order, every packet decrypted", in_order_all_decrypted },
	{ "rxtrack: loss, reorder, duplicates: never wrong, always back", recovers },
	{ "rxtrack: a damaged record is never called good", damage_is_never_good },
	{ "rxtrack: without answers nothing is decrypted, and it asks again", mute_kernel },
	{ "rxtrack: rubbish in place of a header loses step", rubbish_loses_step },
	{ "rxtrack: a late start costs one resync", starts_late },
	{ "rxtrack: what came before is not asked about", asks_for_nothing_old },
	{ NULL, NULL },
};
