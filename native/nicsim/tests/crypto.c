// SPDX-License-Identifier: GPL-2.0-only
/* libcrypto as the AES of the pure files, and as the independent AES-GCM. */
#include <openssl/evp.h>

#include "test.h"

static u64 state;

/* xorshift64*: the same run for the same seed, everywhere. */
u64 rnd(void)
{
	state ^= state >> 12;
	state ^= state << 25;
	state ^= state >> 27;
	return state * 2685821657736338717ULL;
}

void rnd_seed(u64 seed)
{
	state = seed * 0x9e3779b97f4a7c15ULL + 1;
}

u32 rnd_range(u32 lo, u32 hi)
{
	return lo + (u32)((rnd() >> 16) % (hi - lo + 1));
}

void rnd_bytes(u8 *p, u32 n)
{
	while (n--)
		*p++ = rnd() >> 24;
}

static void must(int ok)
{
	if (!ok)
		abort();
}

int aes_ctr(void *ptr, const u8 iv[GCM_BLOCK], u8 *buf, size_t len)
{
	struct aes *aes = ptr;
	const EVP_CIPHER *how = aes->len == 16 ? EVP_aes_128_ctr() : EVP_aes_256_ctr();
	EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
	int n;

	must(ctx && EVP_EncryptInit_ex(ctx, how, NULL, aes->key, iv));
	must(EVP_EncryptUpdate(ctx, buf, &n, buf, (int)len));
	EVP_CIPHER_CTX_free(ctx);
	return 0;
}

void openssl_gcm(const struct aes *aes, const u8 nonce[GCM_NONCE], const u8 *aad, u32 aad_len,
		 const u8 *p, u32 n, u8 *out, u8 tag[16])
{
	const EVP_CIPHER *how = aes->len == 16 ? EVP_aes_128_gcm() : EVP_aes_256_gcm();
	EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
	u8 none[16];
	int done;

	must(ctx && EVP_EncryptInit_ex(ctx, how, NULL, aes->key, nonce));
	if (aad_len)
		must(EVP_EncryptUpdate(ctx, NULL, &done, aad, (int)aad_len));
	if (n)
		must(EVP_EncryptUpdate(ctx, out, &done, p, (int)n));
	must(EVP_EncryptFinal_ex(ctx, none, &done));
	must(EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_GCM_GET_TAG, 16, tag));
	EVP_CIPHER_CTX_free(ctx);
}
