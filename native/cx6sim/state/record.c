/* SPDX-License-Identifier: Apache-2.0 */
/* TLS 1.2 records with AES-GCM (RFC 5288) in a stream that comes in pieces: sealed or opened where they lie. */
#include <openssl/crypto.h>
#include <openssl/evp.h>

#include "cx6.h"

enum { HEAD = 5, NONCE = 8, TAG = 16, PLAIN_MAX = 16384 };

/* A header as every record behind the handshake has it. */
bool record_head_right(const uint8_t head[static 5])
{
	uint32_t size = load16(head + 3);

	return head[0] >= 20 && head[0] <= 24 && load16(head + 1) == 0x0303 && size >= NONCE + TAG &&
	       size <= PLAIN_MAX + NONCE + TAG;
}

bool record_key(struct record *r, const uint8_t *key, uint32_t size, bool sealing)
{
	EVP_CIPHER_CTX *x = r->cipher ? r->cipher : EVP_CIPHER_CTX_new();

	r->cipher = x;
	r->sealing = sealing;
	return x && (size == 16 || size == 32) &&
	       EVP_CipherInit_ex(x, size == 32 ? EVP_aes_256_gcm() : EVP_aes_128_gcm(), NULL, key, NULL, sealing) == 1;
}

void record_free(struct record *r)
{
	EVP_CIPHER_CTX_free(r->cipher);
	OPENSSL_cleanse(r, sizeof(*r));
}

/* Header and nonce are known: the cipher begins. The additional data is RFC 5246, 6.2.3.3. */
static bool begin(struct card *c, struct record *r)
{
	uint32_t plain = r->size - NONCE - TAG;
	uint8_t iv[12], ad[13];
	int out;

	memcpy(iv, r->salt, 4);
	memcpy(iv + 4, r->head + HEAD, NONCE);
	if (r->sealing && fault_hit(c, FAULT_TX_NONCE))
		iv[11] ^= 1;
	if (r->sealing && fault_hit(c, FAULT_TX_SALT))
		iv[0] ^= 1;
	memcpy(ad, r->number, 8);
	memcpy(ad + 8, r->head, 3);
	store16(ad + 11, plain);
	return EVP_CipherInit_ex(r->cipher, NULL, NULL, NULL, iv, -1) == 1 &&
	       EVP_CipherUpdate(r->cipher, NULL, &out, ad, sizeof(ad)) == 1;
}

static uint32_t least(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/* Bytes of the header and the nonce are kept. False if this is no record. */
static bool take_head(struct card *c, struct record *r, const uint8_t *data, uint32_t len)
{
	memcpy(r->head + r->at, data, len);
	r->at += len;
	if (r->at >= HEAD) {
		r->size = load16(r->head + 3);
		if (!record_head_right(r->head))
			return false;
	}
	return r->at < HEAD + NONCE || begin(c, r);
}

static void finish_sealing(struct card *c, struct record *r)
{
	uint8_t rest[16];
	int out;

	EVP_CipherFinal_ex(r->cipher, rest, &out);
	EVP_CIPHER_CTX_ctrl(r->cipher, EVP_CTRL_GCM_GET_TAG, TAG, r->tag);
	if (fault_hit(c, FAULT_TX_TAG))
		r->tag[3] ^= 4;
}

static bool tag_right(struct record *r)
{
	uint8_t rest[16];
	int out;

	EVP_CIPHER_CTX_ctrl(r->cipher, EVP_CTRL_GCM_SET_TAG, TAG, r->tag);
	return EVP_CipherFinal_ex(r->cipher, rest, &out) > 0;
}

/* A record is whole: the next one has the next number. False if it was opened and its tag is wrong. */
static bool finish(struct card *c, struct record *r)
{
	bool right = r->sealing || tag_right(r);

	r->at = 0;
	for (int i = 7; i >= 0 && !++r->number[i]; i--)
		;
	c->truth.sealed += r->sealing;
	c->truth.opened += !r->sealing && right;
	c->truth.tags_failed += !right;
	return right;
}

static bool take_tag(struct card *c, struct record *r, uint8_t *data, uint32_t len)
{
	uint32_t at = r->at - (HEAD + r->size - TAG);

	if (r->sealing && !at)
		finish_sealing(c, r);
	if (r->sealing)
		memcpy(data, r->tag + at, len);
	else
		memcpy(r->tag + at, data, len);
	r->at += len;
	return r->at < HEAD + r->size || finish(c, r);
}

/* The next bytes of the stream. 0: all is well; 1: a tag was wrong; -1: this is no record any more. */
int record_run(struct card *c, struct record *r, uint8_t *data, uint32_t len)
{
	int wrong = 0, out;

	while (len) {
		uint32_t body = HEAD + r->size - TAG, part;

		if (r->at < HEAD + NONCE) {
			part = least(len, r->at < HEAD ? HEAD - r->at : HEAD + NONCE - r->at);
			if (!take_head(c, r, data, part))
				return -1;
		} else if (r->at < body) {
			part = least(len, body - r->at);
			if (EVP_CipherUpdate(r->cipher, data, &out, data, (int)part) != 1)
				return -1;
			r->at += part;
		} else {
			part = least(len, HEAD + r->size - r->at);
			wrong |= !take_tag(c, r, data, part);
		}
		data += part;
		len -= part;
	}
	return wrong;
}
