// SPDX-License-Identifier: GPL-2.0-only
/*
 * Receive: which stream a frame belongs to (silicon), what the completion says to the TLS
 * core (driver, in NAPI), and the core's answers. Model: mlx5, asynchronous resync.
 */
#include <net/ipv6.h>
#include <net/tls.h>

#include "compat.h"
#include "nicsim.h"

void nicsim_ktls_rx_add(struct nicsim_ktls *ctx, struct sock *sk)
{
	struct tls_offload_context_rx *core = tls_offload_ctx_rx(tls_get_ctx(sk));
	struct nicsim *ns = ctx->ns;

	spin_lock_init(&ctx->rx.lock);
	/* The core's receive context lives as long as the socket. */
	sock_hold(sk);
	ctx->rx.sk = sk;
	core->resync_async = &ctx->rx.async;
	tls_offload_rx_resync_set_type(sk, TLS_OFFLOAD_SYNC_TYPE_DRIVER_REQ_ASYNC);
	nicsim_flow_of(&ctx->rx.flow, sk);
	spin_lock_bh(&ns->rx_lock);
	hash_add(ns->rx_table, &ctx->rx.node, nicsim_flow_hash(&ctx->rx.flow));
	spin_unlock_bh(&ns->rx_lock);
}

void nicsim_ktls_rx_del(struct nicsim_ktls *ctx)
{
	struct nicsim *ns = ctx->ns;

	WRITE_ONCE(ctx->rx.dead, true);
	spin_lock_bh(&ns->rx_lock);
	hash_del(&ctx->rx.node);
	spin_unlock_bh(&ns->rx_lock);
}

/* The contexts live on; no frame finds them any more. */
void nicsim_ktls_rx_drop_rules(struct nicsim *ns)
{
	struct nicsim_ktls *ctx;
	struct hlist_node *next;
	unsigned int i;

	spin_lock_bh(&ns->rx_lock);
	hash_for_each_safe(ns->rx_table, i, next, ctx, rx.node)
		hash_del(&ctx->rx.node);
	spin_unlock_bh(&ns->rx_lock);
}

/* With a reference. */
struct nicsim_ktls *nicsim_ktls_rx_find(struct nicsim *ns, const struct nicsim_flow *flow)
{
	struct nicsim_ktls *ctx, *found = NULL;

	spin_lock_bh(&ns->rx_lock);
	hash_for_each_possible(ns->rx_table, ctx, rx.node, nicsim_flow_hash(flow)) {
		if (!memcmp(&ctx->rx.flow, flow, sizeof(*flow))) {
			kref_get(&ctx->ref);
			found = ctx;
			break;
		}
	}
	spin_unlock_bh(&ns->rx_lock);
	return found;
}

/* From the receive path, under the socket lock or in softirq: note it and return. */
void nicsim_ktls_rx_answer(struct nicsim_ktls *ctx, u32 seq, u64 sn)
{
	struct nicsim_knobs *knobs = &ctx->ns->knobs;

	if (nicsim_bad(ctx, READ_ONCE(knobs->rx_noresync)))
		return;
	spin_lock_bh(&ctx->rx.lock);
	ctx->rx.answer_seq = seq;
	ctx->rx.answer_sn = sn + (nicsim_bad(ctx, READ_ONCE(knobs->rx_bad_sn)) ? 1 : 0);
	ctx->rx.answered = true;
	spin_unlock_bh(&ctx->rx.lock);
}

/* A fault: the answer takes effect N packets late, under the lock. */
static bool nicsim_waits(struct nicsim_ktls_rx *rx, u32 late)
{
	if (!rx->answered || rx->waited++ >= late) {
		rx->waited = 0;
		return false;
	}
	return true;
}

static void nicsim_take_answer(struct nicsim_ktls *ctx)
{
	u32 late = nicsim_gated(ctx->ns, &ctx->fault.at, READ_ONCE(ctx->ns->knobs.rx_late_resync));
	struct nicsim_ktls_rx *rx = &ctx->rx;
	bool answered;
	u32 seq;
	u64 sn;

	spin_lock_bh(&rx->lock);
	if (nicsim_waits(rx, late)) {
		spin_unlock_bh(&rx->lock);
		return;
	}
	answered = rx->answered;
	seq = rx->answer_seq;
	sn = rx->answer_sn;
	rx->answered = false;
	spin_unlock_bh(&rx->lock);
	if (!answered)
		return;
	/* And it is taken for the record that the card has come to by then. */
	if (late) {
		nicsim_fired(ctx->ns);
		sn -= rx->rxt.rec.sn;
	}
	if (!rxt_answer(&rx->rxt, seq, sn)) {
		nicsim_count(ctx->ns, CTR_RX_TLS_RES_SKIP, 1);
		return;
	}
	nicsim_count(ctx->ns, CTR_RX_TLS_RES_OK, 1);
	nicsim_fault_rx_answered(ctx);
}

static void nicsim_count_out(struct nicsim *ns, const struct rxt_out *out)
{
	nicsim_count(ns, CTR_SIM_RX_GAPS, out->gaps);
	nicsim_count(ns, CTR_SIM_RX_HOPS, out->hops);
	nicsim_count(ns, CTR_SIM_RX_LOST, out->lost);
	nicsim_count(ns, CTR_SIM_RX_OLD, out->old);
	nicsim_count(ns, CTR_SIM_RX_BAD_TAGS, out->bad_tags);
	nicsim_count(ns, CTR_RX_TLS_REQ_SKIP, out->req_skip);
}

