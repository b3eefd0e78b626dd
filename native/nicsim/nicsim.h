/* SPDX-License-Identifier: GPL-2.0-only */
/* The device, its contexts, its counters, and the calls between the files. */
#ifndef NICSIM_H
#define NICSIM_H

#include <linux/hashtable.h>
#include <linux/hrtimer.h>
#include <linux/if_vlan.h>
#include <linux/ipv6.h>
#include <linux/kref.h>
#include <linux/netdevice.h>
#include <linux/skbuff.h>
#include <linux/smp.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <net/tcp.h>
#include <net/tls.h>

#include "fault.h"
#include "pure/rxtrack.h"

#define NICSIM_ADAPTERS 2
#define NICSIM_VERSION "1.0"
#define NICSIM_TX_RING 256
#define NICSIM_RX_RING 4096
#define NICSIM_RX_QUEUES 4

#define NICSIM_TLS_FEATURES (NETIF_F_HW_TLS_TX | NETIF_F_HW_TLS_RX)

enum nicsim_counter {
	CTR_DEAD,		/* a name that the card shows and never moves */
	CTR_TX_PACKETS, CTR_TX_BYTES, CTR_TX_DROPPED, CTR_TX_TSO_PACKETS, CTR_TX_TSO_BYTES,
	CTR_RX_PACKETS, CTR_RX_BYTES, CTR_RX_DROPPED,
	CTR_WIRE_OUT_PACKETS, CTR_WIRE_OUT_BYTES, CTR_WIRE_IN_PACKETS, CTR_WIRE_IN_BYTES,
	CTR_TX_TLS_PACKETS, CTR_TX_TLS_BYTES, CTR_TX_TLS_CTX, CTR_TX_TLS_DEL, CTR_TX_TLS_OOO,
	CTR_TX_TLS_DUMP_PACKETS, CTR_TX_TLS_DUMP_BYTES, CTR_TX_TLS_SKIP_NO_SYNC,
	CTR_TX_TLS_DROP_NO_SYNC,
	CTR_RX_TLS_PACKETS, CTR_RX_TLS_BYTES, CTR_RX_TLS_CTX, CTR_RX_TLS_DEL,
	CTR_RX_TLS_REQ_PKT, CTR_RX_TLS_REQ_START, CTR_RX_TLS_REQ_END, CTR_RX_TLS_REQ_SKIP,
	CTR_RX_TLS_RES_OK, CTR_RX_TLS_RES_SKIP, CTR_RX_TLS_ERR,
	CTR_SIM_REFUSED, CTR_SIM_NO_SPACE, CTR_SIM_TX_STALLED,
	CTR_SIM_RX_GAPS, CTR_SIM_RX_HOPS, CTR_SIM_RX_LOST,
	CTR_SIM_RX_OLD, CTR_SIM_RX_BAD_CSUM, CTR_SIM_RX_BAD_TAGS, CTR_SIM_WIRE_DROPPED,
	CTR_SIM_WIRE_FLIPPED,
	CTR_ESP_TX_PACKETS, CTR_ESP_TX_BYTES, CTR_ESP_TX_DROP_PACKETS, CTR_ESP_TX_DROP_BYTES,
	CTR_ESP_TX_BUNDLE, CTR_ESP_TX_NO_STATE, CTR_ESP_TX_NOT_IP, CTR_ESP_TX_TRAILER,
	CTR_ESP_RX_PACKETS, CTR_ESP_RX_BYTES, CTR_ESP_RX_DROP_PACKETS, CTR_ESP_RX_DROP_BYTES,
	CTR_ESP_RX_SP_ALLOC,
	NICSIM_COUNTERS
};

struct nicsim_stat {
	const char *name;
	enum nicsim_counter counter;
};

#define NICSIM_STATS 64
#define NICSIM_KEY_128 0x1
#define NICSIM_KEY_256 0x2
#define NICSIM_TLS_13 0x4	/* with the same keys; no kernel up to 7.3 asks for it */

/* The card that an adapter emulates; the names lie in its description. */
struct nicsim_card {
	char *said;
	const char *name;
	netdev_features_t offered;	/* TLS bits that ethtool may switch */
	netdev_features_t initial;	/* those that are on at start */
	u32 tx_keys, rx_keys;
	bool off_drops_rules;	/* receive switched off: live connections stay in software */
	bool no_options;	/* no resync where TCP begins behind options of IP */
	struct nicsim_stat stats[NICSIM_STATS];
	unsigned int n_stats;
};

