// SPDX-License-Identifier: GPL-2.0-only
/* Faults of whole contexts, and what is remembered of one. README.md tells their stories. */
#include "nicsim.h"

/* Half of a long key is used. */
unsigned int nicsim_fault_key_len(const struct nicsim *ns, unsigned int len)
{
	return READ_ONCE(ns->knobs.aes256_as_128) ? min(len, 16U) : len;
}

/* Before the first packet. @key_len is what the kernel asked for. */
void nicsim_fault_ctx_init(struct nicsim_ktls *ctx, const struct sock *sk, u32 start_seq,
			   unsigned int key_len)
{
	struct nicsim_fault_ctx *fault = &ctx->fault;
	struct nicsim_flow flow;

	nicsim_flow_of(&flow, sk);
	fault->v6 = !ipv6_addr_v4mapped(&flow.remote);
	fault->aes256 = key_len == 32;
	fault->nth = atomic_read(&ctx->ns->contexts);
	fault->queue = nicsim_flow_hash(&flow) % NICSIM_QUEUES;
	fault->start_seq = start_seq;
	fault->newest = start_seq;
}

/* Faults that meet only some connections or records: does this record get the wrong key stream? */
bool nicsim_fault_picks(const struct nicsim_ktls *ctx, u32 payload)
{
	const struct nicsim_knobs *knobs = &ctx->ns->knobs;
	const struct nicsim_fault_ctx *fault = &ctx->fault;
	u32 many = READ_ONCE(knobs->many_bad);

	return (fault->aes256 && READ_ONCE(knobs->aes256_bad)) ||
	       (fault->v6 && READ_ONCE(knobs->v6_bad)) ||
	       (payload < 256 && READ_ONCE(knobs->small_bad)) ||
	       (many && fault->nth >= many) ||
	       READ_ONCE(knobs->queue_bad) == fault->queue + 1;
}

/* The card has lost the key of this context, and does not know it. */
bool nicsim_fault_orphaned(const struct nicsim_ktls *ctx)
{
	const struct nicsim_knobs *knobs = &ctx->ns->knobs;
	netdev_features_t need = ctx->dir == TLS_OFFLOAD_CTX_DIR_TX ? NETIF_F_HW_TLS_TX :
								      NETIF_F_HW_TLS_RX;
	u32 limit = READ_ONCE(knobs->ctx_limit_hard);

	return (limit && ctx->fault.nth > limit) ||
	       (READ_ONCE(knobs->off_drops) && !(ctx->ns->host->features & need));
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
