// SPDX-License-Identifier: GPL-2.0-only
/* When a fault acts: what the card works on, against the conditions of the knobs when_*. */
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <net/dsfield.h>

#include "nicsim.h"

/* Records after a hole in a stream that count as close to it. */
#define NICSIM_MENDED 8

/* The knob is the value, the least, one more than the most, or bits of which one is there. */
enum nicsim_kind { IS, LEAST, BELOW, ANY };

static const enum nicsim_kind nicsim_kinds[NICSIM_WHENS] = {
	[WHEN_NTH] = LEAST,	[WHEN_CONTEXTS] = LEAST, [WHEN_AFTER] = ANY,
	[WHEN_FRAME] = LEAST,	[WHEN_HOLDS] = ANY,	 [WHEN_BELOW] = BELOW,
	[WHEN_NUMBER] = LEAST,	[WHEN_OFFSET] = LEAST,	 [WHEN_SPAN] = LEAST,
	[WHEN_BATCH] = LEAST,	[WHEN_LOT] = LEAST,
};

static bool nicsim_meets(enum nicsim_kind kind, u32 has, u32 want)
{
	switch (kind) {
	case LEAST:
		return has >= want;
	case BELOW:
		return has < want;
	case ANY:
		return has & want;
	default:
		return has == want;
	}
}

/* Are all conditions met that are set? */
static bool nicsim_when(struct nicsim *ns, const struct nicsim_at *at)
{
	u32 i, want;

	for (i = 0; i < WHEN_EVERY; i++) {
		want = READ_ONCE(ns->knobs.when[i]);
		if (want && !nicsim_meets(nicsim_kinds[i], at->is[i], want))
			return false;
	}
	want = READ_ONCE(ns->knobs.when[WHEN_EVERY]);
	return !want || !((u32)atomic_inc_return(&ns->fault.met) % want);
}

/* The value of a knob, or 0 where its fault does not act. */
u32 nicsim_gated(struct nicsim *ns, const struct nicsim_at *at, u32 knob)
{
	return knob && nicsim_when(ns, at) ? knob : 0;
}

void nicsim_fired(struct nicsim *ns)
{
	atomic64_inc(&ns->fault.fired);
}

/* The same, of a fault that acts by being asked. */
u32 nicsim_acts(struct nicsim *ns, const struct nicsim_at *at, u32 knob)
{
	knob = nicsim_gated(ns, at, knob);
	if (knob)
		nicsim_fired(ns);
	return knob;
}

/* In the silicon. */
u32 nicsim_bad(struct nicsim_ktls *ctx, u32 knob)
{
	return nicsim_acts(ctx->ns, &ctx->fault.at, knob);
}

/* Something has happened to the port: it is older than the contexts that come from now on. */
void nicsim_fault_event(struct nicsim *ns, enum nicsim_event event)
{
	WRITE_ONCE(ns->fault.events[event], ns->fault.events[event] + 1);
}

void nicsim_when_born(struct nicsim_at *at, struct nicsim *ns, const struct sock *sk,
		      unsigned int key_len)
{
	struct nicsim_flow flow;

	nicsim_flow_of(&flow, sk);
	at->is[WHEN_KEY] = key_len * 8;
	at->is[WHEN_IP] = ipv6_addr_v4mapped(&flow.remote) ? 4 : 6;
	at->is[WHEN_QUEUE] = nicsim_flow_hash(&flow) % NICSIM_QUEUES + 1;
	at->is[WHEN_NTH] = atomic_read(&ns->contexts);
	at->is[WHEN_CONTEXTS] = at->is[WHEN_NTH];
	at->is[WHEN_MTU] = ns->host->mtu;
	at->is[WHEN_NO_TSO] = !(ns->host->features & NETIF_F_ALL_TSO);
}

/* A good card, or one that is always bad, has nothing to compare. */
static bool nicsim_is_asked(const struct nicsim *ns)
{
	return memchr_inv(ns->knobs.when, 0, sizeof(ns->knobs.when));
}

