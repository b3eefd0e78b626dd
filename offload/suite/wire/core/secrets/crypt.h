/* SPDX-License-Identifier: Apache-2.0 */
/* Suites, keys of one epoch, and records under them. */
#ifndef WIRE_CRYPT_H
#define WIRE_CRYPT_H

#include <stdatomic.h>

#include <openssl/evp.h>

#include "bytes.h"

enum cipher { AES_GCM_128, AES_GCM_256, CHACHA20_POLY1305, CIPHERS };
enum { TAG = 16, PLAIN_MAX = 16640, OPENERS = 8 };

struct suite {
	uint16_t id;
	uint8_t tls; /* 12 or 13 */
	uint8_t cipher, hash_len;
	const char *hash;
};

/* Keys of one direction from one key change to the next; shared by jobs, wiped by the last owner. */
struct epoch {
	atomic_uint owners;
	uint64_t id; /* no other epoch of this run has it */
	const struct suite *suite;
	uint8_t key[32], iv[12];
};

/* What libcrypto keeps for an epoch, one set per thread: a key schedule is set up once, not per record. */
struct opener {
	struct opener_slot {
		uint64_t id[4];
		EVP_CIPHER_CTX *seal, *open, *block;
		struct gcm *gcm;
	} slot[OPENERS];
	uint8_t *scratch; /* made when it is first wanted */
};

/* A record that is being sealed: by intel-ipsec-mb, or else by libcrypto. */
struct sealing {
	struct gcm *gcm;
	EVP_CIPHER_CTX *ctx;
};

/* One record's nonce and additional data. */
struct label_of_record {
	uint8_t nonce[12], aad[13];
	uint8_t aad_len;
};

/* suites.c */
const struct suite *suite_find(uint16_t id);
const char *cipher_name(const struct suite *s);
size_t suite_key_len(const struct suite *s);
size_t suite_overhead(const struct suite *s);
size_t suite_nonce_len(const struct suite *s);

/* derive.c */
struct epoch *epoch_new(const struct suite *s);
struct epoch *epoch_keep(struct epoch *e);
void epoch_drop(struct epoch *e);
bool derive12(const struct suite *s, const uint8_t master[48], const uint8_t client[32], const uint8_t server[32],
	      struct epoch *from_client, struct epoch *from_server);
bool derive13(struct epoch *e, const uint8_t *secret);
bool next_secret(const struct suite *s, uint8_t *secret);

/* crypt.c */
void crypt_start(void);
uint8_t *opener_scratch(struct opener *o);
void opener_free(struct opener *o);
void record_label(const struct epoch *e, uint64_t seq, uint8_t type, size_t plain, const uint8_t *explicit,
		  struct label_of_record *l);
bool seal_begin(struct opener *o, const struct epoch *e, const struct label_of_record *l, struct sealing *s);
bool seal_text(struct sealing *s, const uint8_t *plain, size_t len, uint8_t *out);
bool seal_end(struct sealing *s, uint8_t tag[TAG]);
bool seal(struct opener *o, const struct epoch *e, const struct label_of_record *l, const uint8_t *plain, size_t len,
	  uint8_t *out);
bool open_record(struct opener *o, const struct epoch *e, const struct label_of_record *l, const uint8_t *in,
		 size_t len, uint8_t *out);
bool keystream(struct opener *o, const struct epoch *e, const uint8_t nonce[12], size_t at, uint8_t *out, size_t len);

#endif
