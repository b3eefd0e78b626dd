// SPDX-License-Identifier: GPL-2.0-only
/*
 * The record engine: header (5) -> explicit nonce (8) -> payload -> tag (16) -> next record.
 * Framing: RFC 5246 section 6.2, AES-GCM in TLS 1.2: RFC 5288 section 3. A record of TLS 1.3
 * has no explicit nonce, and the content type behind the payload: RFC 8446 sections 5.2, 5.3.
 */
#include "record.h"

#define REC_AAD 13

void rec_reset(struct rec *r, u64 sn)
{
	r->sn = sn;
	r->off = 0;
	r->len = 0;
	r->skew = 0;
	r->skew_from = 0;
	r->nonce_xor = 0;
	r->renonce = 0;
	r->blind = false;
	r->tag_bad = false;
}

void rec_init(struct rec *r, const struct gcm_key *key, const u8 salt[REC_SALT], u64 sn)
{
	memset(r, 0, sizeof(*r));
	r->key = key;
	r->tag_checked = REC_TAG;
	memcpy(r->salt, salt, REC_SALT);
	rec_reset(r, sn);
}

void rec_tls13(struct rec *r, const u8 iv[REC_NONCE])
{
	r->tls13 = true;
	memcpy(r->iv, iv, REC_NONCE);
}

u32 rec_prefix(const struct rec *r)
{
	return r->tls13 ? REC_HEADER : REC_PREFIX;
}

u32 rec_overhead(const struct rec *r)
{
	return r->tls13 ? REC_TYPE + REC_TAG : REC_OVERHEAD;
}

static u32 rec_length(const u8 *header)
{
	return (u32)header[3] << 8 | header[4];
}

bool rec_plausible(const struct rec *r, const u8 header[REC_HEADER])
{
	u32 len = rec_length(header), overhead = rec_overhead(r);
	u8 first = r->tls13 ? 0x17 : 0x14, last = r->tls13 ? 0x17 : 0x18;

	return header[0] >= first && header[0] <= last && header[1] == 3 && header[2] == 3 &&
	       len >= overhead && len <= REC_MAX_PAYLOAD + overhead;
}

/* RFC 8446 section 5.3: what TLS 1.2 sends in the record follows from its number. */
static void rec_nonce13(struct rec *r, u8 nonce[REC_NONCE])
{
	u32 i;

	nicsim_store64(nonce, r->sn);
	for (i = 0; i < REC_NONCE; i++)
		nonce[i] ^= r->iv[i];
	nonce[0] ^= r->renonce;
	if (!(r->faults & REC_FAULT_NONCE))
		return;
	if (r->nonce_kept)
		memcpy(nonce, r->nonce0, REC_NONCE);
	else
		memcpy(r->nonce0, nonce, REC_NONCE);
	r->nonce_kept = true;
}

/* Additional data; returns how long it is: RFC 5246 section 6.2.3.3, RFC 8446 section 5.2. */
static u32 rec_aad(const struct rec *r, u8 aad[REC_AAD])
{
	u32 payload = r->len - REC_HEADER - rec_overhead(r);

	if (r->tls13) {
		memcpy(aad, r->prefix, REC_HEADER);
		return REC_HEADER;
	}
	nicsim_store64(aad, r->sn);
	memcpy(aad + 8, r->prefix, 3);
	aad[11] = payload >> 8;
	aad[12] = payload;
	return REC_AAD;
}

/* The prefix is complete. */
static void rec_begin(struct rec *r)
{
	u8 nonce[GCM_NONCE];
	u8 aad[REC_AAD];

	if (r->spoil)
		r->spoil(r->spoil_arg, r);
	memcpy(nonce, r->salt, REC_SALT);
	if (r->tls13)
		rec_nonce13(r, nonce + REC_SALT);
	else
		memcpy(nonce + REC_SALT, r->prefix + REC_HEADER, REC_NONCE);
	nonce[REC_SALT] ^= r->nonce_xor;
	gcm_start(r->key, &r->gcm, nonce, aad, rec_aad(r, aad));
	r->gcm.skew = r->skew;
	r->gcm.skew_from = r->skew_from;
}

