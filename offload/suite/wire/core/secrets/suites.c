/* SPDX-License-Identifier: Apache-2.0 */
/* Which cipher and hash does a suite name? RFC 5288, 5289, 7905 and 8446 appendix B.4. */
#include "crypt.h"

static const struct suite suites[] = {
	{ 0x009e, 12, AES_GCM_128, 32, "SHA256" },
	{ 0x009f, 12, AES_GCM_256, 48, "SHA384" },
	{ 0xc02b, 12, AES_GCM_128, 32, "SHA256" },
	{ 0xc02c, 12, AES_GCM_256, 48, "SHA384" },
	{ 0xc02f, 12, AES_GCM_128, 32, "SHA256" },
	{ 0xc030, 12, AES_GCM_256, 48, "SHA384" },
	{ 0xcca8, 12, CHACHA20_POLY1305, 32, "SHA256" },
	{ 0xcca9, 12, CHACHA20_POLY1305, 32, "SHA256" },
	{ 0xccaa, 12, CHACHA20_POLY1305, 32, "SHA256" },
	{ 0x1301, 13, AES_GCM_128, 32, "SHA256" },
	{ 0x1302, 13, AES_GCM_256, 48, "SHA384" },
	{ 0x1303, 13, CHACHA20_POLY1305, 32, "SHA256" },
};

/* NULL for a suite that is not supported. */
const struct suite *suite_find(uint16_t id)
{
	for (size_t i = 0; i < sizeof(suites) / sizeof(suites[0]); i++)
		if (suites[i].id == id)
			return &suites[i];
	return NULL;
}

const char *cipher_name(const struct suite *s)
{
	static const char *const names[CIPHERS] = { "aes-gcm-128", "aes-gcm-256", "chacha20-poly1305" };

	return names[s->cipher];
}

size_t suite_key_len(const struct suite *s)
{
	return s->cipher == AES_GCM_128 ? 16 : 32;
}

/* Bytes of the nonce that travel with each record (RFC 5288 section 3). */
size_t suite_nonce_len(const struct suite *s)
{
	return s->tls == 12 && s->cipher != CHACHA20_POLY1305 ? 8 : 0;
}

/* What a record has beyond its (inner) plaintext. */
size_t suite_overhead(const struct suite *s)
{
	return suite_nonce_len(s) + TAG;
}
