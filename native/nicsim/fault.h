/* SPDX-License-Identifier: GPL-2.0-only */
/* What can be made bad: the knobs, what the faults remember, and where the good path asks them. */
#ifndef NICSIM_FAULT_H
#define NICSIM_FAULT_H

#include <linux/netdevice.h>
#include <linux/skbuff.h>
#include <linux/workqueue.h>

#include "rxtrack.h"

/* Bytes of a stream that a fault keeps: more than a record and a jumbo frame. */
#define NICSIM_KEPT 32768

#define NICSIM_QUEUES 4

struct nicsim;
struct nicsim_flow;
struct nicsim_ktls;
struct nicsim_stat;

/* Debugfs knobs; README.md says what each does. */
struct nicsim_knobs {
	u32 tx_leak, tx_bad_tag, tx_nonce_reuse, tx_ooo_ks, tx_ooo_leak, tx_soft, tx_fail, tx_count;
	u32 tx_first_leak, tx_toggle_leak, tx_down_leak, tx_route_leak, tx_wrong_nonce, tx_replay;
	u32 tx_bad_csum, tx_dup, tx_drop, tx_stray, burn, oops_unload;
	u32 tx_edge_ks, tx_full_ks, tx_pow_ks, tx_ooo_other, tx_rare, tso_bad;
	u32 rx_noauth, rx_noresync, rx_bad_sn, rx_late_resync, rx_stay_sw, rx_garble, rx_count;
	u32 rx_short_tag, rx_stale, rx_resync_ks;
	u32 aes256_as_128, aes256_bad, v6_bad, small_bad, many_bad, queue_bad;
	u32 ctx_limit_hard, off_drops;
	u32 wire_flip, wire_drop_header, wire_drop_body;
	u32 wire_in_drop_header, wire_in_drop_body;
	u32 refuse_add, ctx_limit, ctx_leak;
	/* Changed under rtnl; esp is a feature, and two faults of it. */
	u32 esp;
	u32 feature_stuck, feature_refused, feature_deaf, feature_fixed;
	u32 stats_missing, stats_many, stats_blank, fw_garbage;
};

/* Of a context: the transmit half belongs to the silicon where nothing else is said. */
struct nicsim_fault_ctx {
	bool aes256, v6;
	u32 nth;		/* so many contexts were live when it came, itself included */
	u32 queue;		/* of NICSIM_QUEUES */
	u32 start_seq;
	bool started;		/* driver */
	u32 newest;		/* where the newest data ended */
	u32 pos;		/* of the frame at hand in the stream */
	u64 edge;		/* the newest record that began with a frame */
	u64 sn;			/* where the engine was when the frame began */
	u32 off, len;
	u8 *kept;		/* bytes of earlier packets */
	u32 kept_from, kept_to;
	u32 count;
	bool inner;		/* receive: this packet holds payload of one record only */
	u32 resynced;		/* receive: the record to come that will be wrong */
};

/* Of an adapter. */
struct nicsim_fault {
	struct sk_buff *last;	/* transmit: a copy of the last offloaded packet */
	u64 rare;		/* transmit, silicon: bytes since the last wrong bit */
	u32 csums, dups, drops, strays;	/* transmit, silicon: what the every-Nth faults count */
	struct net_device *none;	/* NULL */
	u32 switches;		/* under rtnl, as the next three */
	bool relapsing;
	netdev_features_t before, found;	/* by the last switch, by the first */
	struct work_struct relapse;
};

static inline bool nicsim_every(u32 *count, u32 n)
{
	return n && !(++*count % n);
}

/* fault_tx.c: driver */
bool nicsim_fault_leaks(struct nicsim_ktls *ctx);
void nicsim_fault_burn(struct nicsim *ns);
void nicsim_fault_link_up(struct nicsim *ns);
/* fault_tx.c: silicon */
bool nicsim_fault_tx_again(struct nicsim_ktls *ctx, struct sk_buff *skb, u32 len);
void nicsim_fault_tx_replay(struct nicsim_ktls *ctx, u32 seq);
void nicsim_fault_tx_before(struct nicsim_ktls *ctx, u8 *p, u32 n, u32 seq, u32 index);
void nicsim_fault_tx_after(struct nicsim_ktls *ctx, u8 *p, u32 n);
bool nicsim_fault_tx_drops(struct nicsim *ns);
bool nicsim_fault_tx_strays(struct nicsim *ns);
struct sk_buff *nicsim_fault_tx_frame(struct nicsim *ns, struct sk_buff *frame, u32 trans);

/* fault_rx.c: silicon */
void nicsim_fault_rx_answered(struct nicsim_ktls *ctx);
void nicsim_fault_rx_before(struct nicsim_ktls *ctx, u32 seq, u32 n);
void nicsim_fault_rx_after(struct nicsim_ktls *ctx, u8 *payload, u32 n);

/* fault_ctx.c */
unsigned int nicsim_fault_key_len(const struct nicsim *ns, unsigned int len);
void nicsim_fault_ctx_init(struct nicsim_ktls *ctx, const struct sock *sk, u32 start_seq,
			   unsigned int key_len);
bool nicsim_fault_picks(const struct nicsim_ktls *ctx, u32 payload);
bool nicsim_fault_orphaned(const struct nicsim_ktls *ctx);
u8 *nicsim_fault_kept(struct nicsim_ktls *ctx);
void nicsim_fault_ctx_exit(struct nicsim_ktls *ctx);

/* fault_netdev.c */
netdev_features_t nicsim_fix_features(struct net_device *dev, netdev_features_t features);
int nicsim_set_features(struct net_device *dev, netdev_features_t features);
unsigned int nicsim_fault_n_stats(const struct nicsim *ns);
bool nicsim_fault_hides(const struct nicsim *ns, const struct nicsim_stat *stat);
void nicsim_fault_name(const struct nicsim *ns, u8 *to, const char *name);
void nicsim_fault_more_names(const struct nicsim *ns, u8 *to);
void nicsim_fault_firmware(const struct nicsim *ns, char *to, size_t size);
void nicsim_fault_init(struct nicsim *ns);
void nicsim_fault_reset(struct nicsim *ns);
void nicsim_fault_exit(struct nicsim *ns);
void nicsim_fault_unload(struct nicsim *ns);

#endif
