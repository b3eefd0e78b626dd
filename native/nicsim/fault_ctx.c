// SPDX-License-Identifier: GPL-2.0-only
/* What the faults remember of a context and of an adapter: its life. */
#include "nicsim.h"

/* Before the first packet. */
void nicsim_fault_ctx_init(struct nicsim_ktls *ctx, u32 start_seq)
{
	ctx->fault.start_seq = start_seq;
	ctx->fault.newest = start_seq;
}

/* Room for NICSIM_KEPT bytes, made when it is asked for first; NULL if there is none. */
u8 *nicsim_fault_kept(struct nicsim_ktls *ctx)
{
	if (!ctx->fault.kept)
		ctx->fault.kept = kzalloc(NICSIM_KEPT, GFP_KERNEL);
	return ctx->fault.kept;
}

void nicsim_fault_ctx_exit(struct nicsim_ktls *ctx)
{
	kfree_sensitive(ctx->fault.kept);
}

/* A good card again: at reset, and before the adapter goes. */
void nicsim_fault_reset(struct nicsim *ns)
{
	kfree_skb(xchg(&ns->fault.last, NULL));
}
