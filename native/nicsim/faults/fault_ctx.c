// SPDX-License-Identifier: GPL-2.0-only
/* Faults of whole contexts, and what is remembered of one. README.md tells their stories. */
#include "nicsim.h"

/* Half of a long key is used. */
unsigned int nicsim_fault_key_len(struct nicsim *ns, unsigned int len)
{
	if (!READ_ONCE(ns->knobs.aes256_as_128) || len <= 16)
		return len;
	nicsim_fired(ns);
	return 16;
}

/* Before there is a context; @dir as the knob has it. */
bool nicsim_fault_refuses(struct nicsim *ns, const struct sock *sk, unsigned int key_len,
			  u32 dir)
{
	struct nicsim_at at = {};

	if (!(READ_ONCE(ns->knobs.refuse_add) & dir))
		return false;
	nicsim_when_born(&at, ns, sk, key_len);
	at.is[WHEN_NTH]++;	/* as if it were there */
	return nicsim_acts(ns, &at, 1);
}

/* Before the first packet. @key_len is what the kernel asked for. */
void nicsim_fault_ctx_init(struct nicsim_ktls *ctx, const struct sock *sk, u32 start_seq,
			   unsigned int key_len)
{
	struct nicsim_fault_ctx *fault = &ctx->fault;

	nicsim_when_born(&fault->at, ctx->ns, sk, key_len);
	fault->drv = fault->at;
	memcpy(fault->born, ctx->ns->fault.events, sizeof(fault->born));
	fault->number = atomic_inc_return(&ctx->ns->fault.numbers);
	fault->start_seq = start_seq;
	fault->newest = start_seq;
}

/* The card has lost the key of this context, and does not know it. */
bool nicsim_fault_orphaned(struct nicsim_ktls *ctx)
{
	const struct nicsim_knobs *knobs = &ctx->ns->knobs;
	netdev_features_t need = ctx->dir == TLS_OFFLOAD_CTX_DIR_TX ? NETIF_F_HW_TLS_TX :
								      NETIF_F_HW_TLS_RX;
	u32 limit = READ_ONCE(knobs->ctx_limit_hard);
	bool lost = limit && ctx->fault.at.is[WHEN_NTH] > limit;
	bool wiped = READ_ONCE(knobs->off_drops) && !(ctx->ns->host->features & need);

	return nicsim_bad(ctx, lost || wiped);
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
