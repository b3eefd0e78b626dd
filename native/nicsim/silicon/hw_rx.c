// SPDX-License-Identifier: GPL-2.0-only
/* The silicon, receive: copy the frame, check it, decrypt it if its stream is offloaded. */
#include <linux/etherdevice.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/tcp.h>
#include <net/ip6_checksum.h>
#include <net/tcp.h>

#include "nicsim.h"

/* A TCP frame, taken apart. */
struct nicsim_segment {
	struct nicsim_flow flow;
	u32 trans, tcp_len;	/* offset of the TCP header, length from there */
	u32 payload, payload_len;
	u32 seq;
	bool csum_ok;
};

static bool nicsim_parse_ip4(const struct sk_buff *skb, struct nicsim_segment *seg)
{
	const struct iphdr *ip = (void *)(skb->data + ETH_HLEN);
	u32 hlen, total;

	if (skb->len < ETH_HLEN + sizeof(*ip))
		return false;
	hlen = ip->ihl * 4;
	total = ntohs(ip->tot_len);
	if (ip->version != 4 || hlen < sizeof(*ip) || total < hlen ||
	    skb->len < ETH_HLEN + total || ip->protocol != IPPROTO_TCP ||
	    (ip->frag_off & htons(IP_MF | IP_OFFSET)))
		return false;
	ipv6_addr_set_v4mapped(ip->saddr, &seg->flow.remote);
	ipv6_addr_set_v4mapped(ip->daddr, &seg->flow.local);
	seg->trans = ETH_HLEN + hlen;
	seg->tcp_len = total - hlen;
	seg->csum_ok = !csum_tcpudp_magic(ip->saddr, ip->daddr, seg->tcp_len, IPPROTO_TCP,
					  csum_partial(skb->data + seg->trans, seg->tcp_len, 0));
	return true;
}

static bool nicsim_parse_ip6(const struct sk_buff *skb, struct nicsim_segment *seg)
{
	const struct ipv6hdr *ip = (void *)(skb->data + ETH_HLEN);

	if (skb->len < ETH_HLEN + sizeof(*ip))
		return false;
	seg->tcp_len = ntohs(ip->payload_len);
	seg->trans = ETH_HLEN + sizeof(*ip);
	if (ip->version != 6 || ip->nexthdr != IPPROTO_TCP ||
	    skb->len < seg->trans + seg->tcp_len)
		return false;
	seg->flow.remote = ip->saddr;
	seg->flow.local = ip->daddr;
	seg->csum_ok = !csum_ipv6_magic(&ip->saddr, &ip->daddr, seg->tcp_len, IPPROTO_TCP,
					csum_partial(skb->data + seg->trans, seg->tcp_len, 0));
	return true;
}

static bool nicsim_parse(const struct sk_buff *skb, struct nicsim_segment *seg)
{
	const struct ethhdr *eth = (void *)skb->data;
	const struct tcphdr *th;
	u32 hlen;

	memset(seg, 0, sizeof(*seg));
	if (skb->len < ETH_HLEN)
		return false;
	if (eth->h_proto == htons(ETH_P_IP)) {
		if (!nicsim_parse_ip4(skb, seg))
			return false;
	} else if (eth->h_proto != htons(ETH_P_IPV6) || !nicsim_parse_ip6(skb, seg)) {
		return false;
	}
	if (seg->tcp_len < sizeof(*th))
		return false;
	th = (void *)(skb->data + seg->trans);
	hlen = th->doff * 4;
	if (hlen < sizeof(*th) || hlen > seg->tcp_len)
		return false;
	seg->flow.remote_port = th->source;
	seg->flow.local_port = th->dest;
	seg->seq = ntohl(th->seq);
	seg->payload = seg->trans + hlen;
	seg->payload_len = seg->tcp_len - hlen;
	return true;
}

static struct sk_buff *nicsim_rx_copy(struct sk_buff *skb)
{
	struct sk_buff *copy = alloc_skb(NET_SKB_PAD + NET_IP_ALIGN + skb->len, GFP_KERNEL);

