/* SPDX-License-Identifier: Apache-2.0 */
/* Records under a key: seal, open, and bare keystream, by libcrypto; sealing step by step by a faster library, if it is there. */
#include <pthread.h>
#include <stdlib.h>

#include "gcm.h"
#include "text.h"

enum use { USE_SEAL, USE_OPEN, USE_BLOCK, USE_GCM };

static EVP_CIPHER *aead[CIPHERS], *block_of[CIPHERS];
static pthread_once_t fetched = PTHREAD_ONCE_INIT;

static void fetch_all(void)
{
	static const char *const names[CIPHERS] = { "AES-128-GCM", "AES-256-GCM", "ChaCha20-Poly1305" };
	static const char *const blocks[CIPHERS] = { "AES-128-ECB", "AES-256-ECB", "ChaCha20" };

	for (int i = 0; i < CIPHERS; i++) {
		aead[i] = EVP_CIPHER_fetch(NULL, names[i], NULL);
		block_of[i] = EVP_CIPHER_fetch(NULL, blocks[i], NULL);
	}
}

/* Fetch the algorithms once: an implicit fetch costs as much as a small record. */
void crypt_start(void)
{
	pthread_once(&fetched, fetch_all);
}

/* PLAIN_MAX + TAG bytes to work in; they stay in the cache. */
uint8_t *opener_scratch(struct opener *o)
{
	if (!o->scratch)
		o->scratch = regrab(NULL, PLAIN_MAX + TAG);
	return o->scratch;
}

void opener_free(struct opener *o)
{
	for (int i = 0; i < OPENERS; i++) {
		EVP_CIPHER_CTX_free(o->slot[i].seal);
		EVP_CIPHER_CTX_free(o->slot[i].open);
		EVP_CIPHER_CTX_free(o->slot[i].block);
		gcm_free(o->slot[i].gcm);
	}
	free(o->scratch);
	*o = (struct opener){ 0 };
}

/* The context for this epoch and use, keyed; NULL if libcrypto refuses. */
static EVP_CIPHER_CTX *context(struct opener *o, const struct epoch *e, enum use use)
{
	struct opener_slot *s = &o->slot[e->id % OPENERS];
	EVP_CIPHER_CTX **ctx = use == USE_SEAL ? &s->seal : use == USE_OPEN ? &s->open : &s->block;
	const EVP_CIPHER *cipher = use == USE_BLOCK ? block_of[e->suite->cipher] : aead[e->suite->cipher];

	if (*ctx && s->id[use] == e->id)
		return *ctx;
	s->id[use] = 0;
	if (!*ctx)
		*ctx = EVP_CIPHER_CTX_new();
	if (!*ctx || !cipher || !EVP_CipherInit_ex2(*ctx, cipher, e->key, NULL, use != USE_OPEN, NULL))
		return NULL;
	EVP_CIPHER_CTX_set_padding(*ctx, 0);
	s->id[use] = e->id;
	return *ctx;
}

/* Nonce and additional data: RFC 5288 section 3, RFC 7905 section 2, RFC 8446 sections 5.2 and 5.3. `plain` is the
 * length of what is encrypted, in TLS 1.3 with the inner type; `explicit` the nonce on the wire, or NULL. */
void record_label(const struct epoch *e, uint64_t seq, uint8_t type, size_t plain, const uint8_t *explicit,
		  struct label_of_record *l)
{
	uint8_t number[8];

	put_be64(number, seq);
	memcpy(l->nonce, e->iv, sizeof(l->nonce));
	if (explicit)
		memcpy(l->nonce + 4, explicit, 8);
	else
		for (int i = 0; i < 8; i++)
			l->nonce[4 + i] ^= number[i];
	l->aad_len = e->suite->tls == 12 ? 13 : 5;
	if (e->suite->tls == 12)
		memcpy(l->aad, number, 8);
	l->aad[l->aad_len - 5] = e->suite->tls == 12 ? type : 23;
	put_be16(l->aad + l->aad_len - 4, 0x0303);
	put_be16(l->aad + l->aad_len - 2, (uint16_t)(e->suite->tls == 12 ? plain : plain + TAG));
}

/* The faster library with the keys of this epoch; NULL if libcrypto must do it. */
static struct gcm *fast(struct opener *o, const struct epoch *e)
{
	struct opener_slot *s = &o->slot[e->id % OPENERS];

	if (s->id[USE_GCM] != e->id)
		s->id[USE_GCM] = gcm_key(&s->gcm, e) ? e->id : 0;
	return s->id[USE_GCM] ? s->gcm : NULL;
}

