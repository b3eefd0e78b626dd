// SPDX-License-Identifier: GPL-2.0-only
/*
 * ESP crypto offload (knob "esp"), driver half: the states of xfrm that the card takes, and what it
 * says of each packet. The kernel does the rest: header, trailer, replay, policy. Model: mlx5.
 */
#include <crypto/skcipher.h>
#include <net/esp.h>
#include <net/xfrm.h>

#include "nicsim.h"

/* Keys of RFC 4106 end with the salt. */
#define NICSIM_ESP_SALT 4

static struct nicsim_esp *nicsim_esp_of(const struct xfrm_state *x)
{
	return (struct nicsim_esp *)x->xso.offload_handle;
}

/* An early 6.1 knows one offload of ESP only, that of its cryptography. */
static bool nicsim_esp_crypto_only(const struct xfrm_state *x)
{
#ifdef HAVE_XDO_TYPE
	return x->xso.type == XFRM_DEV_OFFLOAD_CRYPTO;
#else
	return true;
#endif
}

static bool nicsim_esp_fits(const struct xfrm_state *x)
{
	const struct xfrm_algo_aead *aead = x->aead;

	if (!nicsim_esp_crypto_only(x) || x->id.proto != IPPROTO_ESP ||
	    x->props.mode != XFRM_MODE_TRANSPORT || x->encap)
		return false;
	if (!aead || strcmp(aead->alg_name, "rfc4106(gcm(aes))") ||
	    aead->alg_icv_len != 8 * GCM_BLOCK)
		return false;
	return aead->alg_key_len == 128 + 8 * NICSIM_ESP_SALT ||
	       aead->alg_key_len == 256 + 8 * NICSIM_ESP_SALT;
}

/* Of a direction in: what the kernel has accepted so far, for the upper half of the next number. */
void nicsim_esp_advance(struct xfrm_state *x)
{
	const struct xfrm_replay_state_esn *replay = x->replay_esn;

	if (replay)
		atomic64_set(&nicsim_esp_of(x)->top, (u64)replay->seq_hi << 32 | replay->seq);
}

static struct nicsim_esp *nicsim_esp_alloc(const struct xfrm_state *x)
{
	unsigned int len = x->aead->alg_key_len / 8 - NICSIM_ESP_SALT;
	const u8 *key = (const u8 *)x->aead->alg_key;
	struct nicsim_esp *esp = kzalloc(sizeof(*esp), GFP_KERNEL);
	int err;

	if (!esp)
		return ERR_PTR(-ENOMEM);
	kref_init(&esp->ref);
	esp->in = x->xso.dir == XFRM_DEV_OFFLOAD_IN;
	esp->esn = x->props.flags & XFRM_STATE_ESN;
	memcpy(esp->salt, key + len, NICSIM_ESP_SALT);
	err = nicsim_aes_init(&esp->aes, key, len);
	if (err)
		goto err_free;
	err = gcm_key_init(&esp->key, nicsim_aes_ctr, &esp->aes);
	if (err)
		goto err_exit_aes;
	return esp;

err_exit_aes:
	nicsim_aes_exit(&esp->aes);
err_free:
	kfree_sensitive(esp);
	return ERR_PTR(err);
}

/* With -EOPNOTSUPP the kernel goes on in software, as if there were no operations. */
int nicsim_esp_add(struct net_device *dev, struct xfrm_state *x, struct netlink_ext_ack *extack)
{
	struct nicsim *ns = nicsim_of(dev);
	struct nicsim_esp *esp;

	if (!READ_ONCE(ns->knobs.esp))
		return -EOPNOTSUPP;
	if (!nicsim_esp_fits(x)) {
		NL_SET_ERR_MSG(extack, "nicsim: ESP in transport mode, AES-GCM, ICV of 128 bits");
		return -EINVAL;
	}
	esp = nicsim_esp_alloc(x);
	if (IS_ERR(esp))
		return PTR_ERR(esp);
	esp->ns = ns;
	esp->x = x;
	x->xso.offload_handle = (unsigned long)esp;
	nicsim_esp_advance(x);
	spin_lock_bh(&ns->rx_lock);
	list_add(&esp->node, &ns->esp);
	spin_unlock_bh(&ns->rx_lock);
	return 0;
}

