// SPDX-License-Identifier: GPL-2.0-only
/* Is gcm.c the AES-GCM of OpenSSL, however the bytes are cut? */
#include "test.h"

#define MAX 20000

static struct gcm_key key;
static struct aes aes;
static u8 plain[MAX], ours[MAX], theirs[MAX];
static u8 nonce[GCM_NONCE], aad[64], tag[16], want[16];

static void new_key(void)
{
	aes.len = rnd() & 0x10000 ? 16 : 32;
	rnd_bytes(aes.key, sizeof(aes.key));
	rnd_bytes(nonce, sizeof(nonce));
	if (gcm_key_init(&key, aes_ctr, &aes))
		abort();
}

static void crypt_in_pieces(struct gcm *g, enum gcm_op op, u8 *p, u32 n, u32 most)
{
	while (n) {
		u32 piece = min_t(u32, n, rnd_range(1, most));

		if (gcm_crypt(&key, g, op, p, piece))
			abort();
		p += piece;
		n -= piece;
	}
}

/* NIST SP 800-38D test case 4 (McGrew and Viega): a known answer that is nobody's code. */
static int known_answer(u32 rounds)
{
	static const u8 expect[16] = { 0x5b, 0xc9, 0x4f, 0xbc, 0x32, 0x21, 0xa5, 0xdb,
				       0x94, 0xfa, 0xe9, 0x5a, 0xe7, 0x12, 0x1a, 0x47 };
	static const char *k = "feffe9928665731c6d6a8f9467308308", *n = "cafebabefacedbaddecaf888",
		*a = "feedfacedeadbeeffeedfacedeadbeefabaddad2",
		*p = "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72"
		     "1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39";
	struct gcm g;
	u32 i;

	(void)rounds;
	aes.len = 16;
	for (i = 0; i < 16; i++)
		sscanf(k + 2 * i, "%2hhx", &aes.key[i]);
	for (i = 0; i < GCM_NONCE; i++)
		sscanf(n + 2 * i, "%2hhx", &nonce[i]);
	for (i = 0; i < 20; i++)
		sscanf(a + 2 * i, "%2hhx", &aad[i]);
	for (i = 0; i < 60; i++)
		sscanf(p + 2 * i, "%2hhx", &ours[i]);
	NEED(!gcm_key_init(&key, aes_ctr, &aes));
	gcm_start(&key, &g, nonce, aad, 20);
	crypt_in_pieces(&g, GCM_ENCRYPT, ours, 60, 7);
	NEED(!gcm_tag(&key, &g, tag));
	NEED(!memcmp(tag, expect, 16));
	return 0;
}

static int like_openssl(u32 rounds)
{
	struct gcm g;

	while (rounds--) {
		u32 n = rnd_range(0, rounds % 8 ? 300 : MAX), a = rnd_range(0, 64);

		new_key();
		rnd_bytes(plain, n);
		rnd_bytes(aad, a);
		memcpy(ours, plain, n);
		gcm_start(&key, &g, nonce, aad, a);
		crypt_in_pieces(&g, GCM_ENCRYPT, ours, n, rounds % 3 ? 40 : 1500);
		NEED(!gcm_tag(&key, &g, tag));
		openssl_gcm(&aes, nonce, aad, a, plain, n, theirs, want);
		NEED(!memcmp(ours, theirs, n) && !memcmp(tag, want, 16));
	}
	return 0;
}

static int back_again(u32 rounds)
{
	struct gcm g;

	while (rounds--) {
		u32 n = rnd_range(1, 2000);

		new_key();
		rnd_bytes(plain, n);
		openssl_gcm(&aes, nonce, aad, 13, plain, n, ours, want);
		gcm_start(&key, &g, nonce, aad, 13);
		crypt_in_pieces(&g, GCM_DECRYPT, ours, n, 50);
		NEED(!gcm_tag(&key, &g, tag));
		NEED(!memcmp(ours, plain, n) && !memcmp(tag, want, 16));
	}
	return 0;
}

const struct test gcm_tests[] = {
	{ "gcm: known answer of the GCM paper", known_answer },
	{ "gcm: as OpenSSL, in random pieces", like_openssl },
	{ "gcm: decrypts what OpenSSL encrypted", back_again },
	{ NULL, NULL },
};