static bool begin(struct opener *o, const struct epoch *e, const struct label_of_record *l, struct sealing *s)
{
	int n;

	*s = (struct sealing){ .ctx = context(o, e, USE_SEAL) };
	return s->ctx && EVP_EncryptInit_ex2(s->ctx, NULL, NULL, l->nonce, NULL) &&
	       EVP_EncryptUpdate(s->ctx, NULL, &n, l->aad, l->aad_len);
}

/* Begin to seal a record; false if libcrypto refuses. */
bool seal_begin(struct opener *o, const struct epoch *e, const struct label_of_record *l, struct sealing *s)
{
	*s = (struct sealing){ .gcm = fast(o, e) };
	if (!s->gcm)
		return begin(o, e, l, s);
	gcm_begin(s->gcm, l);
	return true;
}

/* The ciphertext of its next bytes. */
bool seal_text(struct sealing *s, const uint8_t *plain, size_t len, uint8_t *out)
{
	int n;

	if (!s->gcm)
		return !len || EVP_EncryptUpdate(s->ctx, out, &n, plain, (int)len);
	gcm_text(s->gcm, plain, len, out);
	return true;
}

/* The tag of what was sealed. */
bool seal_end(struct sealing *s, uint8_t tag[TAG])
{
	int n;

	if (!s->gcm)
		return EVP_EncryptFinal_ex(s->ctx, tag, &n) &&
		       EVP_CIPHER_CTX_ctrl(s->ctx, EVP_CTRL_AEAD_GET_TAG, TAG, tag);
	gcm_end(s->gcm, tag);
	return true;
}

/* Encrypt `len` bytes by libcrypto; out gets them and the tag. */
bool seal(struct opener *o, const struct epoch *e, const struct label_of_record *l, const uint8_t *plain, size_t len,
	  uint8_t *out)
{
	struct sealing s;

	return begin(o, e, l, &s) && seal_text(&s, plain, len, out) && seal_end(&s, out + len);
}

/* Decrypt len bytes that the tag follows; out is valid also if it is false (not authentic). */
bool open_record(struct opener *o, const struct epoch *e, const struct label_of_record *l, const uint8_t *in,
		 size_t len, uint8_t *out)
{
	EVP_CIPHER_CTX *ctx = context(o, e, USE_OPEN);
	uint8_t tag[TAG], none[TAG];
	int n;

	memcpy(tag, in + len, TAG);
	return ctx && EVP_DecryptInit_ex2(ctx, NULL, NULL, l->nonce, NULL) &&
	       EVP_DecryptUpdate(ctx, NULL, &n, l->aad, l->aad_len) &&
	       (!len || EVP_DecryptUpdate(ctx, out, &n, in, (int)len)) &&
	       EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_SET_TAG, TAG, tag) && EVP_DecryptFinal_ex(ctx, none, &n) > 0;
}

/* One block of keystream: 16 bytes of AES in counter mode (NIST SP 800-38D section 6.5), 64 of ChaCha20 (RFC 8439). */
static bool one_block(EVP_CIPHER_CTX *ctx, const struct epoch *e, const uint8_t nonce[12], uint64_t number,
		      uint8_t out[64])
{
	uint8_t in[64] = { 0 };
	int n;

	if (e->suite->cipher != CHACHA20_POLY1305) {
		memcpy(in, nonce, 12);
		for (int i = 0; i < 4; i++)
			in[12 + i] = (uint8_t)((number + 2) >> (24 - 8 * i));
		return EVP_EncryptUpdate(ctx, out, &n, in, 16);
	}
	for (int i = 0; i < 4; i++)
		in[i] = (uint8_t)((number + 1) >> (8 * i));
	memcpy(in + 4, nonce, 12);
	if (!EVP_EncryptInit_ex2(ctx, NULL, NULL, in, NULL))
		return false;
	memset(in, 0, 16);
	return EVP_EncryptUpdate(ctx, out, &n, in, 64);
}

/* The keystream of a record from byte `at` on. */
bool keystream(struct opener *o, const struct epoch *e, const uint8_t nonce[12], size_t at, uint8_t *out, size_t len)
{
	size_t size = e->suite->cipher == CHACHA20_POLY1305 ? 64 : 16;
	EVP_CIPHER_CTX *ctx = context(o, e, USE_BLOCK);
	uint8_t block[64];

	while (ctx && len) {
		size_t skip = at % size, n = smaller(size - skip, len);

		if (!one_block(ctx, e, nonce, at / size, block))
			return false;
		memcpy(out, block + skip, n);
		out += n, at += n, len -= n;
	}
	return !len;
}
