// SPDX-License-Identifier: GPL-2.0-only
/* Faults of the transmit side. README.md tells how a real card comes to each of them. */
#include <linux/delay.h>

#include "nicsim.h"

/* A record of 16384 bytes with all that belongs to it. */
static u32 nicsim_full(const struct rec *rec)
{
	return REC_HEADER + rec_overhead(rec) + REC_MAX_PAYLOAD;
}

/* Driver: this packet of a context goes to the ring without its context, as plaintext. */
bool nicsim_fault_leaks(struct nicsim_ktls *ctx)
{
	const struct nicsim_knobs *knobs = &ctx->ns->knobs;
	bool first = !ctx->fault.started;
	bool off = !(ctx->ns->host->features & NETIF_F_HW_TLS_TX);

	ctx->fault.started = true;
	return nicsim_acts(ctx->ns, &ctx->fault.drv,
			   (first && READ_ONCE(knobs->tx_first_leak)) ||
			   (off && READ_ONCE(knobs->tx_toggle_leak)));
}

/* Host CPU that no offload should need; no more than 10 ms, since interrupts wait. */
void nicsim_fault_burn(struct nicsim *ns)
{
	u32 left = min(READ_ONCE(ns->knobs.burn), 10000U);

	while (left--)
		udelay(1);
}

/* What the ring remembers: a copy, without its context. */
static void nicsim_remember(struct nicsim *ns, struct sk_buff *skb)
{
	struct sk_buff *copy = skb_copy(skb, GFP_KERNEL);

	if (copy)
		memset(nicsim_txd(copy), 0, sizeof(struct nicsim_txd));
	kfree_skb(xchg(&ns->fault.last, copy));
}

/*
 * What is decided once a record begins, and again as each further frame of it does: nothing of
 * what it decided before holds on.
 */
static void nicsim_spoil_record(struct nicsim_ktls *ctx, struct rec *rec)
{
	const struct nicsim_knobs *knobs = &ctx->ns->knobs;
	u32 tags = READ_ONCE(knobs->tx_bad_tag), nonces = READ_ONCE(knobs->tx_wrong_nonce);

	rec->faults &= ~REC_FAULT_LEAK;
	if (nicsim_bad(ctx, READ_ONCE(knobs->tx_leak)))
		rec->faults |= REC_FAULT_LEAK;
	rec->bad_tag_every = tags && !((rec->sn + 1) % tags) && nicsim_bad(ctx, tags);
	if (nonces && !((rec->sn + 1) % nonces) && nicsim_bad(ctx, nonces))
		rec->nonce_xor = 0x80;
	if (rec->len == nicsim_full(rec) && nicsim_bad(ctx, READ_ONCE(knobs->tx_full_ks))) {
		rec->skew = 1;
		rec->skew_from = REC_MAX_PAYLOAD - GCM_BLOCK;
	}
	if (nicsim_bad(ctx, READ_ONCE(knobs->tx_ks))) {
		rec->skew = 1;
		rec->skew_from = 0;
	}
}

static void nicsim_spoil(void *arg, struct rec *rec)
{
	struct nicsim_ktls *ctx = arg;

	nicsim_when_record(ctx, rec);
	nicsim_spoil_record(ctx, rec);
	if (nicsim_fault_orphaned(ctx))
		rec->nonce_xor = 0x80;
}

/* A packet with @len bytes of payload is next. */
void nicsim_fault_tx_packet(struct nicsim_ktls *ctx, struct sk_buff *skb, u32 len)
{
	u32 end = ntohl(tcp_hdr(skb)->seq) + len;

	ctx->tx.rec.spoil = nicsim_spoil;
	ctx->tx.rec.spoil_arg = ctx;
	nicsim_when_packet(&ctx->fault.at, ctx, skb_network_header(skb), tcp_hdrlen(skb),
			   !after(end, ctx->fault.newest));
	nicsim_when_turn(ctx);
}