typedef int (*nicsim_give_t)(struct nicsim_card *card, const char *name,
			     enum nicsim_counter counter);

/* What the kernel gives with a context; the bytes lie in its tls12_crypto_info_*. */
struct nicsim_secret {
	const u8 *key, *salt, *iv, *rec_seq;
	unsigned int key_len;
	bool tls13;
};

struct nicsim_aes {
	struct crypto_skcipher *tfm;
	struct skcipher_request *req;
};

/* Addresses as IPv6 or IPv4-mapped; as seen by the host: local, remote. */
struct nicsim_flow {
	struct in6_addr local, remote;
	__be16 local_port, remote_port;
};

struct nicsim_ktls_tx {
	struct rec rec;		/* silicon only */
	u32 expected_seq;	/* driver only, under the transmit lock */
	bool stalled;		/* the silicon dropped something: wait for a replay */
};

struct nicsim_ktls_rx {
	struct rxt rxt;		/* silicon only */
	struct nicsim_flow flow;
	struct hlist_node node;
	struct sock *sk;
	struct tls_offload_resync_async async;
	spinlock_t lock;	/* the kernel's answer */
	bool answered;
	bool dead;
	u32 answer_seq;
	u64 answer_sn;
	/* Silicon only, faults: packets since a late answer; has decrypted, has given up. */
	u32 waited;
	bool worked, stuck;
};

/* One offloaded direction of one connection. */
struct nicsim_ktls {
	struct kref ref;
	struct rcu_work free_work;
	struct list_head leaked;
	struct nicsim *ns;
	enum tls_offload_ctx_dir dir;
	struct nicsim_aes aes;
	struct gcm_key key;
	struct nicsim_fault_ctx fault;
	union {
		struct nicsim_ktls_tx tx;
		struct nicsim_ktls_rx rx;
	};
};

/* Values of the knob: a good card, and two bad ones. */
enum { NICSIM_ESP_GOOD = 1, NICSIM_ESP_NOAUTH, NICSIM_ESP_LEAKS };

/* One direction of ESP between two hosts. */
struct nicsim_esp {
	struct kref ref;
	struct list_head node;	/* under rx_lock, until the kernel deletes its state */
	struct nicsim *ns;
	struct xfrm_state *x;	/* valid while in the list */
	bool in, esn;
	u8 salt[4];
	atomic64_t top;		/* the newest number that the kernel has accepted */
	struct nicsim_aes aes;
	struct gcm_key key;
	struct gcm gcm;		/* silicon only, and not on its stack: the key stream goes there */
};

/* Plaintext of a record up to a packet that came out of order. */
struct nicsim_replay {
	u64 sn;
	u32 n_frags;
	skb_frag_t frags[MAX_SKB_FRAGS];
};

/* Transmit descriptor, in skb->cb. */
struct nicsim_txd {
	struct nicsim_ktls *ctx;
	struct nicsim_replay *replay;
	struct nicsim_esp *esp;
	u32 seq_hi;		/* of ESP's number */
	bool early;		/* a fault: ciphertext that is encrypted once more */
};

#define NICSIM_RXD_DECRYPTED 0x1
#define NICSIM_RXD_RESYNC 0x2
#define NICSIM_RXD_CONFIRM 0x4
#define NICSIM_RXD_ERROR 0x8
#define NICSIM_RXD_DATA 0x10
#define NICSIM_RXD_FAILED 0x20

/* Receive completion, in skb->cb. */
struct nicsim_rxd {
	struct nicsim_ktls *ctx;
	u32 flags;
	u32 seq, len;
	u32 cand;
	u32 lie;		/* a fault: how it is counted */
	struct xfrm_state *x;	/* ESP that the card has decrypted, or tried to */
};

