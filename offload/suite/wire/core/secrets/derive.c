/* SPDX-License-Identifier: Apache-2.0 */
/* From logged secrets to keys: the TLS 1.2 key block (RFC 5246 section 5) and TLS 1.3 labels (RFC 8446 section 7). */
#include <stdlib.h>

#include <openssl/crypto.h>
#include <openssl/hmac.h>

#include "crypt.h"
#include "text.h"

enum { HASH_MAX = 48, LABEL_MAX = 64 };

static atomic_uint_fast64_t last_id;

struct epoch *epoch_new(const struct suite *s)
{
	struct epoch *e = grab(sizeof(*e));

	atomic_init(&e->owners, 1);
	e->id = atomic_fetch_add(&last_id, 1) + 1;
	e->suite = s;
	return e;
}

struct epoch *epoch_keep(struct epoch *e)
{
	if (e)
		atomic_fetch_add_explicit(&e->owners, 1, memory_order_relaxed);
	return e;
}

void epoch_drop(struct epoch *e)
{
	if (!e || atomic_fetch_sub_explicit(&e->owners, 1, memory_order_acq_rel) != 1)
		return;
	OPENSSL_cleanse(e, sizeof(*e));
	free(e);
}

static const EVP_MD *hash_of(const struct suite *s)
{
	return s->hash_len == 48 ? EVP_sha384() : EVP_sha256();
}

static bool hmac(const struct suite *s, const uint8_t *key, size_t key_len, const uint8_t *in, size_t len, uint8_t *out)
{
	unsigned int n = 0;

	return HMAC(hash_of(s), key, (int)key_len, in, len, out, &n) && n == s->hash_len;
}

/* RFC 5246 section 5, P_hash: fills a multiple of the hash length. */
static bool prf(const struct suite *s, const uint8_t master[48], const uint8_t *seed, size_t seed_len, uint8_t *out,
		size_t len)
{
	uint8_t a[HASH_MAX + 128];
	bool ok;

	memcpy(a + s->hash_len, seed, seed_len);
	ok = hmac(s, master, 48, seed, seed_len, a);
	for (size_t done = 0; ok && done < len; done += s->hash_len) {
		ok = hmac(s, master, 48, a, s->hash_len + seed_len, out + done);
		if (ok && done + s->hash_len < len) {
			uint8_t next[HASH_MAX];

			ok = hmac(s, master, 48, a, s->hash_len, next);
			memcpy(a, next, s->hash_len);
		}
	}
	OPENSSL_cleanse(a, sizeof(a));
	return ok;
}

/* Keys of both directions of a TLS 1.2 connection. */
bool derive12(const struct suite *s, const uint8_t master[48], const uint8_t client[32], const uint8_t server[32],
	      struct epoch *from_client, struct epoch *from_server)
{
	uint8_t seed[13 + 64] = "key expansion", block[4 * HASH_MAX];
	size_t key = suite_key_len(s), iv = s->cipher == CHACHA20_POLY1305 ? 12 : 4, need = 2 * (key + iv);
	bool ok;

	memcpy(seed + 13, server, 32);
	memcpy(seed + 45, client, 32);
	ok = prf(s, master, seed, sizeof(seed), block, (need + s->hash_len - 1) / s->hash_len * s->hash_len);
	if (ok) {
		memcpy(from_client->key, block, key);
		memcpy(from_server->key, block + key, key);
		memcpy(from_client->iv, block + 2 * key, iv);
		memcpy(from_server->iv, block + 2 * key + iv, iv);
	}
	OPENSSL_cleanse(block, sizeof(block));
	return ok;
}

/* HKDF-Expand-Label with empty context; one round of HMAC is enough for all that TLS 1.3 wants. */
static bool expand(const struct suite *s, const uint8_t *secret, const char *label, size_t len, uint8_t *out)
{
	uint8_t info[LABEL_MAX], hash[HASH_MAX];
	size_t n = strlen(label);
	bool ok;

	put_be16(info, (uint16_t)len);
	info[2] = (uint8_t)(6 + n);
	memcpy(info + 3, "tls13 ", 6);
	memcpy(info + 9, label, n);
	info[9 + n] = 0;
	info[10 + n] = 1;
	ok = hmac(s, secret, s->hash_len, info, 11 + n, hash);
	if (ok)
		memcpy(out, hash, len);
	OPENSSL_cleanse(hash, sizeof(hash));
	return ok;
}

/* The key and iv that belong to a TLS 1.3 traffic secret. */
bool derive13(struct epoch *e, const uint8_t *secret)
{
	return expand(e->suite, secret, "key", suite_key_len(e->suite), e->key) &&
	       expand(e->suite, secret, "iv", sizeof(e->iv), e->iv);
}

/* The traffic secret after a KeyUpdate, in place. */
bool next_secret(const struct suite *s, uint8_t *secret)
{
	return expand(s, secret, "traffic upd", s->hash_len, secret);
}
