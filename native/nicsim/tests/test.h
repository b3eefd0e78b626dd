/* SPDX-License-Identifier: GPL-2.0-only */
/* Test helpers: a seeded generator, a counting check, AES and AES-GCM from libcrypto. */
#ifndef NICSIM_TEST_H
#define NICSIM_TEST_H

#include <stdio.h>
#include <stdlib.h>

#include "pure/record.h"

struct aes {
	u8 key[32];
	u32 len;
};

u64 rnd(void);
void rnd_seed(u64 seed);
u32 rnd_range(u32 lo, u32 hi);
void rnd_bytes(u8 *p, u32 n);

int aes_ctr(void *aes, const u8 iv[GCM_BLOCK], u8 *buf, size_t len);
/* OpenSSL's AES-GCM, the independent answer: ciphertext and tag of @p. */
void openssl_gcm(const struct aes *aes, const u8 nonce[GCM_NONCE], const u8 *aad, u32 aad_len,
		 const u8 *p, u32 n, u8 *out, u8 tag[16]);

#define NEED(condition) do { \
	if (!(condition)) { \
		printf("%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
		return 1; \
	} \
} while (0)

struct test {
	const char *name;
	int (*run)(u32 rounds);	/* 0: passed */
};

extern const struct test gcm_tests[], record_tests[], fault_tests[], rxtrack_tests[];

#endif
