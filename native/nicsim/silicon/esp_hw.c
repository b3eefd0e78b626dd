// SPDX-License-Identifier: GPL-2.0-only
/* ESP crypto offload, silicon: encrypts and decrypts between IV and ICV of a frame (RFC 4106). */
#include <crypto/algapi.h>
#include <linux/etherdevice.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <net/xfrm.h>

#include "nicsim.h"

#define ESP_IV sizeof(struct ip_esp_hdr)
#define ESP_BODY (ESP_IV + 8)
#define ESP_MIN (ESP_BODY + 2 + GCM_BLOCK)

/* ESP in a frame: from its header to the end of its ICV. */
struct nicsim_esp_at {
	u8 *p;
	u32 len;
	__be32 spi;
	u32 seq;
	u16 family;
	xfrm_address_t target;
};

static bool nicsim_esp_ip4(struct sk_buff *frame, struct nicsim_esp_at *at)
{
	const struct iphdr *ip = (void *)(frame->data + ETH_HLEN);
	u32 hlen = ip->ihl * 4, total = ntohs(ip->tot_len);

	if (ip->version != 4 || hlen < sizeof(*ip) || ip->protocol != IPPROTO_ESP ||
	    (ip->frag_off & htons(IP_MF | IP_OFFSET)) || total < hlen ||
	    frame->len < ETH_HLEN + total)
		return false;
	at->p = frame->data + ETH_HLEN + hlen;
	at->len = total - hlen;
	at->family = AF_INET;
	at->target.a4 = ip->daddr;
	return true;
}

static bool nicsim_esp_ip6(struct sk_buff *frame, struct nicsim_esp_at *at)
{
	const struct ipv6hdr *ip = (void *)(frame->data + ETH_HLEN);

	at->len = ntohs(ip->payload_len);
	if (frame->len < ETH_HLEN + sizeof(*ip) + at->len || ip->version != 6 ||
	    ip->nexthdr != IPPROTO_ESP)
		return false;
	at->p = frame->data + ETH_HLEN + sizeof(*ip);
	at->family = AF_INET6;
	at->target.in6 = ip->daddr;
	return true;
}

static bool nicsim_esp_parse(struct sk_buff *frame, struct nicsim_esp_at *at)
{
	const struct ethhdr *eth = (void *)frame->data;
	const struct ip_esp_hdr *esph;

	if (frame->len < ETH_HLEN + sizeof(struct iphdr) + ESP_MIN)
		return false;
	if (eth->h_proto == htons(ETH_P_IP)) {
		if (!nicsim_esp_ip4(frame, at))
			return false;
	} else if (eth->h_proto != htons(ETH_P_IPV6) || !nicsim_esp_ip6(frame, at)) {
		return false;
	}
	if (at->len < ESP_MIN)
		return false;
	esph = (void *)at->p;
	at->spi = esph->spi;
	at->seq = ntohl(esph->seq_no);
	return true;
}

/* In place; the ICV that belongs to it goes to @icv. */
static int nicsim_esp_crypt(struct nicsim_esp *esp, const struct nicsim_esp_at *at, u32 seq_hi,
			    enum gcm_op op, u8 *icv)
{
	u8 nonce[GCM_NONCE], aad[12];
	u32 aad_len = 8;
	int err;

	memcpy(nonce, esp->salt, sizeof(esp->salt));
	memcpy(nonce + sizeof(esp->salt), at->p + ESP_IV, 8);
	memcpy(aad, &at->spi, 4);
	if (esp->esn) {
		nicsim_store32(aad + 4, seq_hi);
		aad_len = 12;
	}
	nicsim_store32(aad + aad_len - 4, at->seq);
	gcm_start(&esp->key, &esp->gcm, nonce, aad, aad_len);
	err = gcm_crypt(&esp->key, &esp->gcm, op, at->p + ESP_BODY,
			at->len - ESP_BODY - GCM_BLOCK);
	return err ? err : gcm_tag(&esp->key, &esp->gcm, icv);
}

/* False: not encrypted, and it must not leave. The IV is the number, as mlx5 has it. */
bool nicsim_esp_hw_tx(struct nicsim *ns, const struct nicsim_txd *txd, struct sk_buff *frame)
{
	bool leak = READ_ONCE(ns->knobs.esp) == NICSIM_ESP_LEAKS;
	struct nicsim_esp_at at;

	if (!nicsim_esp_parse(frame, &at))
		return false;
	nicsim_store64(at.p + ESP_IV, (u64)txd->seq_hi << 32 | at.seq);
	if (nicsim_esp_crypt(txd->esp, &at, txd->seq_hi, leak ? GCM_HASH_ONLY : GCM_ENCRYPT,
			     at.p + at.len - GCM_BLOCK)) {
		nicsim_count(ns, CTR_ESP_TX_DROP_PACKETS, 1);
		nicsim_count(ns, CTR_ESP_TX_DROP_BYTES, frame->len);
		return false;
	}
	nicsim_count(ns, CTR_ESP_TX_PACKETS, 1);
	nicsim_count(ns, CTR_ESP_TX_BYTES, frame->len);
	return true;
}

/* With references to it and to the kernel's state, which lives while it is in the list. */
static struct nicsim_esp *nicsim_esp_find(struct nicsim *ns, const struct nicsim_esp_at *at)
{
	struct nicsim_esp *esp, *found = NULL;

	spin_lock_bh(&ns->rx_lock);
	list_for_each_entry(esp, &ns->esp, node) {
		const struct xfrm_state *x = esp->x;

		if (esp->in && x->id.spi == at->spi && x->props.family == at->family &&
		    xfrm_addr_equal(&x->id.daddr, &at->target, at->family)) {
			kref_get(&esp->ref);
			xfrm_state_hold(esp->x);
			found = esp;
			break;
		}
	}
	spin_unlock_bh(&ns->rx_lock);
	return found;
}

/* The upper half that brings the number nearest to what the kernel accepted last. */
static u32 nicsim_esp_rx_hi(const struct nicsim_esp *esp, u32 seq)
{
	s64 top = atomic64_read(&esp->top);

	top += (s32)(seq - (u32)top);
	return top < 0 ? 0 : top >> 32;
}

/* What no state here is for stays as it is. */
void nicsim_esp_hw_rx(struct nicsim *ns, struct sk_buff *frame)
{
	struct nicsim_rxd *rxd = nicsim_rxd(frame);
	struct nicsim_esp *esp;
	struct nicsim_esp_at at;
	u8 icv[GCM_BLOCK];
	bool good;

	if (!nicsim_esp_parse(frame, &at))
		return;
	esp = nicsim_esp_find(ns, &at);
	if (!esp)
		return;
	rxd->x = esp->x;
	good = !nicsim_esp_crypt(esp, &at, nicsim_esp_rx_hi(esp, at.seq), GCM_DECRYPT, icv) &&
	       (!crypto_memneq(icv, at.p + at.len - GCM_BLOCK, GCM_BLOCK) ||
		READ_ONCE(ns->knobs.esp) == NICSIM_ESP_NOAUTH);
	if (!good)
		rxd->flags |= NICSIM_RXD_ERROR;
	nicsim_count(ns, good ? CTR_ESP_RX_PACKETS : CTR_ESP_RX_DROP_PACKETS, 1);
	nicsim_count(ns, good ? CTR_ESP_RX_BYTES : CTR_ESP_RX_DROP_BYTES, frame->len);
	nicsim_esp_put(esp);
}