/* It has left. True: it leaves once more, as plaintext. */
bool nicsim_fault_tx_again(struct nicsim_ktls *ctx, struct sk_buff *skb, u32 len)
{
	u32 seq = ntohl(tcp_hdr(skb)->seq);
	bool jumps = after(seq, ctx->fault.newest);

	if (after(seq + len, ctx->fault.newest))
		ctx->fault.newest = seq + len;
	/* Not the end of a record alone: that would tell nothing. */
	if (len >= 1000 && READ_ONCE(ctx->ns->knobs.tx_down_leak))
		nicsim_remember(ctx->ns, skb);
	return jumps && nicsim_bad(ctx, READ_ONCE(ctx->ns->knobs.tx_route_leak));
}

void nicsim_fault_link_up(struct nicsim *ns)
{
	struct sk_buff *last = xchg(&ns->fault.last, NULL);

	if (!last)
		return;
	nicsim_fired(ns);
	skb_queue_tail(&ns->txq, last);
	wake_up(&ns->wait);
}

/* The engine is at the start of a record that will be brought up to @seq. */
void nicsim_fault_tx_replay(struct nicsim_ktls *ctx, u32 seq)
{
	const struct nicsim_knobs *knobs = &ctx->ns->knobs;

	ctx->fault.sn = ctx->tx.rec.sn;
	ctx->fault.off = 0;
	nicsim_when_hole(ctx);
	ctx->tx.rec.skew = nicsim_bad(ctx, READ_ONCE(knobs->tx_ooo_ks)) ? 1 : 0;
	ctx->tx.rec.renonce = nicsim_bad(ctx, READ_ONCE(knobs->tx_ooo_other)) ? 0x80 : 0;
}

/* One bit of plaintext, so that what is sent is authentic. */
static void nicsim_spoil_payload(struct nicsim_ktls *ctx, u8 *p, u32 n, u32 index)
{
	const struct nicsim_knobs *knobs = &ctx->ns->knobs;
	struct nicsim_fault *fault = &ctx->ns->fault;
	const struct rec *rec = &ctx->tx.rec;
	u32 rare = READ_ONCE(knobs->tx_rare), most = READ_ONCE(knobs->tso_bad);

	fault->rare += n;
	if (rec->blind || rec->off < rec_prefix(rec) || rec->off >= rec->len - REC_TAG)
		return;
	if (most && index >= most && nicsim_bad(ctx, most))
		p[0] ^= 0x01;
	if (rare && fault->rare >> 20 >= rare && nicsim_bad(ctx, rare)) {
		p[0] ^= 0x01;
		fault->rare = 0;
	}
}

/* The rest of a record: what a condition of its later frames decides. */
static void nicsim_spoil_rest(struct nicsim_ktls *ctx, struct rec *rec)
{
	u8 nonce_xor = rec->nonce_xor;

	if (rec->off < rec_prefix(rec))
		return;
	if (rec->len - rec->off < REC_TAG) {
		if (nicsim_bad(ctx, READ_ONCE(ctx->ns->knobs.tx_tail) & NICSIM_TAIL_BEGINS))
			rec->tag[REC_TAG - 1] ^= 0x10;
		return;
	}
	nicsim_spoil_record(ctx, rec);
	rec->gcm.skew = rec->skew;
	rec->gcm.skew_from = rec->skew_from;
	/* The record has begun under its nonce: another one acts from here on. */
	rec->gcm.nonce[REC_SALT] ^= nonce_xor ^ rec->nonce_xor;
}

void nicsim_fault_tx_before(struct nicsim_ktls *ctx, u8 *p, u32 n, u32 seq, u32 index)
{
	struct nicsim_fault_ctx *fault = &ctx->fault;
	struct rec *rec = &ctx->tx.rec;

	fault->pos = seq - fault->start_seq;
	nicsim_when_frame(ctx, rec, n, fault->pos);
	rec->faults &= ~REC_FAULT_NONCE;
	if (nicsim_bad(ctx, READ_ONCE(ctx->ns->knobs.tx_nonce_reuse)))
		rec->faults |= REC_FAULT_NONCE;
	nicsim_spoil_rest(ctx, rec);
	nicsim_spoil_payload(ctx, p, n, index);
}