/* A fault: a context that was in sync once and loses it stays in software. */
static bool nicsim_gives_up(struct nicsim_ktls *ctx, const struct rxt_out *out)
{
	ctx->rx.worked |= out->decrypted;
	ctx->rx.stuck = out->lost && ctx->rx.worked &&
			nicsim_bad(ctx, READ_ONCE(ctx->ns->knobs.rx_stay_sw));
	return ctx->rx.stuck;
}

/* Silicon: track and decrypt @payload in place, write the completion. */
void nicsim_ktls_rx_hw(struct nicsim_ktls *ctx, struct nicsim_rxd *rxd, u8 *payload,
		       struct rxt_out *out)
{
	struct nicsim *ns = ctx->ns;
	bool good;

	memset(out, 0, sizeof(*out));
	if (ctx->rx.stuck)
		return;
	nicsim_take_answer(ctx);
	nicsim_fault_rx_before(ctx, rxd->seq, rxd->len);
	rxt_packet(&ctx->rx.rxt, rxd->seq, payload, rxd->len, out);
	nicsim_count_out(ns, out);
	nicsim_fault_rx_out(ctx, out);
	if (nicsim_gives_up(ctx, out))
		return;
	good = !out->bad_tags;
	rxd->lie = nicsim_bad(ctx, READ_ONCE(ns->knobs.rx_count));
	if (out->decrypted && good)
		rxd->flags |= NICSIM_RXD_DECRYPTED;
	if (out->errors || !good)
		rxd->flags |= NICSIM_RXD_ERROR;
	if (out->resync)
		rxd->flags |= NICSIM_RXD_RESYNC;
	if (out->confirm)
		rxd->flags |= NICSIM_RXD_CONFIRM;
	rxd->cand = out->cand;
	if (out->decrypted && good)
		nicsim_fault_rx_after(ctx, payload, rxd->len);
}

/* As mlx5: it looks for TCP behind the least header, and finds no socket (resync_update_sn). */
static bool nicsim_blind(const struct nicsim *ns, const struct sk_buff *skb)
{
	const struct ethhdr *eth = (const void *)skb->data;
	const struct iphdr *ip = (const void *)(eth + 1);
	const struct ipv6hdr *ip6 = (const void *)(eth + 1);

	if (!ns->card.no_options)
		return false;
	return eth->h_proto == htons(ETH_P_IP) ? ip->ihl > 5 : ip6->nexthdr != IPPROTO_TCP;
}

/* Driver, in NAPI. The order matters: the core may parse this skb at once when it goes up. */
static void nicsim_ktls_rx_resync(struct nicsim *ns, const struct nicsim_rxd *rxd,
				  const struct sk_buff *skb)
{
	struct nicsim_ktls_rx *rx = &rxd->ctx->rx;

	if (READ_ONCE(rx->dead))
		return;
	if (rxd->flags & NICSIM_RXD_RESYNC)
		nicsim_count(ns, CTR_RX_TLS_REQ_PKT, 1);
	if (nicsim_blind(ns, skb))
		return;
	if (rxd->flags & NICSIM_RXD_RESYNC) {
		nicsim_count(ns, CTR_RX_TLS_REQ_START, 1);
		nicsim_resync_start(rx->sk, &rx->async, rxd->seq, rxd->len);
	}
	if (rxd->flags & NICSIM_RXD_CONFIRM) {
		nicsim_count(ns, CTR_RX_TLS_REQ_END, 1);
		nicsim_resync_end(rx->sk, &rx->async, rxd->cand);
	}
}

/* Driver, in NAPI: act on the completion, then forget it (GRO uses skb->cb). */
void nicsim_ktls_rx_skb(struct nicsim *ns, struct sk_buff *skb)
{
	struct nicsim_rxd *rxd = nicsim_rxd(skb);
	u32 lie = rxd->lie;
	bool counted = rxd->flags & NICSIM_RXD_DECRYPTED;

	if (rxd->flags & NICSIM_RXD_DECRYPTED)
		skb->decrypted = 1;
	if (rxd->flags & NICSIM_RXD_FAILED)
		nicsim_mark_failed(skb);
	if (lie == 1 || lie == 2)
		counted = lie == 2 && (rxd->flags & NICSIM_RXD_DATA);
	if (counted) {
		nicsim_count(ns, CTR_RX_TLS_PACKETS, lie == 3 ? 2 : 1);
		nicsim_count(ns, CTR_RX_TLS_BYTES, lie == 3 ? 2 * rxd->len : rxd->len);
	}
	if (rxd->flags & NICSIM_RXD_ERROR)
		nicsim_count(ns, CTR_RX_TLS_ERR, 1);
	if (rxd->ctx)
		nicsim_ktls_rx_resync(ns, rxd, skb);
	nicsim_rxd_free(skb);
}

void nicsim_rxd_free(struct sk_buff *skb)
{
	struct nicsim_rxd *rxd = nicsim_rxd(skb);

	if (rxd->ctx)
		nicsim_ktls_put(rxd->ctx);
	if (rxd->x)
		xfrm_state_put(rxd->x);
	memset(rxd, 0, sizeof(*rxd));
}
