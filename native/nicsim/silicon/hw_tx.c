// SPDX-License-Identifier: GPL-2.0-only
/* The silicon, transmit: replay, cut into frames (TSO), encrypt, checksum, put on the wire. */
#include <linux/etherdevice.h>
#include <linux/if_vlan.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/tcp.h>
#include <net/ip6_checksum.h>
#include <net/tcp.h>

#include "nicsim.h"

/* Room for what a bridge or a VLAN in front may push. */
#define NICSIM_HEADROOM (NET_SKB_PAD + NET_IP_ALIGN + 32)
/* wire_flip leaves ACKs and handshakes alone. */
#define NICSIM_FLIP_MIN 200

/* One packet of the host on its way to become frames. */
struct nicsim_cut {
	struct nicsim *ns;
	struct sk_buff *skb;
	struct nicsim_ktls *ctx;
	struct nicsim_ktls *twice;	/* a fault */
	u32 net, trans, hlen;	/* offsets of IP, TCP and payload */
	u32 payload, mss;
	bool v6;
	bool lost;		/* a fault, as the next */
	struct sk_buff *held;	/* a frame that leaves after the next */
};

static void nicsim_to_wire(struct nicsim *ns, struct sk_buff *frame)
{
	nicsim_count(ns, CTR_WIRE_OUT_PACKETS, 1);
	nicsim_count(ns, CTR_WIRE_OUT_BYTES, frame->len);
	frame->ip_summed = CHECKSUM_NONE;
	frame->protocol = eth_type_trans(frame, ns->wire);
	netif_rx(frame);
}

/* Always a fresh, linear skb (the "DMA"): the sender's skb may be marked as decrypted. */
static struct sk_buff *nicsim_frame(struct nicsim *ns, struct sk_buff *skb, u32 hlen, u32 off,
				    u32 len)
{
	struct sk_buff *frame = alloc_skb(NICSIM_HEADROOM + hlen + len, GFP_KERNEL);

	if (!frame)
		return NULL;
	skb_reserve(frame, NICSIM_HEADROOM);
	if (skb_copy_bits(skb, 0, skb_put(frame, hlen), hlen) ||
	    skb_copy_bits(skb, hlen + off, skb_put(frame, len), len)) {
		kfree_skb(frame);
		return NULL;
	}
	return frame;
}

static void nicsim_tcp_checksum(const struct nicsim_cut *cut, struct sk_buff *frame)
{
	u8 *ip = frame->data + cut->net;
	struct tcphdr *th = (struct tcphdr *)(frame->data + cut->trans);
	u32 len = frame->len - cut->trans;

	th->check = 0;
	if (cut->v6) {
		struct ipv6hdr *ip6 = (struct ipv6hdr *)ip;

		th->check = csum_ipv6_magic(&ip6->saddr, &ip6->daddr, len, IPPROTO_TCP,
					    csum_partial(th, len, 0));
	} else {
		struct iphdr *ip4 = (struct iphdr *)ip;

		th->check = csum_tcpudp_magic(ip4->saddr, ip4->daddr, len, IPPROTO_TCP,
					      csum_partial(th, len, 0));
	}
}

/* What TSO changes from frame to frame, as tcp_gso_segment() does it. */
static void nicsim_fix_headers(const struct nicsim_cut *cut, struct sk_buff *frame, u32 off,
			       u32 len, u32 index)
{
	struct tcphdr *th = (struct tcphdr *)(frame->data + cut->trans);

	th->seq = htonl(ntohl(th->seq) + off);
	if (off + len < cut->payload) {
		th->fin = 0;
		th->psh = 0;
	}
	if (index)
		th->cwr = 0;
	if (cut->v6) {
		struct ipv6hdr *ip6 = (struct ipv6hdr *)(frame->data + cut->net);

		ip6->payload_len = htons(frame->len - cut->net - sizeof(*ip6));
	} else {
		struct iphdr *ip4 = (struct iphdr *)(frame->data + cut->net);

		ip4->tot_len = htons(frame->len - cut->net);
		ip4->id = htons(ntohs(ip4->id) + index);
		ip_send_check(ip4);
	}
}