/* One adapter. */
struct nicsim {
	unsigned int id;
	struct nicsim_card card;
	struct net_device *host;
	struct net_device *wire;
	struct napi_struct napi;
	call_single_data_t irq;
	struct task_struct *task;
	wait_queue_head_t wait;
	struct sk_buff_head txq;	/* host -> silicon, with nicsim_txd */
	struct sk_buff_head rxq;	/* wire -> silicon */
	struct sk_buff_head done;	/* silicon -> NAPI, with nicsim_rxd */
	struct hrtimer coalesce;	/* ends in the receive interrupt */
	unsigned long coalescing;	/* bit 0: it runs */
	u32 rx_usecs, rx_frames;	/* as set by ethtool -C */
	u32 tx_ring, rx_ring;		/* as set by ethtool -G */
	u8 *scratch;			/* replayed plaintext */
	spinlock_t rx_lock;		/* protects rx_table, leaked and esp */
	DECLARE_HASHTABLE(rx_table, 8);
	struct list_head leaked;
	struct list_head esp;		/* struct nicsim_esp, both directions */
	atomic_t contexts;
	atomic64_t counters[NICSIM_COUNTERS];
	struct nicsim_knobs knobs;
	struct nicsim_fault fault;
	u32 flip_count;
};

static inline void nicsim_count(struct nicsim *ns, enum nicsim_counter c, u64 n)
{
	atomic64_add(n, &ns->counters[c]);
}

static inline struct nicsim *nicsim_of(struct net_device *dev)
{
	return *(struct nicsim **)netdev_priv(dev);
}

static inline struct nicsim_txd *nicsim_txd(struct sk_buff *skb)
{
	BUILD_BUG_ON(sizeof(struct nicsim_txd) > sizeof(skb->cb));
	return (struct nicsim_txd *)skb->cb;
}

static inline struct nicsim_rxd *nicsim_rxd(struct sk_buff *skb)
{
	BUILD_BUG_ON(sizeof(struct nicsim_rxd) > sizeof(skb->cb));
	return (struct nicsim_rxd *)skb->cb;
}

/* A TCP socket's packet may be in ESP or a tunnel by now; BIG TCP has a hop-by-hop header. */
static inline bool nicsim_is_tcp(const struct sk_buff *skb)
{
	u8 next;

	if (vlan_get_protocol(skb) != htons(ETH_P_IPV6))
		return ip_hdr(skb)->protocol == IPPROTO_TCP;
	next = ipv6_hdr(skb)->nexthdr;
	return next == IPPROTO_TCP || next == NEXTHDR_HOP;
}

/* TCP payload of a local socket? A SYN-ACK belongs to a request socket, which is no full one. */
static inline bool nicsim_tcp_data(const struct sk_buff *skb)
{
	return skb->sk && sk_fullsock(skb->sk) && sk_is_tcp(skb->sk) && nicsim_is_tcp(skb) &&
	       skb->len > skb_tcp_all_headers(skb);
}

/* A knob that counts down from N and says when it gets to zero: "the Nth one from now". */
static inline bool nicsim_fires(u32 *knob)
{
	u32 n = READ_ONCE(*knob);

	if (!n)
		return false;
	WRITE_ONCE(*knob, n - 1);
	return n == 1;
}

/* card.c */
int nicsim_card_init(struct nicsim_card *card, const char *said);
void nicsim_card_exit(struct nicsim_card *card);

/* netdev/netdev.c */
int nicsim_netdev_create(struct nicsim *ns);
void nicsim_netdev_unregister(struct nicsim *ns);
void nicsim_netdev_free(struct nicsim *ns);

/* silicon/hw.c, silicon/hw_tx.c, silicon/hw_replay.c, silicon/hw_rx.c */
int nicsim_hw_start(struct nicsim *ns);
void nicsim_hw_stop(struct nicsim *ns);
void nicsim_hw_purge_tx(struct nicsim *ns);
void nicsim_hw_purge_done(struct nicsim *ns);
void nicsim_hw_tx(struct nicsim *ns, struct sk_buff *skb);
bool nicsim_hw_replay(struct nicsim *ns, struct nicsim_ktls *ctx,
		      const struct nicsim_replay *replay, u32 seq);
void nicsim_hw_rx(struct nicsim *ns, struct sk_buff *skb);

/* silicon/coalesce.c */
struct ethtool_coalesce;
struct kernel_ethtool_coalesce;
void nicsim_hw_interrupt(struct nicsim *ns);
void nicsim_coalesce_init(struct nicsim *ns);
void nicsim_coalesce_stop(struct nicsim *ns);
void nicsim_hw_kick(struct nicsim *ns);
int nicsim_get_coalesce(struct net_device *dev, struct ethtool_coalesce *coal,
			struct kernel_ethtool_coalesce *kernel, struct netlink_ext_ack *extack);
int nicsim_set_coalesce(struct net_device *dev, struct ethtool_coalesce *coal,
			struct kernel_ethtool_coalesce *kernel, struct netlink_ext_ack *extack);

