// SPDX-License-Identifier: GPL-2.0-only
/*
 * Driver half, transmit: is this packet to be encrypted, is it the one that the silicon
 * expects, and if not, what must be replayed first. Model: mlx5.
 */
#include <linux/tcp.h>
#include <net/tcp.h>
#include <net/tls.h>

#include "compat.h"
#include "nicsim.h"

/* Plaintext of @record up to @seq, with references: the record may be acknowledged any time. */
static void nicsim_take_frags(struct nicsim_replay *replay, struct tls_record_info *record, u32 seq)
{
	s32 left = seq - tls_record_start_seq(record);

	while (left > 0) {
		skb_frag_t *frag = &replay->frags[replay->n_frags];

		*frag = record->frags[replay->n_frags];
		get_page(skb_frag_page(frag));
		left -= skb_frag_size(frag);
		if (left < 0)
			skb_frag_size_add(frag, left);
		replay->n_frags++;
	}
}

enum nicsim_ooo { OOO_REPLAY, OOO_SKIP, OOO_DROP };

/* See mlx5 tx_sync_info_get() for the three cases around the start marker. */
static enum nicsim_ooo nicsim_ooo_lookup(struct tls_offload_context_tx *tls_tx, u32 seq, u32 len,
					 struct nicsim_replay *replay)
{
	enum nicsim_ooo verdict = OOO_DROP;
	struct tls_record_info *record;
	unsigned long flags;

	spin_lock_irqsave(&tls_tx->lock, flags);
	record = tls_get_record(tls_tx, seq, &replay->sn);
	if (!record)
		goto out;
	if (tls_record_is_start_marker(record)) {
		if (before(seq + len - 1, tls_record_start_seq(record)))
			verdict = OOO_SKIP;
	} else if (!before(seq, tls_record_start_seq(record))) {
		nicsim_take_frags(replay, record, seq);
		verdict = OOO_REPLAY;
	}
out:
	spin_unlock_irqrestore(&tls_tx->lock, flags);
	return verdict;
}

static enum nicsim_ooo nicsim_out_of_order(struct nicsim_ktls *ctx, struct tls_context *tls,
					   struct sk_buff *skb, u32 seq, u32 len)
{
	struct nicsim *ns = ctx->ns;
	struct nicsim_replay *replay = kzalloc(sizeof(*replay), GFP_ATOMIC);
	enum nicsim_ooo verdict;

	nicsim_count(ns, CTR_TX_TLS_OOO, 1);
	if (!replay)
		return OOO_DROP;
	verdict = nicsim_ooo_lookup(tls_offload_ctx_tx(tls), seq, len, replay);
	if (verdict == OOO_SKIP)
		nicsim_count(ns, CTR_TX_TLS_SKIP_NO_SYNC, 1);
	if (verdict == OOO_DROP)
		nicsim_count(ns, CTR_TX_TLS_DROP_NO_SYNC, 1);
	/* Older than the keys, yet to be encrypted: mlx5 drops it. ESP in front looks like that. */
	if (verdict == OOO_SKIP && skb->decrypted)
		verdict = OOO_DROP;
	if (verdict != OOO_REPLAY ||
	    nicsim_acts(ns, &ctx->fault.drv, READ_ONCE(ns->knobs.tx_ooo_leak))) {
		nicsim_txd(skb)->replay = replay;
		nicsim_txd_free(skb);
		return verdict == OOO_REPLAY ? OOO_SKIP : verdict;
	}
	nicsim_txd(skb)->replay = replay;
	return OOO_REPLAY;
}

static void nicsim_count_tx(struct nicsim *ns, struct sk_buff *skb, u32 len)
{
	nicsim_count(ns, CTR_TX_TLS_PACKETS, skb_is_gso(skb) ? skb_shinfo(skb)->gso_segs : 1);
	nicsim_count(ns, CTR_TX_TLS_BYTES, len);
}