/* False: not encrypted. @off is the frame's place in the packet, @index its number. */
static bool nicsim_encrypt(const struct nicsim_cut *cut, struct sk_buff *frame, u32 off, u32 index,
			   bool *drop)
{
	struct nicsim_knobs *knobs = &cut->ns->knobs;
	struct rec *rec = &cut->ctx->tx.rec;
	u8 *p = frame->data + cut->hlen;
	u32 taken, n = frame->len - cut->hlen;
	struct rec_events ev = {};

	if (rec_starts_within(rec, n))
		*drop = nicsim_fires(&knobs->wire_drop_header);
	else
		*drop = nicsim_fires(&knobs->wire_drop_body);
	nicsim_fault_tx_before(cut->ctx, p, n, ntohl(tcp_hdr(cut->skb)->seq) + off, index);
	taken = rec_feed(rec, REC_ENCRYPT, p, n, &ev);
	nicsim_fault_tx_after(cut->ctx, p, taken);
	/* The engine was passed by. */
	if (nicsim_bad(cut->ctx, READ_ONCE(knobs->tx_clear)))
		skb_copy_bits(cut->skb, cut->hlen + off, p, n);
	return taken == n && !ev.error && !ev.bad_header;
}

/* An attacker on the cable who can also repair the TCP checksum. */
static void nicsim_attack(const struct nicsim_cut *cut, struct sk_buff *frame)
{
	struct nicsim *ns = cut->ns;
	u32 every = READ_ONCE(ns->knobs.wire_flip);

	if (!every || frame->len <= NICSIM_FLIP_MIN || ++ns->flip_count % every)
		return;
	frame->data[(cut->hlen + frame->len) / 2] ^= 0x01;
	nicsim_tcp_checksum(cut, frame);
	nicsim_count(ns, CTR_SIM_WIRE_FLIPPED, 1);
}

/* The same in plaintext, 2^31 away. */
static void nicsim_stray(const struct nicsim_cut *cut, u32 off, u32 len, u32 index)
{
	struct sk_buff *frame = nicsim_frame(cut->ns, cut->skb, cut->hlen, off, len);

	if (!frame)
		return;
	nicsim_fix_headers(cut, frame, off, len, index);
	((struct tcphdr *)(frame->data + cut->trans))->seq ^= htonl(0x80000000);
	nicsim_tcp_checksum(cut, frame);
	nicsim_to_wire(cut->ns, frame);
}

/* On the wire, and what a fault has leave after it. */
static void nicsim_leave(struct nicsim_cut *cut, struct sk_buff *frame, u32 off, u32 len)
{
	struct sk_buff *held = cut->held;

	cut->held = NULL;
	if (cut->ctx && !held && nicsim_fault_tx_swaps(cut->ctx, off + len < cut->payload)) {
		cut->held = frame;
		return;
	}
	nicsim_to_wire(cut->ns, frame);
	if (held)
		nicsim_to_wire(cut->ns, held);
}

/* False: the frame could not be made. */
static bool nicsim_send_frame(struct nicsim_cut *cut, u32 off, u32 index)
{
	u32 len = min(cut->mss, cut->payload - off);
	bool drop = false;
	struct sk_buff *frame = nicsim_frame(cut->ns, cut->skb, cut->hlen, off, len);
	struct sk_buff *again;

	if (!frame)
		return false;
	if (cut->ctx && !nicsim_encrypt(cut, frame, off, index, &drop)) {
		kfree_skb(frame);
		return false;
	}
	if (cut->twice)
		nicsim_fault_twice(cut->twice, frame->data + cut->hlen, len,
				   ntohl(tcp_hdr(cut->skb)->seq) + off);
	if (drop || cut->lost) {
		nicsim_count(cut->ns, CTR_SIM_WIRE_DROPPED, drop);
		kfree_skb(frame);
		return true;
	}
	nicsim_fix_headers(cut, frame, off, len, index);
	if (cut->ctx)
		nicsim_fault_tx_headers(cut->ctx, frame->data + cut->net);
	nicsim_tcp_checksum(cut, frame);
	nicsim_attack(cut, frame);
	again = cut->ctx ? nicsim_fault_tx_frame(cut->ctx, frame, cut->trans) : NULL;
	nicsim_leave(cut, frame, off, len);
	if (again)
		nicsim_to_wire(cut->ns, again);
	if (cut->ctx && nicsim_fault_tx_strays(cut->ctx))
		nicsim_stray(cut, off, len, index);
	return true;
}

