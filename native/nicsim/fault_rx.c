// SPDX-License-Identifier: GPL-2.0-only
/* Faults of the receive side, all in the silicon. README.md tells their stories. */
#include "nicsim.h"

/* The next packet: does it hold payload of one record, and nothing else? */
static bool nicsim_inner(const struct rxt *rxt, u32 seq, u32 n)
{
	const struct rec *rec = &rxt->rec;

	return rxt->state == RXT_SYNC && seq == rxt->next && !rec->blind &&
	       rec->off >= REC_PREFIX && rec->off + n <= rec->len - REC_TAG;
}

/* The rest of the record at hand passes as it is: the second to begin is decrypted as a whole. */
void nicsim_fault_rx_answered(struct nicsim_ktls *ctx)
{
	ctx->fault.resynced = READ_ONCE(ctx->ns->knobs.rx_resync_ks) ? 2 : 0;
}

static void nicsim_spoil(void *arg, struct rec *rec)
{
	struct nicsim_ktls *ctx = arg;

	if (nicsim_fires(&ctx->fault.resynced) ||
	    nicsim_fault_picks(ctx, rec->len - REC_HEADER - REC_OVERHEAD))
		rec->skew = 1;
	if (nicsim_fault_orphaned(ctx))
		rec->nonce_xor = 0x80;
}

void nicsim_fault_rx_before(struct nicsim_ktls *ctx, u32 seq, u32 n)
{
	const struct nicsim_knobs *knobs = &ctx->ns->knobs;
	struct rec *rec = &ctx->rx.rxt.rec;

	rec->spoil = nicsim_spoil;
	rec->spoil_arg = ctx;
	rec->tag_checked = READ_ONCE(knobs->rx_short_tag) ? 4 : REC_TAG;
	ctx->fault.inner = nicsim_inner(&ctx->rx.rxt, seq, n);
}

/* Hand up the bytes that an earlier packet left in the buffer. */
static void nicsim_stale(struct nicsim_ktls *ctx, u8 *payload, u32 n, u32 every)
{
	struct nicsim_fault_ctx *fault = &ctx->fault;
	u8 *kept = nicsim_fault_kept(ctx);

	if (!kept || n > NICSIM_KEPT)
		return;
	if (nicsim_every(&fault->count, every)) {
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
	u32 stale = READ_ONCE(knobs->rx_stale);

	if (stale && ctx->fault.inner)
		nicsim_stale(ctx, payload, n, stale);
	if (READ_ONCE(knobs->rx_garble))
		payload[n / 2] ^= 0x01;
}