/* Lying counters: 1 counts nothing, 2 all TCP data, offloaded or not, 3 everything twice. */
static struct sk_buff *nicsim_not_ours(struct nicsim *ns, struct sk_buff *skb)
{
	if (READ_ONCE(ns->knobs.tx_count) == 2 && nicsim_tcp_data(skb))
		nicsim_count_tx(ns, skb, skb->len - skb_tcp_all_headers(skb));
	return skb;
}

/* Those of a packet that is ours. */
static void nicsim_count_ours(struct nicsim_ktls *ctx, struct sk_buff *skb, u32 len)
{
	u32 lie = nicsim_gated(ctx->ns, &ctx->fault.drv, READ_ONCE(ctx->ns->knobs.tx_count));

	if (lie == 1 || lie == 3)
		nicsim_fired(ctx->ns);
	if (lie != 1)
		nicsim_count_tx(ctx->ns, skb, len);
	if (lie == 3)
		nicsim_count_tx(ctx->ns, skb, len);
}

static struct sk_buff *nicsim_drop(struct sk_buff *skb)
{
	dev_kfree_skb_any(skb);
	return NULL;
}

/* Returns the packet to put in the ring, perhaps with a descriptor; NULL if it was dropped. */
/* The card encrypts it: its descriptor holds the context until then. */
static struct sk_buff *nicsim_ours(struct nicsim_ktls *ctx, struct sk_buff *skb, u32 seq, u32 len)
{
	kref_get(&ctx->ref);
	nicsim_txd(skb)->ctx = ctx;
	ctx->tx.expected_seq = seq + len;
	nicsim_count_ours(ctx, skb, len);
	nicsim_fault_burn(ctx->ns);
	return skb;
}

/* A fault: software's ciphertext, which left before the card had its key, gets it on top. */
static struct sk_buff *nicsim_twice(struct nicsim_ktls *ctx, struct sk_buff *skb)
{
	kref_get(&ctx->ref);
	nicsim_txd(skb)->ctx = ctx;
	nicsim_txd(skb)->early = true;
	return skb;
}

struct sk_buff *nicsim_ktls_tx(struct nicsim *ns, struct sk_buff *skb)
{
	struct net_device *owner;
	struct nicsim_ktls *ctx;
	struct tls_context *tls;
	u32 seq, len;

	if (!nicsim_tx_offloaded(skb))
		return nicsim_not_ours(ns, skb);
	len = skb->len - skb_tcp_all_headers(skb);
	if (!len)
		return skb;
	tls = tls_get_ctx(skb->sk);
	owner = rcu_dereference_bh(tls->netdev);
	/*
	 * Another device's context: the route moved and tls_validate_xmit_skb() has encrypted
	 * it. NULL: tls_device_down() runs in parallel, go on.
	 */
	if (owner && owner != ns->host)
		return skb;
	ctx = *(struct nicsim_ktls **)__tls_driver_ctx(tls, TLS_OFFLOAD_CTX_DIR_TX);
	if (!ctx)
		return nicsim_drop(skb);
	seq = ntohl(tcp_hdr(skb)->seq);
	nicsim_when_packet(&ctx->fault.drv, ctx, skb_network_header(skb), tcp_hdrlen(skb),
			   before(seq, ctx->tx.expected_seq));
	/* A data path without a call for TLS, as nfp's NFDK: nothing encrypted, nothing counted. */
	if (nicsim_acts(ns, &ctx->fault.drv, READ_ONCE(ns->knobs.tx_unseen)))
		return skb;
	if (nicsim_acts(ns, &ctx->fault.drv, READ_ONCE(ns->knobs.tx_soft))) {
		nicsim_count_tx(ns, skb, len);
		return tls_encrypt_skb(skb);
	}
	if (nicsim_fault_leaks(ctx))
		return skb;
	if (seq != ctx->tx.expected_seq || READ_ONCE(ctx->tx.stalled)) {
		switch (nicsim_out_of_order(ctx, tls, skb, seq, len)) {
		case OOO_REPLAY:
			break;
		case OOO_SKIP:
			return nicsim_fault_early(ctx) ? nicsim_twice(ctx, skb) : skb;
		case OOO_DROP:
			return nicsim_drop(skb);
		}
	}
	return nicsim_ours(ctx, skb, seq, len);
}