/* After this no packet finds it; those that have are served. */
void nicsim_esp_delete(struct net_device *dev, struct xfrm_state *x)
{
	struct nicsim_esp *esp = nicsim_esp_of(x);
	struct nicsim *ns = nicsim_of(dev);

	if (!esp)
		return;
	spin_lock_bh(&ns->rx_lock);
	list_del_init(&esp->node);
	spin_unlock_bh(&ns->rx_lock);
}

void nicsim_esp_free(struct net_device *dev, struct xfrm_state *x)
{
	struct nicsim_esp *esp = nicsim_esp_of(x);

	if (!esp)
		return;
	nicsim_esp_delete(dev, x);
	x->xso.offload_handle = 0;
	nicsim_esp_put(esp);
}

/*
 * As mlx5 shows it: on [fixed]. It stays while there are states: only from a device with the
 * feature does the core take them away when the device goes.
 */
netdev_features_t nicsim_esp_features(struct nicsim *ns, netdev_features_t features)
{
	bool on = READ_ONCE(ns->knobs.esp) || !list_empty_careful(&ns->esp);
	netdev_features_t esp = on ? NETIF_F_HW_ESP : 0;

	ns->host->hw_enc_features &= ~NETIF_F_HW_ESP;
	ns->host->hw_enc_features |= esp;
	return (features & ~NETIF_F_HW_ESP) | esp;
}

/* Why a packet that the kernel left to the card cannot be encrypted; 0: it can. */
static enum nicsim_counter nicsim_esp_wrong(const struct nicsim *ns, const struct sk_buff *skb,
					    const struct xfrm_state *x)
{
	const struct nicsim_esp *esp = nicsim_esp_of(x);

	if (skb_sec_path(skb)->len != 1)
		return CTR_ESP_TX_BUNDLE;
	if (!esp || esp->ns != ns || esp->in)
		return CTR_ESP_TX_NO_STATE;
	if (skb->protocol != htons(ETH_P_IP) && skb->protocol != htons(ETH_P_IPV6))
		return CTR_ESP_TX_NOT_IP;
	/* Without NETIF_F_GSO_ESP the kernel has cut it. */
	return skb_is_gso(skb) ? CTR_ESP_TX_TRAILER : 0;
}

/* The kernel has counted on by then if it cut a segment: at 2^32 its half is the next packet's. */
static u32 nicsim_esp_seq_hi(const struct sk_buff *skb, const struct xfrm_offload *xo)
{
	bool past = xo->flags & XFRM_GSO_SEGMENT && xo->seq.low < ntohl(ip_esp_hdr(skb)->seq_no);

	return xo->seq.hi - past;
}

/* Driver: returns the packet, with a descriptor if it is for the card; NULL if it was dropped. */
struct sk_buff *nicsim_esp_tx(struct nicsim *ns, struct sk_buff *skb)
{
	struct xfrm_offload *xo = xfrm_offload(skb);
	struct nicsim_txd *txd = nicsim_txd(skb);
	enum nicsim_counter wrong;
	struct xfrm_state *x;

	if (!xo || !(xo->flags & XFRM_XMIT))
		return skb;
	x = xfrm_input_state(skb);
	wrong = nicsim_esp_wrong(ns, skb, x);
	if (wrong) {
		nicsim_count(ns, wrong, 1);
		nicsim_txd_free(skb);
		dev_kfree_skb_any(skb);
		return NULL;
	}
	txd->esp = nicsim_esp_of(x);
	kref_get(&txd->esp->ref);
	txd->seq_hi = nicsim_esp_seq_hi(skb, xo);
	return skb;
}

/* Driver, in NAPI: tell the kernel what the card did. The reference to the state goes along. */
void nicsim_esp_rx_skb(struct nicsim *ns, struct sk_buff *skb)
{
	struct nicsim_rxd *rxd = nicsim_rxd(skb);
	struct xfrm_offload *xo;
	struct sec_path *sp;

	if (!rxd->x)
		return;
	sp = secpath_set(skb);
	if (!sp) {
		nicsim_count(ns, CTR_ESP_RX_SP_ALLOC, 1);
		return;
	}
	sp->xvec[sp->len++] = rxd->x;
	sp->olen++;
	rxd->x = NULL;
	xo = xfrm_offload(skb);
	xo->flags = CRYPTO_DONE;
	xo->status = rxd->flags & NICSIM_RXD_ERROR ? CRYPTO_TRANSPORT_ESP_AUTH_FAILED :
						     CRYPTO_SUCCESS;
	rxd->flags &= ~NICSIM_RXD_ERROR;
}
