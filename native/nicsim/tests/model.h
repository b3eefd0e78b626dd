/* SPDX-License-Identifier: GPL-2.0-only */
/* A TLS 1.2 or 1.3 AES-GCM stream made by OpenSSL: what is on the wire, and what a NIC decrypts it to. */
#ifndef NICSIM_MODEL_H
#define NICSIM_MODEL_H

#include "test.h"

#define STREAM_MAX (1 << 19)
#define RECORDS_MAX 2048

struct stream {
	struct aes aes;
	struct gcm_key key;
	bool tls13;
	u8 salt[REC_SALT];
	u8 iv[REC_NONCE];	/* TLS 1.3 */
	u64 sn;			/* of the first record */
	u32 records, len;
	u32 start[RECORDS_MAX + 1];
	u8 wire[STREAM_MAX];
	u8 clear[STREAM_MAX];	/* same framing, nonces and tags, plaintext payload */
};

/* @records records with up to @most payload bytes each (fewer records if there is no room). */
void stream_make(struct stream *s, u32 records, u32 most);
/* The same in TLS 1.3. */
void stream_make13(struct stream *s, u32 records, u32 most);
/* The engine at the start of a stream. */
void stream_start(const struct stream *s, struct rec *r);
/* The record that offset @at lies in. */
u32 stream_record(const struct stream *s, u32 at);
bool stream_is_start(const struct stream *s, u32 at);

#endif
