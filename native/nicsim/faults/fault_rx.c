// SPDX-License-Identifier: GPL-2.0-only
/* Faults of the receive side, all in the silicon. README.md tells their stories. */
#include "nicsim.h"

/* The next packet: does it hold payload of one record, and nothing else? */
static bool nicsim_inner(const struct rxt *rxt, u32 seq, u32 n)
{
	const struct rec *rec = &rxt->rec;

	return rxt->state == RXT_SYNC && seq == rxt->next && !rec->blind &&
	       rec->off >= rec_prefix(rec) && rec->off + n <= rec->len - REC_TAG;
}

/* The rest of the present record passes as it is: the second to begin is decrypted as a whole. */
void nicsim_fault_rx_answered(struct nicsim_ktls *ctx)
{
	nicsim_when_hole(ctx);
	ctx->fault.resynced = READ_ONCE(ctx->ns->knobs.rx_resync_ks) ? 2 : 0;
}

/* How much of a tag is compared: nothing of it, a part, or all. */
static u32 nicsim_checked(struct nicsim_ktls *ctx)
{
	const struct nicsim_knobs *knobs = &ctx->ns->knobs;

	if (nicsim_gated(ctx->ns, &ctx->fault.at, READ_ONCE(knobs->rx_noauth)))
		return 0;
	return nicsim_gated(ctx->ns, &ctx->fault.at, READ_ONCE(knobs->rx_short_tag)) ? 4 : REC_TAG;
}

static void nicsim_spoil_received(void *arg, struct rec *rec)
{
	struct nicsim_ktls *ctx = arg;
	const struct nicsim_knobs *knobs = &ctx->ns->knobs;

	nicsim_when_record(ctx, rec);
	rec->tag_checked = nicsim_checked(ctx);
	if (nicsim_bad(ctx, nicsim_fires(&ctx->fault.resynced)) ||
	    nicsim_bad(ctx, READ_ONCE(knobs->rx_ks)))
		rec->skew = 1;
	if (nicsim_fault_orphaned(ctx))
		rec->nonce_xor = 0x80;
}

/* A packet of the stream has come; what it holds is data of TCP from @seq on. */
void nicsim_fault_rx_packet(struct nicsim_ktls *ctx, const u8 *ip, u32 tcp_bytes, u32 seq)
{
	nicsim_when_packet(&ctx->fault.at, ctx, ip, tcp_bytes, before(seq, ctx->rx.rxt.next));
	nicsim_when_turn(ctx);
}

/* Is this packet left to software, as if the card did not know the stream? */
bool nicsim_fault_rx_passes(struct nicsim_ktls *ctx)
{
	return nicsim_bad(ctx, READ_ONCE(ctx->ns->knobs.rx_pass));
}

/* The rest of a record: what a condition of its later frames decides. */
static void nicsim_spoil_later(struct nicsim_ktls *ctx, struct rec *rec)
{
	if (rec->off < rec_prefix(rec) || !nicsim_bad(ctx, READ_ONCE(ctx->ns->knobs.rx_ks)))
		return;
	rec->skew = 1;
	rec->gcm.skew = 1;
}

void nicsim_fault_rx_before(struct nicsim_ktls *ctx, u32 seq, u32 n)
{
	struct rec *rec = &ctx->rx.rxt.rec;

	rec->spoil = nicsim_spoil_received;
	rec->spoil_arg = ctx;
	nicsim_when_frame(ctx, rec, n, seq - ctx->fault.start_seq);
	nicsim_spoil_later(ctx, rec);
	rec->tag_checked = nicsim_checked(ctx);
	rec->tag_spared = 0;
	ctx->fault.inner = nicsim_inner(&ctx->rx.rxt, seq, n);
}

/* What the tracker made of it. */
void nicsim_fault_rx_out(struct nicsim_ktls *ctx, const struct rxt_out *out)
{
	if (out->gaps || out->resync)
		nicsim_when_hole(ctx);
	if (ctx->rx.rxt.rec.tag_spared)
		nicsim_fired(ctx->ns);
}

/* Hand up the bytes that an earlier packet left in the buffer. */
static void nicsim_stale(struct nicsim_ktls *ctx, u8 *payload, u32 n, u32 every)
{
	struct nicsim_fault_ctx *fault = &ctx->fault;
	u8 *kept = nicsim_fault_kept(ctx);

	if (!kept || n > NICSIM_KEPT)
		return;
	if (nicsim_every(&fault->count, every)) {
		nicsim_fired(ctx->ns);
		memcpy(payload, kept, min(n, fault->kept_to));
		return;
	}
	memcpy(kept, payload, n);
	fault->kept_to = n;
}

/* The packet is authentic and decrypted. */
void nicsim_fault_rx_after(struct nicsim_ktls *ctx, u8 *payload, u32 n)
{
	const struct nicsim_knobs *knobs = &ctx->ns->knobs;
	u32 stale = nicsim_gated(ctx->ns, &ctx->fault.at, READ_ONCE(knobs->rx_stale));

	if (stale && ctx->fault.inner)
		nicsim_stale(ctx, payload, n, stale);
	if (nicsim_bad(ctx, READ_ONCE(knobs->rx_garble)))
		payload[n / 2] ^= 0x01;
}