static void nicsim_when_context(struct nicsim_at *at, const struct nicsim_ktls *ctx)
{
	const struct nicsim *ns = ctx->ns;
	u32 i, after = 0;

	for (i = 0; i < NICSIM_EVENTS; i++) {
		if (READ_ONCE(ns->fault.events[i]) != ctx->fault.born[i])
			after |= BIT(i);
	}
	at->is[WHEN_AFTER] = after;
	at->is[WHEN_CONTEXTS] = atomic_read(&ns->contexts);
	at->is[WHEN_MTU] = ns->host->mtu;
	at->is[WHEN_NO_TSO] = !(ns->host->features & NETIF_F_ALL_TSO);
}

/* A packet of the context comes to the driver or to the silicon, which have an @at each. */
void nicsim_when_packet(struct nicsim_at *at, const struct nicsim_ktls *ctx, const u8 *ip,
			u32 tcp_bytes, bool again)
{
	const struct iphdr *ip4 = (const struct iphdr *)ip;

	if (!nicsim_is_asked(ctx->ns))
		return;
	nicsim_when_context(at, ctx);
	at->is[WHEN_TOS] = (ip4->version == 4 ? ip4->tos : ipv6_get_dsfield((void *)ip)) != 0;
	at->is[WHEN_IP_HEADER] = ip4->version == 4 ? ip4->ihl * 4 : sizeof(struct ipv6hdr);
	at->is[WHEN_TCP_HEADER] = tcp_bytes;
	at->is[WHEN_AGAIN] = again;
	at->is[WHEN_LOT] = 0;
	at->is[WHEN_FRAME] = 0;
}

/*
 * In the silicon: has a packet of another connection come since the last one of this?
 * Not so of its first.
 */
void nicsim_when_turn(struct nicsim_ktls *ctx)
{
	struct nicsim *ns = ctx->ns;

	ctx->fault.at.is[WHEN_TURN] = ctx->fault.moved &&
				      ns->fault.newest[ctx->dir] != ctx->fault.number;
	ctx->fault.moved = true;
	ns->fault.newest[ctx->dir] = ctx->fault.number;
}

/* The next frame has @n bytes of payload, and @rec is where it begins. */
void nicsim_when_frame(struct nicsim_ktls *ctx, const struct rec *rec, u32 n, u32 pos)
{
	struct nicsim_at *at = &ctx->fault.at;
	bool known = rec->off >= REC_HEADER;
	bool ends = known && rec->len - rec->off <= n;

	ctx->fault.sn = rec->sn;
	ctx->fault.off = rec->off;
	ctx->fault.len = rec->len;
	if (!nicsim_is_asked(ctx->ns))
		return;
	at->is[WHEN_FRAME]++;
	at->is[WHEN_SPAN]++;
	at->is[WHEN_BATCH] = 0;
	at->is[WHEN_OFFSET] = fls(pos);
	at->is[WHEN_TAG_CUT] = known && rec->off > rec->len - REC_TAG ?
			       rec->off + REC_TAG - rec->len : 0;
	at->is[WHEN_HOLDS] = (rec_starts_within(rec, n) ? NICSIM_HOLDS_HEADER : 0) |
			     (ends ? NICSIM_HOLDS_TAG : 0);
	if (!at->is[WHEN_HOLDS])
		at->is[WHEN_HOLDS] = NICSIM_HOLDS_NEITHER;
}

/* A record begins in the present frame. */
void nicsim_when_record(struct nicsim_ktls *ctx, const struct rec *rec)
{
	struct nicsim_at *at = &ctx->fault.at;
	bool first = ctx->fault.sn == rec->sn;

	if (!nicsim_is_asked(ctx->ns))
		return;
	at->is[WHEN_RECORD] = rec->len - REC_HEADER - rec_overhead(rec);
	at->is[WHEN_BELOW] = at->is[WHEN_RECORD];
	at->is[WHEN_NUMBER] = fls64(rec->sn);
	at->is[WHEN_HEADER_CUT] = first && ctx->fault.off < REC_HEADER ? ctx->fault.off : 0;
	at->is[WHEN_INSIDE] = !(first && !ctx->fault.off);
	at->is[WHEN_SPAN] = 1;
	at->is[WHEN_BATCH]++;
	at->is[WHEN_LOT]++;
	at->is[WHEN_MENDED] = ctx->fault.mended > 0;
	if (ctx->fault.mended)
		ctx->fault.mended--;
}

/* There was a hole in the stream, or it jumped. */
void nicsim_when_hole(struct nicsim_ktls *ctx)
{
	ctx->fault.mended = NICSIM_MENDED;
}
