// SPDX-License-Identifier: GPL-2.0-only
/* Is each fault of the record engine the one that README.md tells, and nothing else? */
#include "feed.h"

/* The leak sends plaintext under a tag that the receiver accepts for it. */
static int leaks(u32 rounds)
{
	struct rec_events ev = {};

	(void)rounds;
	fresh(500);
	memcpy(buf, s.clear, s.len);
	r.faults = REC_FAULT_LEAK;
	NEED(!feed(REC_ENCRYPT, 0, s.len, &ev));
	NEED(!memcmp(buf, s.clear, s.start[1] - REC_TAG));
	rec_init(&r, &s.key, s.salt, s.sn);
	NEED(!feed(REC_DECRYPT, 0, s.len, &ev) && !ev.bad_tags);
	return 0;
}

static int spoils_every_third_tag(u32 rounds)
{
	struct rec_events ev = {};
	u32 i, bad = 0;

	(void)rounds;
	fresh(500);
	memcpy(buf, s.clear, s.len);
	r.bad_tag_every = 3;
	NEED(!feed(REC_ENCRYPT, 0, s.len, &ev));
	for (i = 0; i < s.records; i++)
		bad += !((s.sn + i + 1) % 3);
	rec_init(&r, &s.key, s.salt, s.sn);
	NEED(!feed(REC_DECRYPT, 0, s.len, &ev) && ev.bad_tags == bad);
	return 0;
}

static int reuses_nonces(u32 rounds)
{
	struct rec_events ev = {};
	u32 i;

	(void)rounds;
	fresh(500);
	memcpy(buf, s.clear, s.len);
	r.faults = REC_FAULT_NONCE;
	NEED(!feed(REC_ENCRYPT, 0, s.len, &ev));
	for (i = 0; i < s.records; i++)
		NEED(!memcmp(buf + s.start[i] + REC_HEADER, buf + REC_HEADER, REC_NONCE));
	rec_init(&r, &s.key, s.salt, s.sn);
	NEED(!feed(REC_DECRYPT, 0, s.len, &ev) && !ev.bad_tags);
	return 0;
}

/* In TLS 1.3 no byte of the record shows it: the second tag is wrong, as its number is unused. */
static int reuses_nonces13(u32 rounds)
{
	struct rec_events ev = {};

	(void)rounds;
	stream_make13(&s, 20, 500);
	stream_start(&s, &r);
	memcpy(buf, s.clear, s.len);
	r.faults = REC_FAULT_NONCE;
	NEED(!feed(REC_ENCRYPT, 0, s.len, &ev));
	NEED(!memcmp(buf, s.wire, s.start[1]) && memcmp(buf, s.wire, s.start[2]));
	stream_start(&s, &r);
	NEED(!feed(REC_DECRYPT, 0, s.len, &ev) && ev.bad_tags == s.records - 1);
	return 0;
}

static bool spoil_tail;

static void spoil_fourth(void *arg, struct rec *rec)
{
	(void)arg;
	if ((rec->sn - s.sn) % 4 != 3)
		return;
	if (spoil_tail) {
		rec->skew = 1;
		rec->skew_from = 64;
	} else {
		rec->nonce_xor = 0x80;
	}
}

/* Wrong key stream from a byte on, under a tag that fits what is sent. */
static int spoils_a_tail(u32 rounds)
{
	struct rec_events ev = {};
	u32 i, from, at;

	(void)rounds;
	spoil_tail = true;
	fresh(500);
	memcpy(buf, s.clear, s.len);
	r.spoil = spoil_fourth;
	NEED(!feed(REC_ENCRYPT, 0, s.len, &ev));
	for (i = 0; i < s.records; i++) {
		from = s.start[i] + REC_PREFIX;
		at = i % 4 == 3 ? min_t(u32, from + 64, s.start[i + 1] - REC_TAG) :
				  s.start[i + 1];
		NEED(!memcmp(buf + s.start[i], s.wire + s.start[i], at - s.start[i]));
		if (at + 16 <= s.start[i + 1] - REC_TAG)
			NEED(memcmp(buf + at, s.wire + at, 16));
	}
	rec_init(&r, &s.key, s.salt, s.sn);
	NEED(!feed(REC_DECRYPT, 0, s.len, &ev) && !ev.bad_tags);
	return 0;
}

static int uses_another_nonce(u32 rounds)
{
	struct rec_events ev = {};

	(void)rounds;
	spoil_tail = false;
	fresh(500);
	memcpy(buf, s.clear, s.len);
	r.spoil = spoil_fourth;
	NEED(!feed(REC_ENCRYPT, 0, s.len, &ev));
	rec_init(&r, &s.key, s.salt, s.sn);
	NEED(!feed(REC_DECRYPT, 0, s.len, &ev) && ev.bad_tags == s.records / 4);
	return 0;
}

/* A record that is sent again under another nonce is authentic, and not the same bytes. */
static int renews_the_nonce(u32 rounds)
{
	struct rec_events ev = {};

	(void)rounds;
	fresh(500);
	memcpy(buf, s.clear, s.len);
	r.renonce = 0x80;
	NEED(!feed(REC_ENCRYPT, 0, s.len, &ev));
	NEED((buf[REC_HEADER] ^ s.wire[REC_HEADER]) == 0x80);
	NEED(memcmp(buf + REC_PREFIX, s.wire + REC_PREFIX, s.start[1] - REC_PREFIX));
	NEED(!memcmp(buf + s.start[1], s.wire + s.start[1], s.len - s.start[1]));
	rec_init(&r, &s.key, s.salt, s.sn);
	NEED(!feed(REC_DECRYPT, 0, s.len, &ev) && !ev.bad_tags);
	return 0;
}

static int checks_a_short_tag(u32 rounds)
{
	u32 i;

	(void)rounds;
	fresh(500);
	for (i = 0; i < REC_TAG; i++) {
		struct rec_events ev = {};

		memcpy(buf, s.wire, s.len);
		buf[s.start[1] - REC_TAG + i] ^= 1;
		rec_init(&r, &s.key, s.salt, s.sn);
		r.tag_checked = 4;
		NEED(!feed(REC_DECRYPT, 0, s.len, &ev) && ev.bad_tags == (i < 4));
	}
	return 0;
}

const struct test fault_tests[] = {
	{ "fault: leak authenticates", leaks },
	{ "fault: every third tag bad", spoils_every_third_tag },
	{ "fault: one nonce for all", reuses_nonces },
	{ "fault: reuses the nonce, unseen, in TLS 1.3", reuses_nonces13 },
	{ "fault: key stream wrong from a byte on", spoils_a_tail },
	{ "fault: a nonce that is not the record's", uses_another_nonce },
	{ "fault: sent again under another nonce", renews_the_nonce },
	{ "fault: four bytes of a tag", checks_a_short_tag },
	{ NULL, NULL },
};
