/* SPDX-License-Identifier: Apache-2.0 */
/* libFuzzer: captures of strangers, through the whole verifier. The first byte of an input chooses the question; keys,
 * payload and reply are those of the seeds (tests/lib/wiregen/seeds.py). */
#include <stdlib.h>
#include <sys/random.h>

#include "core.h"

enum { WITH_PAYLOAD = 1, WITH_REPLY = 2, WITH_PORT = 4, WITH_CHECKSUMS = 8, BELIEVE = 16, SIZE_SHIFT = 5, WITH_THREADS = 128 };
enum { PAYLOAD_MAX = 300, PORT = 443, KEYS_MAX = 8192 };

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
ssize_t __wrap_getrandom(void *at, size_t len, unsigned int flags);
int __wrap_EVP_DecryptFinal_ex(EVP_CIPHER_CTX *ctx, unsigned char *out, int *len);
int __real_EVP_DecryptFinal_ex(EVP_CIPHER_CTX *ctx, unsigned char *out, int *len);

static char keys[KEYS_MAX];
static size_t keys_len;
static uint8_t payload[PAYLOAD_MAX];
static bool believe;

/* A finding has to happen again: the seed of the hash tables is always the same. */
ssize_t __wrap_getrandom(void *at, size_t len, unsigned int flags)
{
	(void)flags;
	memset(at, 0x5a, len);
	return (ssize_t)len;
}

/* Nobody finds a right tag by trying: with BELIEVE each is right, so that what lies behind it is met too. */
int __wrap_EVP_DecryptFinal_ex(EVP_CIPHER_CTX *ctx, unsigned char *out, int *len)
{
	return believe ? 1 : __real_EVP_DecryptFinal_ex(ctx, out, len);
}

static void add_hex(uint8_t byte)
{
	keys_len += (size_t)sprintf(keys + keys_len, "%02x", byte);
}

static void add_secret(const char *label, int number, uint8_t random, int len)
{
	keys_len += (size_t)sprintf(keys + keys_len, "%s ", label);
	for (int i = 0; i < 32; i++)
		add_hex(random);
	keys[keys_len++] = ' ';
	for (int i = 0; i < len; i++)
		add_hex((uint8_t)(53 * number + 7 * i + random));
	keys[keys_len++] = '\n';
}

/* Client randoms: 32 times 0x12 for TLS 1.2; for TLS 1.3 0x13 with SHA-256, 0x14 with SHA-384, 0x15 with early data. */
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	static const char *const labels[] = { "CLIENT_HANDSHAKE_TRAFFIC_SECRET", "SERVER_HANDSHAKE_TRAFFIC_SECRET",
					      "CLIENT_TRAFFIC_SECRET_0", "SERVER_TRAFFIC_SECRET_0",
					      "CLIENT_EARLY_TRAFFIC_SECRET" };

	(void)argc;
	(void)argv;
	add_secret("CLIENT_RANDOM", 0, 0x12, 48);
	for (int i = 0; i < 5; i++) {
		if (i < 4)
			add_secret(labels[i], i + 1, 0x13, 32);
		if (i < 4)
			add_secret(labels[i], i + 1, 0x14, 48);
		add_secret(labels[i], i + 1, 0x15, 32);
	}
	for (uint32_t i = 0; i < PAYLOAD_MAX; i++)
		payload[i] = (uint8_t)(i * 0x9e3779b1u >> 24);
	return 0;
}

static struct bytes some_payload(bool given, uint8_t options)
{
	static const uint16_t sizes[] = { PAYLOAD_MAX, 64, 16, 0 };

	return (struct bytes){ .at = payload, .len = given ? sizes[options >> SIZE_SHIFT & 3] : 0, .given = given };
}

/* A verdict is one whole document, a refusal is one sentence. */
static void look(int rc, const struct text *t, const struct failure *f)
{
	bool document = t->len > 2 && t->buf[0] == '{' && t->buf[t->len - 2] == '}' && t->buf[t->len - 1] == '\n';

	if (rc == RC_OK ? !document || f->message[0] : rc != RC_INPUT || t->len || !f->message[0])
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t options = size ? data[0] : 0;
	struct question q = { .threads = options & WITH_THREADS ? 2 : 1, .port = options & WITH_PORT ? PORT : 0,
			      .checksums = options & WITH_CHECKSUMS };
	struct failure f = { .message = "" };
	struct text t = { .to = NULL };

	if (!size)
		return 0;
	believe = options & BELIEVE;
	q.capture = (struct bytes){ .at = data + 1, .len = size - 1, .given = true };
	q.keylog = (struct bytes){ .at = (const uint8_t *)keys, .len = keys_len, .given = true };
	q.payload = some_payload(options & WITH_PAYLOAD, options);
	q.reply = some_payload(options & WITH_REPLY, options);
	look(wire_verify(&q, &t, &f), &t, &f);
	free(t.buf);
	return 0;
}