/* A TX error ends in a drop, never in plaintext; the next packet must bring a replay. */
static void nicsim_stall(struct nicsim *ns, struct nicsim_ktls *ctx)
{
	WRITE_ONCE(ctx->tx.stalled, true);
	nicsim_count(ns, CTR_SIM_TX_STALLED, 1);
}

static void nicsim_hw_tx_tcp(struct nicsim *ns, struct sk_buff *skb, struct nicsim_ktls *ctx)
{
	struct nicsim_txd *txd = nicsim_txd(skb);
	struct nicsim_cut cut = { .ns = ns, .skb = skb, .ctx = ctx,
				  .twice = txd->early ? txd->ctx : NULL };
	u32 off = 0, index = 0;

	cut.net = skb_network_offset(skb);
	cut.trans = skb_transport_offset(skb);
	cut.hlen = cut.trans + tcp_hdrlen(skb);
	cut.payload = skb->len - cut.hlen;
	cut.mss = skb_is_gso(skb) ? skb_shinfo(skb)->gso_size : cut.payload;
	cut.v6 = vlan_get_protocol(skb) == htons(ETH_P_IPV6);
	cut.lost = ctx && nicsim_fault_tx_drops(ctx);
	while (off < cut.payload) {
		if (!nicsim_send_frame(&cut, off, index++)) {
			kfree_skb(cut.held);
			nicsim_count(ns, CTR_TX_DROPPED, 1);
			if (ctx)
				nicsim_stall(ns, ctx);
			return;
		}
		off += cut.mss;
	}
}

static void nicsim_hw_tx_other(struct nicsim *ns, struct sk_buff *skb)
{
	struct sk_buff *frame = nicsim_frame(ns, skb, 0, 0, skb->len);

	if (!frame)
		goto drop;
	if (skb->ip_summed == CHECKSUM_PARTIAL) {
		skb_set_transport_header(frame, skb_checksum_start_offset(skb));
		frame->csum_start = skb_headroom(frame) + skb_checksum_start_offset(skb);
		frame->csum_offset = skb->csum_offset;
		frame->ip_summed = CHECKSUM_PARTIAL;
		if (skb_checksum_help(frame))
			goto drop;
	}
	if (nicsim_txd(skb)->esp && !nicsim_esp_hw_tx(ns, nicsim_txd(skb), frame))
		goto drop;
	nicsim_to_wire(ns, frame);
	return;
drop:
	kfree_skb(frame);
	nicsim_count(ns, CTR_TX_DROPPED, 1);
}

void nicsim_hw_tx(struct nicsim *ns, struct sk_buff *skb)
{
	struct nicsim_txd *txd = nicsim_txd(skb);
	struct nicsim_ktls *ctx = txd->ctx;

	if (!ctx || txd->early) {
		if (skb_is_gso(skb) || nicsim_tcp_data(skb))
			nicsim_hw_tx_tcp(ns, skb, NULL);
		else
			nicsim_hw_tx_other(ns, skb);
		return;
	}
	nicsim_fault_tx_packet(ctx, skb, skb->len - skb_tcp_all_headers(skb));
	if (nicsim_fires(&ns->knobs.tx_fail) ||
	    (txd->replay ? !nicsim_hw_replay(ns, ctx, txd->replay, ntohl(tcp_hdr(skb)->seq)) :
			   READ_ONCE(ctx->tx.stalled))) {
		nicsim_stall(ns, ctx);
		nicsim_count(ns, CTR_TX_DROPPED, 1);
		return;
	}
	nicsim_hw_tx_tcp(ns, skb, ctx);
	if (nicsim_fault_tx_again(ctx, skb, skb->len - skb_tcp_all_headers(skb)))
		nicsim_hw_tx_tcp(ns, skb, NULL);
}
