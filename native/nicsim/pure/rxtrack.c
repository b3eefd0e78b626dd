// SPDX-License-Identifier: GPL-2.0-only
/*
 * Receive tracking as a NIC does it. SYNC: decrypt. A gap inside a record costs that record
 * only; a gap that may have swallowed a header leads to LOST: search for something like a
 * header. TRACK: walk from such a candidate and wait for the kernel to confirm its number.
 */
#include "rxtrack.h"

void rxt_init(struct rxt *t, const struct gcm_key *key, const u8 salt[REC_SALT], u64 sn, u32 seq)
{
	memset(t, 0, sizeof(*t));
	rec_init(&t->rec, key, salt, sn);
	t->state = RXT_SYNC;
	t->next = seq;
}

static void rxt_lose(struct rxt *t, struct rxt_out *out)
{
	if (t->state == RXT_TRACK)
		out->req_skip++;
	t->state = RXT_LOST;
	out->lost++;
}

/*
 * LOST: the first plausible header in the packet whose followers are plausible too. Not in
 * what came before: the kernel has read that, and would never answer.
 */
static void rxt_search(struct rxt *t, u32 seq, u8 *p, u32 n, struct rxt_out *out)
{
	u32 old = (s32)(t->next - seq) > 0 ? t->next - seq : 0;
	u32 i;

	if (old >= n) {
		out->old++;
		return;
	}
	t->next = seq + n;
	for (i = old; i + REC_HEADER <= n; i++) {
		struct rec_events ev = {};

		if (!rec_plausible(&t->rec, p + i))
			continue;
		rec_reset(&t->rec, 0);
		rec_feed(&t->rec, REC_WALK, p + i, n - i, &ev);
		if (ev.bad_header)
			continue;
		t->state = RXT_TRACK;
		t->cand = seq + i;
		t->confirmed = ev.headers > 1;
		out->resync = true;
		out->confirm = t->confirmed;
		out->cand = t->cand;
		return;
	}
}

/* TRACK: walk on. True: lost again, search this packet. */
static bool rxt_walk(struct rxt *t, u8 *p, u32 n, struct rxt_out *out)
{
	struct rec_events ev = {};

	rec_feed(&t->rec, REC_WALK, p, n, &ev);
	if (ev.bad_header || t->rec.sn > RXT_PATIENCE) {
		rxt_lose(t, out);
		return true;
	}
	if (!t->confirmed && ev.headers) {
		t->confirmed = true;
		out->confirm = true;
		out->cand = t->cand;
	}
	return false;
}

/* SYNC: decrypt. True: this is no record stream any more, search. */
static bool rxt_decrypt(struct rxt *t, u8 *p, u32 n, struct rxt_out *out)
{
	struct rec_events ev = {};

	rec_feed(&t->rec, REC_DECRYPT, p, n, &ev);
	out->touched = true;
	out->bad_tags = ev.bad_tags;
	if (ev.bad_header || ev.error) {
		out->errors++;
		rxt_lose(t, out);
		return true;
	}
	out->decrypted = !ev.passed;
	return false;
}

/* A gap of @n bytes. True: it may have swallowed a header. */
static bool rxt_gap(struct rxt *t, u32 n, struct rxt_out *out)
{
	struct rec_events ev = {};

	out->gaps++;
	if (!rec_can_skip(&t->rec, n)) {
		rxt_lose(t, out);
		return true;
	}
	rec_skip(&t->rec, n, &ev);
	out->hops++;
	return false;
}

static bool rxt_in_step(struct rxt *t, u32 seq, u8 *p, u32 n, struct rxt_out *out)
{
	s32 ahead = (s32)(seq - t->next);
	u32 old = ahead < 0 ? -ahead : 0;
	bool lost;

	if (old >= n) {
		out->old++;
		return true;
	}
	if (ahead > 0 && rxt_gap(t, ahead, out))
		return false;
	lost = t->state == RXT_SYNC ? rxt_decrypt(t, p + old, n - old, out) :
				      rxt_walk(t, p + old, n - old, out);
	if (old) {
		/* Half old, half new: the new half counts, the packet goes up as it came. */
		out->old++;
		out->decrypted = false;
	}
	t->next = seq + n;
	return !lost;
}

/*
 * A packet that was decrypted in part when the stream was lost is searched in its damaged
 * form: at worst a header of the part that follows the damage is found one packet later.
 */
void rxt_packet(struct rxt *t, u32 seq, u8 *p, u32 n, struct rxt_out *out)
{
	memset(out, 0, sizeof(*out));
	if (!n)
		return;
	if (t->state != RXT_LOST && rxt_in_step(t, seq, p, n, out))
		return;
	out->decrypted = false;
	rxt_search(t, seq, p, n, out);
}

bool rxt_answer(struct rxt *t, u32 seq, u64 sn)
{
	if (t->state != RXT_TRACK || seq != t->cand)
		return false;
	t->rec.sn += sn;
	t->rec.blind = t->rec.off > 0;
	t->state = RXT_SYNC;
	return true;
}

bool rxt_record_starts(const struct rxt *t, u32 seq, u32 n)
{
	return t->state != RXT_LOST && seq == t->next && rec_starts_within(&t->rec, n);
}
