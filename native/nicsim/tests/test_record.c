// SPDX-License-Identifier: GPL-2.0-only
/* Does the record engine make and read OpenSSL's records, however TCP cuts them? */
#include "feed.h"

static int encrypts(u32 rounds)
{
	while (rounds--) {
		struct rec_events ev = {};

		fresh_any(rounds % 10 ? 500 : REC_MAX_PAYLOAD);
		memcpy(buf, s.clear, s.len);
		NEED(!feed(REC_ENCRYPT, 0, s.len, &ev));
		NEED(!memcmp(buf, s.wire, s.len));
		NEED(ev.records == s.records && ev.headers == s.records && !ev.passed);
	}
	return 0;
}

static int decrypts(u32 rounds)
{
	while (rounds--) {
		struct rec_events ev = {};

		fresh_any(500);
		memcpy(buf, s.wire, s.len);
		NEED(!feed(REC_DECRYPT, 0, s.len, &ev));
		NEED(!memcmp(buf, s.clear, s.len) && !ev.bad_tags);
	}
	return 0;
}

static int notices_each_flip(u32 rounds)
{
	while (rounds--) {
		struct rec_events ev = {};
		u32 at, start;

		fresh_any(200);
		memcpy(buf, s.wire, s.len);
		at = rnd_range(0, s.len - 1);
		start = s.start[stream_record(&s, at)];
		if (at - start < REC_HEADER)
			continue;
		buf[at] ^= 1 << rnd_range(0, 7);
		NEED(!feed(REC_DECRYPT, 0, s.len, &ev));
		NEED(ev.bad_tags == 1);
	}
	return 0;
}

/* Transmit recovery: record start, plaintext up to any byte, then on from there. */
static int replays(u32 rounds)
{
	while (rounds--) {
		struct rec_events ev = {};
		u32 at, rec;

		fresh_any(1000);
		memcpy(buf, s.clear, s.len);
		NEED(!feed(REC_ENCRYPT, 0, rnd_range(0, s.len), &ev));
		at = rnd_range(0, s.len - 1);
		rec = stream_record(&s, at);
		memcpy(buf, s.clear, s.len);
		rec_reset(&r, s.sn + rec);
		NEED(!feed(REC_ENCRYPT, s.start[rec], at, &ev));
		NEED(!feed(REC_ENCRYPT, at, s.len, &ev));
		NEED(!memcmp(buf + at, s.wire + at, s.len - at));
	}
	return 0;
}

/* A hole inside a record costs that record only. */
static int hops(u32 rounds)
{
	while (rounds--) {
		struct rec_events ev = {};
		u32 from, to, rec;

		fresh_any(1000);
		memcpy(buf, s.wire, s.len);
		from = rnd_range(0, s.len - 1);
		rec = stream_record(&s, from);
		/* Often exactly to the record's end, or one byte too far. */
		to = rnd() & 0x10000 ? rnd_range(from, s.len) :
				       min_t(u32, s.len, s.start[rec + 1] + rnd_range(0, 1));
		NEED(!feed(REC_DECRYPT, 0, from, &ev));
		if (!rec_can_skip(&r, to - from)) {
			NEED(from - s.start[rec] < REC_HEADER || to > s.start[rec + 1]);
			continue;
		}
		NEED(to <= s.start[rec + 1]);
		rec_skip(&r, to - from, &ev);
		NEED(!feed(REC_DECRYPT, to, s.len, &ev));
		from = s.start[rec + 1];
		NEED(!memcmp(buf + from, s.clear + from, s.len - from));
		NEED(!ev.bad_tags && ev.records == s.records);
	}
	return 0;
}

static int knows_starts(u32 rounds)
{
	while (rounds--) {
		struct rec_events ev = {};
		u32 at, n, i;
		bool starts = false;

		fresh_any(300);
		memcpy(buf, s.wire, s.len);
		at = rnd_range(0, s.len - 1);
		n = rnd_range(1, s.len - at);
		NEED(!feed(REC_WALK, 0, at, &ev));
		NEED(!memcmp(buf, s.wire, s.len) && ev.passed == at);
		for (i = at; i < at + n; i++)
			starts |= stream_is_start(&s, i);
		/* Inside a header the length is not known yet: the answer is no. */
		if (!r.off || r.off >= REC_HEADER)
			NEED(rec_starts_within(&r, n) == starts);
	}
	return 0;
}

static int each_stops(const u8 (*bad)[REC_HEADER], u32 n)
{
	u32 i;

	stream_start(&s, &r);
	for (i = 0; i < n; i++) {
		struct rec_events ev = {};

		memcpy(buf, bad[i], REC_HEADER);
		rec_reset(&r, 0);
		NEED(!rec_plausible(&r, buf));
		NEED(rec_feed(&r, REC_DECRYPT, buf, 100, &ev) == REC_HEADER && ev.bad_header);
	}
	return 0;
}

static int stops_at_rubbish(u32 rounds)
{
	static const u8 bad13[][REC_HEADER] = {
		{ 0x16, 3, 3, 1, 0 }, { 0x17, 3, 4, 1, 0 }, { 0x17, 3, 3, 0, 16 },
		{ 0x17, 3, 3, 0x40, 18 },
	};
	static const u8 bad[][REC_HEADER] = {
		{ 0x13, 3, 3, 1, 0 }, { 0x19, 3, 3, 1, 0 }, { 0x17, 3, 1, 1, 0 },
		{ 0x17, 2, 3, 1, 0 }, { 0x17, 3, 3, 0, 23 }, { 0x17, 3, 3, 0x40, 25 },
	};
	(void)rounds;
	stream_make(&s, 1, 100);
	NEED(!each_stops(bad, sizeof(bad) / sizeof(bad[0])));
	stream_make13(&s, 1, 100);
	NEED(!each_stops(bad13, sizeof(bad13) / sizeof(bad13[0])));
	return 0;
}

const struct test record_tests[] = {
	{ "record: encrypts as OpenSSL, in random pieces", encrypts },
	{ "record: decrypts OpenSSL's records", decrypts },
	{ "record: one flipped bit, one bad tag", notices_each_flip },
	{ "record: replays to any byte and goes on", replays },
	{ "record: hops over a hole inside a record", hops },
	{ "record: knows where records start", knows_starts },
	{ "record: stops at an implausible header", stops_at_rubbish },
	{ NULL, NULL },
};
