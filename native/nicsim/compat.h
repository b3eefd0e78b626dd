/* SPDX-License-Identifier: GPL-2.0-only */
/* The only place that knows that kernels differ. The HAVE_ macros are probed by Kbuild. */
#ifndef NICSIM_COMPAT_H
#define NICSIM_COMPAT_H

#include <linux/hrtimer.h>
#include <linux/skbuff.h>
#include <net/tls.h>
#include <net/xfrm.h>

#include "nicsim.h"

static inline bool nicsim_tx_offloaded(struct sk_buff *skb)
{
#ifdef HAVE_TLS_IS_SKB_TX
	return skb->sk && tls_is_skb_tx_device_offloaded(skb);
#else
	return skb->sk && tls_is_sk_tx_device_offloaded(skb->sk);
#endif
}

static inline void nicsim_hrtimer_setup(struct hrtimer *timer,
					enum hrtimer_restart (*end)(struct hrtimer *))
{
#ifdef HAVE_HRTIMER_SETUP
	hrtimer_setup(timer, end, CLOCK_MONOTONIC, HRTIMER_MODE_REL);
#else
	hrtimer_init(timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL);
	timer->function = end;
#endif
}

static inline void nicsim_resync_start(struct sock *sk, struct tls_offload_resync_async *async,
				       u32 seq, u16 len)
{
#ifdef HAVE_RESYNC_BY_SOCK
	tls_offload_rx_resync_async_request_start(sk, htonl(seq), len);
#else
	tls_offload_rx_resync_async_request_start(async, htonl(seq), len);
#endif
}

static inline void nicsim_resync_end(struct sock *sk, struct tls_offload_resync_async *async,
				     u32 seq)
{
#ifdef HAVE_RESYNC_BY_SOCK
	tls_offload_rx_resync_async_request_end(sk, htonl(seq));
#else
	tls_offload_rx_resync_async_request_end(async, htonl(seq));
#endif
}

/* Whether a context is for a connection that has had one: its keys change. */
static inline bool nicsim_rekeys(const struct sock *sk, enum tls_offload_ctx_dir dir)
{
#ifdef HAVE_TLS_REKEY
	return test_bit(dir == TLS_OFFLOAD_CTX_DIR_TX ? TLS_TX_REKEY_PENDING : TLS_RX_DEV_CLOSED,
			&tls_get_ctx(sk)->flags);
#else
	return false;
#endif
}

static inline void nicsim_mark_failed(struct sk_buff *skb)
{
#ifdef HAVE_DECRYPT_FAILED
	skb->decrypt_failed = 1;
#endif
}

/* 6.1 has neither device nor words in the operations of ESP, 6.12 has the words, 7.2 both. */
#ifdef HAVE_XDO_DEV
#define nicsim_xdo_add nicsim_esp_add
#define nicsim_xdo_delete nicsim_esp_delete
#define nicsim_xdo_free nicsim_esp_free
#else
#ifdef HAVE_XDO_EXTACK
static inline int nicsim_xdo_add(struct xfrm_state *x, struct netlink_ext_ack *extack)
{
	return nicsim_esp_add(x->xso.real_dev, x, extack);
}
#else
static inline int nicsim_xdo_add(struct xfrm_state *x)
{
	return nicsim_esp_add(x->xso.real_dev, x, NULL);
}
#endif

static inline void nicsim_xdo_delete(struct xfrm_state *x)
{
	nicsim_esp_delete(x->xso.real_dev, x);
}

static inline void nicsim_xdo_free(struct xfrm_state *x)
{
	nicsim_esp_free(x->xso.real_dev, x);
}
#endif

#endif
