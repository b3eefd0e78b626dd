/* SPDX-License-Identifier: GPL-2.0-only */
/* What can be made bad: the knobs, what the faults remember, and where the good path asks them. */
#ifndef NICSIM_FAULT_H
#define NICSIM_FAULT_H

#include <linux/netdevice.h>
#include <linux/skbuff.h>
#include <linux/workqueue.h>
#include <net/tls.h>

#include "pure/rxtrack.h"

/* Bytes of a stream that a fault keeps: more than a record and a jumbo frame. */
#define NICSIM_KEPT 32768

#define NICSIM_QUEUES 4

struct nicsim;
struct nicsim_flow;
struct nicsim_ktls;
struct nicsim_secret;
struct nicsim_stat;

/* What a fault may be bound to, in the order of the knobs when_*; README.md says what each is. */
enum nicsim_condition {
	WHEN_KEY, WHEN_IP, WHEN_QUEUE, WHEN_NTH, WHEN_CONTEXTS, WHEN_TURN, WHEN_AFTER,
	WHEN_TOS, WHEN_IP_HEADER, WHEN_TCP_HEADER, WHEN_MTU, WHEN_NO_TSO, WHEN_AGAIN,
	WHEN_FRAME, WHEN_HOLDS, WHEN_HEADER_CUT, WHEN_TAG_CUT,
	WHEN_RECORD, WHEN_BELOW, WHEN_NUMBER, WHEN_OFFSET, WHEN_SPAN, WHEN_BATCH, WHEN_LOT,
	WHEN_INSIDE, WHEN_MENDED, WHEN_EVERY,
	NICSIM_WHENS
};

/* Bits of WHEN_AFTER, by number. */
enum nicsim_event {
	EVENT_TOGGLE, EVENT_MTU, EVENT_COALESCE, EVENT_CABLE, EVENT_LINK, EVENT_OTHER, EVENT_RINGS,
	NICSIM_EVENTS
};

/* Bits of WHEN_HOLDS. */
#define NICSIM_HOLDS_HEADER 0x1
#define NICSIM_HOLDS_TAG 0x2
#define NICSIM_HOLDS_NEITHER 0x4

/* Bits of the knob tx_tail. */
#define NICSIM_TAIL_BEGINS 0x1
#define NICSIM_TAIL_ENDS 0x2

/* Values of the knob driver_bug. */
enum nicsim_bug { BUG_STALE = 1, BUG_ORDER, BUG_SLEEP, BUG_LOST, BUG_TWICE };

/* Values of the knob rekey. */
enum nicsim_rekey { REKEY_OLD = 1, REKEY_EARLY, REKEY_OFF, REKEY_REFUSED };

/* Values of the knob rx_failed. */
enum nicsim_failed { FAILED_UNMARKED = 1, FAILED_MARKED };

/* A key and what goes with it, as a card keeps them that does not take the next. */
struct nicsim_old_key {
	u8 key[32], salt[4], iv[8];
};

/* What the driver or the silicon works on: a context, its packet, frame and record. */
struct nicsim_at {
	u32 is[NICSIM_WHENS];
};

/* Debugfs knobs; README.md says what each does. */
struct nicsim_knobs {
	u32 when[NICSIM_WHENS];
	u32 tx_leak, tx_bad_tag, tx_nonce_reuse, tx_ooo_ks, tx_ooo_leak, tx_soft, tx_fail, tx_count;
	u32 tx_first_leak, tx_toggle_leak, tx_down_leak, tx_route_leak, tx_wrong_nonce, tx_replay;
	u32 tx_bad_csum, tx_dup, tx_drop, tx_stray, burn, oops_unload;
	u32 tx_ks, tx_full_ks, tx_ooo_other, tx_rare, tso_bad;
	u32 tx_clear, tx_tail, tx_tos, tx_swap, tx_unseen;
	u32 rx_noauth, rx_noresync, rx_bad_sn, rx_late_resync, rx_stay_sw, rx_garble, rx_count;
	u32 rx_short_tag, rx_stale, rx_resync_ks, rx_ks, rx_pass, rx_failed;
	u32 rekey;
	u32 aes256_as_128;
	u32 ctx_limit_hard, off_drops;
	u32 wire_flip, wire_drop_header, wire_drop_body;
	u32 wire_in_drop_header, wire_in_drop_body;
	u32 refuse_add, ctx_limit, ctx_leak, add_slow, del_slow, driver_bug;
	/* Changed under rtnl; esp is a feature, and two faults of it. */
	u32 esp;
	u32 feature_stuck, feature_refused, feature_deaf, feature_fixed;
	u32 stats_missing, stats_many, stats_blank, fw_garbage;
};

