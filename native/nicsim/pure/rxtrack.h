/* SPDX-License-Identifier: GPL-2.0-only */
/* The receive state machine of the simulated silicon: in sync, lost, or tracking headers. */
#ifndef NICSIM_RXTRACK_H
#define NICSIM_RXTRACK_H

#include "record.h"

/* Ask again after this many records: the kernel stays silent after a request without a match. */
#define RXT_PATIENCE 64

enum rxt_state { RXT_SYNC, RXT_LOST, RXT_TRACK };

struct rxt {
	struct rec rec;		/* in RXT_TRACK rec.sn counts records since the candidate */
	enum rxt_state state;
	u32 next;		/* TCP sequence number expected next */
	u32 cand;		/* TCP sequence number of the candidate record */
	bool confirmed;
};

struct rxt_out {
	bool decrypted;		/* the whole packet is plaintext; bad_tags says if it is genuine */
	bool touched;		/* the bytes were changed; if not decrypted, restore them */
	bool resync;		/* new candidate: ask the kernel */
	bool confirm;		/* the candidate looks right */
	u32 cand;
	u32 bad_tags;
	u32 errors;		/* a header that is none, AES failures */
	u32 gaps, hops, lost, old, req_skip;
};

void rxt_init(struct rxt *t, const struct gcm_key *key, const u8 salt[REC_SALT], u64 sn, u32 seq);
void rxt_packet(struct rxt *t, u32 seq, u8 *p, u32 n, struct rxt_out *out);
/* The kernel's answer: the record at @seq has number @sn. False: not the one asked for. */
bool rxt_answer(struct rxt *t, u32 seq, u64 sn);
/* Does a record start within this packet, as far as the tracker knows? */
bool rxt_record_starts(const struct rxt *t, u32 seq, u32 n);

#endif
