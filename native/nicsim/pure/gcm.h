/* SPDX-License-Identifier: GPL-2.0-only */
/* AES-GCM that can stop and go on at any byte. The AES part is the caller's. */
#ifndef NICSIM_GCM_H
#define NICSIM_GCM_H

#include "pure.h"

#define GCM_BLOCK 16
#define GCM_NONCE 12

/*
 * XOR the AES-CTR key stream that starts with counter block @iv into @buf.
 * Returns 0 or a negative errno. @buf is never on the stack.
 */
typedef int (*gcm_ctr_fn)(void *aes, const u8 iv[GCM_BLOCK], u8 *buf, size_t len);

struct gcm_key {
	gcm_ctr_fn ctr;
	void *aes;
	u8 h[GCM_BLOCK];
	u64 table[256][2];	/* multiples of H: high half, low half */
};

struct gcm {
	u64 hash[2];
	u32 aad_len;
	u32 len;		/* payload bytes seen so far */
	u32 skew, skew_from;	/* a fault: key stream off by this many blocks from this byte on */
	u8 nonce[GCM_NONCE];
	u8 stream[GCM_BLOCK];	/* key stream of the present block */
};

enum gcm_op { GCM_ENCRYPT, GCM_DECRYPT, GCM_HASH_ONLY };

int gcm_key_init(struct gcm_key *key, gcm_ctr_fn ctr, void *aes);
void gcm_start(const struct gcm_key *key, struct gcm *g, const u8 nonce[GCM_NONCE],
	       const u8 *aad, u32 aad_len);
int gcm_crypt(const struct gcm_key *key, struct gcm *g, enum gcm_op op, u8 *p, u32 n);
int gcm_tag(const struct gcm_key *key, struct gcm *g, u8 tag[GCM_BLOCK]);

#endif