/* Of a context: the transmit half belongs to the silicon unless a comment says otherwise. */
struct nicsim_fault_ctx {
	struct nicsim_at at;	/* in the silicon */
	struct nicsim_at drv;	/* in the driver */
	u32 born[NICSIM_EVENTS];	/* how many there had been of each */
	u32 number;		/* of its adapter's contexts */
	u32 mended;		/* records to come that are close to a hole in the stream */
	bool leaks;		/* it will not be freed */
	bool early;		/* transmit, driver: what came before it is taken for its own */
	u32 start_seq;
	bool started;		/* driver */
	bool moved;		/* silicon: a packet of it has been here */
	u32 newest;		/* where the newest data ended */
	u32 pos;		/* of the present frame in the stream */
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
	struct nicsim_old_key old[2];	/* by direction: that of the last context */
	u64 rare;		/* transmit, silicon: bytes since the last wrong bit */
	atomic64_t fired;	/* how often a fault has acted */
	atomic_t met;		/* how often the other conditions were met */
	atomic_t numbers;	/* of contexts */
	u32 newest[2];		/* by direction: the context of the last packet */
	u32 events[NICSIM_EVENTS];
	/* Transmit, silicon: what the every-Nth faults count. */
	u32 csums, dups, drops, strays, swaps;
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

/* faults/fault_when.c */
u32 nicsim_gated(struct nicsim *ns, const struct nicsim_at *at, u32 knob);
u32 nicsim_acts(struct nicsim *ns, const struct nicsim_at *at, u32 knob);
u32 nicsim_bad(struct nicsim_ktls *ctx, u32 knob);
void nicsim_fired(struct nicsim *ns);
void nicsim_fault_event(struct nicsim *ns, enum nicsim_event event);
void nicsim_when_born(struct nicsim_at *at, struct nicsim *ns, const struct sock *sk,
		      unsigned int key_len);
void nicsim_when_packet(struct nicsim_at *at, const struct nicsim_ktls *ctx, const u8 *ip,
			u32 tcp_bytes, bool again);
void nicsim_when_turn(struct nicsim_ktls *ctx);
void nicsim_when_frame(struct nicsim_ktls *ctx, const struct rec *rec, u32 n, u32 pos);
void nicsim_when_record(struct nicsim_ktls *ctx, const struct rec *rec);
void nicsim_when_hole(struct nicsim_ktls *ctx);

/* faults/fault_tx.c: driver */
bool nicsim_fault_leaks(struct nicsim_ktls *ctx);
void nicsim_fault_burn(struct nicsim *ns);
void nicsim_fault_link_up(struct nicsim *ns);
/* faults/fault_tx.c: silicon */
void nicsim_fault_tx_packet(struct nicsim_ktls *ctx, struct sk_buff *skb, u32 len);
bool nicsim_fault_tx_again(struct nicsim_ktls *ctx, struct sk_buff *skb, u32 len);
void nicsim_fault_tx_replay(struct nicsim_ktls *ctx, u32 seq);
void nicsim_fault_tx_before(struct nicsim_ktls *ctx, u8 *p, u32 n, u32 seq, u32 index);
void nicsim_fault_tx_after(struct nicsim_ktls *ctx, u8 *p, u32 n);

/* faults/fault_frame.c */
bool nicsim_fault_tx_drops(struct nicsim_ktls *ctx);
bool nicsim_fault_tx_strays(struct nicsim_ktls *ctx);
bool nicsim_fault_tx_swaps(struct nicsim_ktls *ctx, bool more);
void nicsim_fault_tx_headers(struct nicsim_ktls *ctx, u8 *ip);
struct sk_buff *nicsim_fault_tx_frame(struct nicsim_ktls *ctx, struct sk_buff *frame, u32 trans);

/* faults/fault_rx.c: silicon */
void nicsim_fault_rx_answered(struct nicsim_ktls *ctx);
void nicsim_fault_rx_packet(struct nicsim_ktls *ctx, const u8 *ip, u32 tcp_bytes, u32 seq);
void nicsim_fault_rx_before(struct nicsim_ktls *ctx, u32 seq, u32 n);
void nicsim_fault_rx_out(struct nicsim_ktls *ctx, const struct rxt_out *out);
bool nicsim_fault_rx_passes(struct nicsim_ktls *ctx);
void nicsim_fault_rx_after(struct nicsim_ktls *ctx, u8 *payload, u32 n);

/* faults/fault_ctx.c */
unsigned int nicsim_fault_key_len(struct nicsim *ns, unsigned int len);
void nicsim_fault_ctx_init(struct nicsim_ktls *ctx, const struct sock *sk, u32 start_seq,
			   unsigned int key_len);
bool nicsim_fault_refuses(struct nicsim *ns, const struct sock *sk, unsigned int key_len,
			  u32 dir);
bool nicsim_fault_orphaned(struct nicsim_ktls *ctx);
u8 *nicsim_fault_kept(struct nicsim_ktls *ctx);
void nicsim_fault_ctx_exit(struct nicsim_ktls *ctx);

/* faults/fault_rekey.c */
u64 nicsim_fault_rekey(struct nicsim *ns, enum tls_offload_ctx_dir dir, bool again,
		       struct nicsim_secret *s);
bool nicsim_fault_rekey_refused(struct nicsim *ns, bool again);
bool nicsim_fault_early(struct nicsim_ktls *ctx);
void nicsim_fault_twice(struct nicsim_ktls *ctx, u8 *p, u32 n, u32 seq);
u32 nicsim_fault_failed(struct nicsim_ktls *ctx, const struct rxt_out *out);

/* faults/fault_bug.c */
void nicsim_fault_bug_add(struct nicsim_ktls *ctx);
void nicsim_fault_bug_del(struct nicsim_ktls *ctx);
void nicsim_fault_bug_free(struct nicsim_ktls *ctx);

/* netdev/fault_netdev.c */
netdev_features_t nicsim_fix_features(struct net_device *dev, netdev_features_t features);
int nicsim_change_mtu(struct net_device *dev, int mtu);
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