/* netdev/rings.c */
struct ethtool_channels;
struct ethtool_ringparam;
struct kernel_ethtool_ringparam;
void nicsim_get_ringparam(struct net_device *dev, struct ethtool_ringparam *ring,
			  struct kernel_ethtool_ringparam *kernel, struct netlink_ext_ack *extack);
int nicsim_set_ringparam(struct net_device *dev, struct ethtool_ringparam *ring,
			 struct kernel_ethtool_ringparam *kernel, struct netlink_ext_ack *extack);
void nicsim_get_channels(struct net_device *dev, struct ethtool_channels *ch);
int nicsim_set_channels(struct net_device *dev, struct ethtool_channels *ch);
void nicsim_steer(struct nicsim *ns, struct sk_buff *skb);

/* shared/refs.c */
extern struct workqueue_struct *nicsim_wq;
void nicsim_ktls_put(struct nicsim_ktls *ctx);
void nicsim_esp_put(struct nicsim_esp *esp);
void nicsim_txd_free(struct sk_buff *skb);

/* shared/flow.c */
u32 nicsim_flow_hash(const struct nicsim_flow *flow);
void nicsim_flow_of(struct nicsim_flow *flow, const struct sock *sk);

/* tls/ktls.c */
void nicsim_ktls_attach(struct nicsim *ns);
void nicsim_ktls_cleanup(struct nicsim *ns);

/* tls/ktls_tx.c */
struct sk_buff *nicsim_ktls_tx(struct nicsim *ns, struct sk_buff *skb);

/* tls/ktls_rx.c */
void nicsim_ktls_rx_add(struct nicsim_ktls *ctx, struct sock *sk);
void nicsim_ktls_rx_del(struct nicsim_ktls *ctx);
void nicsim_ktls_rx_drop_rules(struct nicsim *ns);
void nicsim_ktls_rx_answer(struct nicsim_ktls *ctx, u32 seq, u64 sn);
struct nicsim_ktls *nicsim_ktls_rx_find(struct nicsim *ns, const struct nicsim_flow *flow);
void nicsim_ktls_rx_hw(struct nicsim_ktls *ctx, struct nicsim_rxd *rxd, u8 *payload,
		       struct rxt_out *out);
void nicsim_ktls_rx_skb(struct nicsim *ns, struct sk_buff *skb);
void nicsim_rxd_free(struct sk_buff *skb);

/* esp/esp_ops.c */
void nicsim_esp_attach(struct nicsim *ns);

/* esp/esp.c */
netdev_features_t nicsim_esp_features(struct nicsim *ns, netdev_features_t features);
int nicsim_esp_add(struct net_device *dev, struct xfrm_state *x, struct netlink_ext_ack *extack);
void nicsim_esp_delete(struct net_device *dev, struct xfrm_state *x);
void nicsim_esp_free(struct net_device *dev, struct xfrm_state *x);
void nicsim_esp_advance(struct xfrm_state *x);
struct sk_buff *nicsim_esp_tx(struct nicsim *ns, struct sk_buff *skb);
void nicsim_esp_rx_skb(struct nicsim *ns, struct sk_buff *skb);

/* silicon/esp_hw.c */
bool nicsim_esp_hw_tx(struct nicsim *ns, const struct nicsim_txd *txd, struct sk_buff *frame);
void nicsim_esp_hw_rx(struct nicsim *ns, struct sk_buff *frame);

/* shared/ktls_stats.c */
const struct nicsim_stat *nicsim_esp_stats(const struct nicsim *ns, unsigned int *n);
int nicsim_counter(const char *name);
int nicsim_model_stats(struct nicsim_card *card, nicsim_give_t give);
void nicsim_show_counters(struct nicsim *ns, struct seq_file *m);

/* netdev/ethtool.c */
extern const struct ethtool_ops nicsim_host_ethtool_ops;
extern const struct ethtool_ops nicsim_wire_ethtool_ops;

/* debugfs.c */
void nicsim_debugfs_init(void);
void nicsim_debugfs_add(struct nicsim *ns);
void nicsim_debugfs_exit(void);

/* shared/aes.c */
int nicsim_aes_init(struct nicsim_aes *aes, const u8 *key, unsigned int len);
void nicsim_aes_exit(struct nicsim_aes *aes);
int nicsim_aes_ctr(void *aes, const u8 iv[GCM_BLOCK], u8 *buf, size_t len);

#endif
