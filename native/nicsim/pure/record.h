/* SPDX-License-Identifier: GPL-2.0-only */
/* One direction of a TLS 1.2 or 1.3 AES-GCM stream, record after record, at byte granularity. */
#ifndef NICSIM_RECORD_H
#define NICSIM_RECORD_H

#include "gcm.h"

#define REC_HEADER 5
#define REC_NONCE 8
#define REC_PREFIX (REC_HEADER + REC_NONCE)
#define REC_TAG 16
#define REC_OVERHEAD (REC_NONCE + REC_TAG)
#define REC_MAX_PAYLOAD 16384
#define REC_SALT 4
#define REC_TYPE 1	/* TLS 1.3: the inner content type, behind the payload */

enum rec_op { REC_WALK, REC_ENCRYPT, REC_DECRYPT };

/* Faults of the transmit side; see README.md. */
#define REC_FAULT_LEAK 0x1
#define REC_FAULT_NONCE 0x2

struct rec {
	const struct gcm_key *key;
	struct gcm gcm;
	u64 sn;			/* number of the present record */
	u32 off;		/* bytes of it seen so far */
	u32 len;		/* its length with header; known when off >= REC_HEADER */
	u32 faults;
	u32 bad_tag_every;	/* a fault */
	u32 tag_checked;	/* receive: as many bytes of a tag are compared; fewer is a fault */
	u32 tag_spared;		/* receive: wrong bytes of tags that the fault let pass */
	/* Faults of the present record only. */
	u32 skew, skew_from;	/* key stream off by this many blocks, from this payload byte on */
	u8 nonce_xor;		/* the nonce that is used is not the one in the record */
	u8 renonce;		/* the record goes out under another nonce */
	/* Called when a record begins; may set the above. */
	void (*spoil)(void *arg, struct rec *r);
	void *spoil_arg;
	bool blind;		/* bytes are missing: pass the rest of it as it is */
	bool tag_bad;
	bool nonce_kept;
	u8 prefix[REC_PREFIX];
	u8 tag[REC_TAG];
	bool tls13;
	u8 salt[REC_SALT];
	u8 iv[REC_NONCE];	/* TLS 1.3: the rest of the nonce, less the number */
	u8 nonce0[REC_NONCE];	/* a fault: the nonce of the first record seen */
};

struct rec_events {
	u32 headers;		/* headers that were complete and plausible */
	u32 records;		/* records that ended */
	u32 bad_tags;
	u32 passed;		/* bytes that were not processed */
	bool bad_header;	/* stopped: not the start of a record */
	int error;		/* stopped: the AES failed */
};

void rec_init(struct rec *r, const struct gcm_key *key, const u8 salt[REC_SALT], u64 sn);
/* After rec_init(): it is a stream of TLS 1.3. */
void rec_tls13(struct rec *r, const u8 iv[REC_NONCE]);
void rec_reset(struct rec *r, u64 sn);
/* Bytes of a record before its payload: the header, in TLS 1.2 also the explicit nonce. */
u32 rec_prefix(const struct rec *r);
/* Bytes that the length in the header counts beyond the payload. */
u32 rec_overhead(const struct rec *r);
bool rec_plausible(const struct rec *r, const u8 header[REC_HEADER]);
/* Feed the next @n bytes, changed in place. Returns how many were taken: all, or it stopped. */
u32 rec_feed(struct rec *r, enum rec_op op, u8 *p, u32 n, struct rec_events *ev);
/* Can the next @n bytes be missing without losing count of the records? */
bool rec_can_skip(const struct rec *r, u32 n);
void rec_skip(struct rec *r, u32 n, struct rec_events *ev);
/* Does a record start within the next @n bytes? */
bool rec_starts_within(const struct rec *r, u32 n);

#endif