	if (!copy)
		return NULL;
	skb_reserve(copy, NET_SKB_PAD + NET_IP_ALIGN);
	if (skb_copy_bits(skb, 0, skb_put(copy, skb->len), skb->len)) {
		kfree_skb(copy);
		return NULL;
	}
	memset(nicsim_rxd(copy), 0, sizeof(struct nicsim_rxd));
	return copy;
}

/* The cable loses a chosen frame of an offloaded stream. */
static bool nicsim_rx_loses(struct nicsim *ns, struct nicsim_ktls *ctx,
			    const struct nicsim_segment *seg)
{
	bool starts = rxt_record_starts(&ctx->rx.rxt, seg->seq, seg->payload_len);

	if (!nicsim_fires(starts ? &ns->knobs.wire_in_drop_header : &ns->knobs.wire_in_drop_body))
		return false;
	nicsim_count(ns, CTR_SIM_WIRE_DROPPED, 1);
	return true;
}

/* False: lost on the cable. */
static bool nicsim_rx_tls(struct nicsim *ns, struct sk_buff *wire, struct sk_buff *copy,
			  const struct nicsim_segment *seg)
{
	struct nicsim_ktls *ctx = nicsim_ktls_rx_find(ns, &seg->flow);
	struct nicsim_rxd *rxd = nicsim_rxd(copy);
	struct rxt_out out;
	u32 failed;

	if (!ctx)
		return true;
	rxd->ctx = ctx;
	if (nicsim_rx_loses(ns, ctx, seg))
		return false;
	nicsim_fault_rx_packet(ctx, copy->data + ETH_HLEN, seg->payload - seg->trans, seg->seq);
	if (nicsim_fault_rx_passes(ctx))
		return true;
	rxd->flags = NICSIM_RXD_DATA;
	rxd->seq = seg->seq;
	rxd->len = seg->payload_len;
	nicsim_ktls_rx_hw(ctx, rxd, copy->data + seg->payload, &out);
	failed = nicsim_fault_failed(ctx, &out);
	if (failed == FAILED_MARKED)
		rxd->flags |= NICSIM_RXD_FAILED;
	/*
	 * The contract: as it was on the wire, or decrypted as a whole. So the mark for a packet
	 * that could not be authenticated (decrypt_failed) is never needed.
	 */
	if (out.touched && !(rxd->flags & NICSIM_RXD_DECRYPTED) && failed != FAILED_UNMARKED)
		skb_copy_bits(wire, seg->payload, copy->data + seg->payload, seg->payload_len);
	return true;
}

void nicsim_hw_rx(struct nicsim *ns, struct sk_buff *wire)
{
	struct nicsim_segment seg;
	struct sk_buff *copy = nicsim_rx_copy(wire);

	if (!copy || !netif_running(ns->host)) {
		kfree_skb(copy);
		nicsim_count(ns, CTR_RX_DROPPED, 1);
		return;
	}
	copy->ip_summed = CHECKSUM_NONE;
	if (nicsim_parse(copy, &seg)) {
		if (!seg.csum_ok)
			nicsim_count(ns, CTR_SIM_RX_BAD_CSUM, 1);
		else if (ns->host->features & NETIF_F_RXCSUM)
			copy->ip_summed = CHECKSUM_UNNECESSARY;
		if (seg.csum_ok && seg.payload_len && !nicsim_rx_tls(ns, wire, copy, &seg)) {
			nicsim_rxd_free(copy);
			kfree_skb(copy);
			return;
		}
		/* The checksum covers the ciphertext: after decryption only this mark is true. */
		if (nicsim_rxd(copy)->flags & NICSIM_RXD_DECRYPTED)
			copy->ip_summed = CHECKSUM_UNNECESSARY;
	} else {
		nicsim_esp_hw_rx(ns, copy);
	}
	skb_queue_tail(&ns->done, copy);
}