/* Remember what is on the wire; a retransmission is the same bytes again. */
static void nicsim_keep(struct nicsim_fault_ctx *fault, const u8 *p, u32 n)
{
	u32 i, end = fault->pos + n;

	if (fault->pos < fault->kept_from || fault->pos > fault->kept_to) {
		fault->kept_from = fault->pos;
		fault->kept_to = fault->pos;
	}
	for (i = 0; i < n; i++)
		fault->kept[(fault->pos + i) % NICSIM_KEPT] = p[i];
	fault->kept_to = max(fault->kept_to, end);
	if (fault->kept_to - fault->kept_from > NICSIM_KEPT)
		fault->kept_from = fault->kept_to - NICSIM_KEPT;
}

static bool nicsim_replays(const struct nicsim_fault_ctx *fault, u32 every, u64 sn, u32 start,
			   u32 full)
{
	const u8 header[REC_HEADER] = { 0x17, 3, 3, 0x40, full - REC_HEADER - REC_MAX_PAYLOAD };
	u32 i, before = start - full;

	if ((sn + 1) % every || start < full || before < fault->kept_from)
		return false;
	for (i = 0; i < REC_HEADER; i++) {
		if (fault->kept[(before + i) % NICSIM_KEPT] != header[i])
			return false;
	}
	return true;
}

/* Bytes @p of the record that began at @start become those of the record before it. */
static void nicsim_replay_bytes(struct nicsim_ktls *ctx, u8 *p, u32 n, u32 start)
{
	const struct nicsim_fault_ctx *fault = &ctx->fault;
	u32 i, at, full = nicsim_full(&ctx->tx.rec);

	nicsim_fired(ctx->ns);

	for (i = 0; i < n; i++) {
		at = fault->pos + i;
		if (at >= start && at - start < full && at - full >= fault->kept_from)
			p[i] = fault->kept[(at - full) % NICSIM_KEPT];
	}
}

/* The record at the end of the frame, and the one that it began with. */
static void nicsim_replay_earlier(struct nicsim_ktls *ctx, u8 *p, u32 n, u32 every)
{
	struct nicsim_fault_ctx *fault = &ctx->fault;
	const struct rec *rec = &ctx->tx.rec;
	u32 start = fault->pos - fault->off, full = nicsim_full(rec);

	if (!nicsim_fault_kept(ctx))
		return;
	nicsim_keep(fault, p, n);
	if (fault->off >= REC_HEADER && fault->len == full &&
	    nicsim_replays(fault, every, fault->sn, start, full))
		nicsim_replay_bytes(ctx, p, n, start);
	if (fault->off >= REC_HEADER && fault->sn == rec->sn)
		return;
	start = fault->pos + n - rec->off;
	if (rec->off >= REC_HEADER && rec->len == full &&
	    nicsim_replays(fault, every, rec->sn, start, full))
		nicsim_replay_bytes(ctx, p, n, start);
}

/* The frame ends inside a tag: the bytes of it that are there come too late. */
static void nicsim_spoil_cut_tag(struct nicsim_ktls *ctx, u8 *p, u32 n)
{
	const struct rec *rec = &ctx->tx.rec;
	u32 tail = READ_ONCE(ctx->ns->knobs.tx_tail) & NICSIM_TAIL_ENDS;

	if (!n || rec->off < rec_prefix(rec) || rec->off <= rec->len - REC_TAG)
		return;
	if (nicsim_bad(ctx, tail))
		p[n - 1] ^= 0x10;
}

void nicsim_fault_tx_after(struct nicsim_ktls *ctx, u8 *p, u32 n)
{
	u32 every = READ_ONCE(ctx->ns->knobs.tx_replay);

	nicsim_spoil_cut_tag(ctx, p, n);
	if (nicsim_gated(ctx->ns, &ctx->fault.at, every))
		nicsim_replay_earlier(ctx, p, n, every);
}