/* A fault: every record goes out under the nonce of the first one. */
static void rec_stick_nonce(struct rec *r, u8 *p)
{
	u32 at = r->off - REC_HEADER;

	if (r->nonce_kept)
		*p = r->nonce0[at];
	else
		r->nonce0[at] = *p;
	if (at == REC_NONCE - 1)
		r->nonce_kept = true;
}

static u32 rec_feed_prefix(struct rec *r, enum rec_op op, u8 *p, u32 n, struct rec_events *ev)
{
	u32 i;

	for (i = 0; i < n && r->off < rec_prefix(r); i++) {
		if (r->off >= REC_HEADER && (r->faults & REC_FAULT_NONCE) && !r->blind)
			rec_stick_nonce(r, p + i);
		if (r->off == REC_HEADER && !r->blind)
			p[i] ^= r->renonce;
		r->prefix[r->off++] = p[i];
		if (r->off != REC_HEADER)
			continue;
		if (!rec_plausible(r, r->prefix)) {
			ev->bad_header = true;
			return i + 1;
		}
		r->len = REC_HEADER + rec_length(r->prefix);
		ev->headers++;
	}
	if (op == REC_WALK || r->blind)
		ev->passed += i;
	else if (r->off == rec_prefix(r))
		rec_begin(r);
	return i;
}

static u32 rec_feed_payload(struct rec *r, enum rec_op op, u8 *p, u32 n, struct rec_events *ev)
{
	enum gcm_op how = op == REC_DECRYPT ? GCM_DECRYPT :
			  r->faults & REC_FAULT_LEAK ? GCM_HASH_ONLY : GCM_ENCRYPT;

	n = min_t(u32, n, r->len - REC_TAG - r->off);
	if (op == REC_WALK || r->blind)
		ev->passed += n;
	else
		ev->error = gcm_crypt(r->key, &r->gcm, how, p, n);
	r->off += n;
	return n;
}

static void rec_end(struct rec *r, struct rec_events *ev)
{
	ev->records++;
	if (r->tag_bad)
		ev->bad_tags++;
	rec_reset(r, r->sn + 1);
}

static u32 rec_feed_tag(struct rec *r, enum rec_op op, u8 *p, u32 n, struct rec_events *ev)
{
	u32 at = r->off + REC_TAG - r->len;
	u32 i;

	n = min_t(u32, n, r->len - r->off);
	if (op == REC_WALK || r->blind) {
		ev->passed += n;
		goto out;
	}
	if (!at) {
		ev->error = gcm_tag(r->key, &r->gcm, r->tag);
		if (op == REC_ENCRYPT && r->bad_tag_every && !((r->sn + 1) % r->bad_tag_every))
			r->tag[7] ^= 0x10;
	}
	for (i = 0; i < n; i++) {
		if (op == REC_ENCRYPT)
			p[i] = r->tag[at + i];
		else if (p[i] != r->tag[at + i] && at + i < r->tag_checked)
			r->tag_bad = true;
		else if (p[i] != r->tag[at + i])
			r->tag_spared++;
	}
out:
	r->off += n;
	if (r->off == r->len)
		rec_end(r, ev);
	return n;
}

u32 rec_feed(struct rec *r, enum rec_op op, u8 *p, u32 n, struct rec_events *ev)
{
	u32 done = 0;

	while (done < n && !ev->bad_header && !ev->error) {
		u8 *at = p + done;
		u32 left = n - done;

		if (r->off < rec_prefix(r))
			done += rec_feed_prefix(r, op, at, left, ev);
		else if (r->off < r->len - REC_TAG)
			done += rec_feed_payload(r, op, at, left, ev);
		else
			done += rec_feed_tag(r, op, at, left, ev);
	}
	return done;
}

bool rec_can_skip(const struct rec *r, u32 n)
{
	return r->off >= REC_HEADER && n <= r->len - r->off;
}

void rec_skip(struct rec *r, u32 n, struct rec_events *ev)
{
	r->blind = true;
	r->tag_bad = false;
	r->off += n;
	if (r->off == r->len)
		rec_end(r, ev);
}

bool rec_starts_within(const struct rec *r, u32 n)
{
	if (!r->off)
		return n > 0;
	return r->off >= REC_HEADER && r->len - r->off < n;
}
