/* SPDX-License-Identifier: Apache-2.0 */
/* detrand: an OpenSSL provider whose "random" numbers all follow from a seed. Only for tests: see README.md.
 * Every instance starts from the seed again. OpenSSL keeps a public and a private one per thread, so what a
 * connection's thread draws does not depend on what other threads drew before. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/core_dispatch.h>
#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/params.h>

#define SEED_VARIABLE "KTLS_OFFLOAD_TEST_RANDOM"
#define STRENGTH 256 /* what TLS asks for at most: otherwise OpenSSL refuses to draw */
#define MAX_REQUEST 65536

__attribute__((visibility("default"))) OSSL_provider_init_fn OSSL_provider_init;

struct instance {
	pthread_mutex_t lock;
	uint64_t state;
	unsigned char word[8];
	unsigned int left; /* bytes of word that nobody took yet */
};

static const char *seed(void)
{
	const char *text = secure_getenv(SEED_VARIABLE);

	return text && *text ? text : NULL;
}

/* FNV-1a, 64 bits: any text becomes a starting point. */
static uint64_t start(const char *text)
{
	uint64_t hash = 0xcbf29ce484222325;

	for (const char *c = text; *c; c++)
		hash = (hash ^ (unsigned char)*c) * 0x100000001b3;
	return hash;
}

/* splitmix64 (Steele, Lea and Flood 2014); bytes in little-endian order on every machine. */
static void refill(struct instance *in)
{
	uint64_t z = in->state += 0x9e3779b97f4a7c15;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
	z ^= z >> 31;
	for (int i = 0; i < 8; i++)
		in->word[i] = (unsigned char)(z >> 8 * i);
	in->left = 8;
}

static void *newctx(void *provider, void *parent, const OSSL_DISPATCH *parent_calls)
{
	struct instance *in = calloc(1, sizeof(*in));

	(void)provider, (void)parent, (void)parent_calls;
	if (in)
		pthread_mutex_init(&in->lock, NULL);
	return in;
}

static void freectx(void *ctx)
{
	struct instance *in = ctx;

	if (!in)
		return;
	pthread_mutex_destroy(&in->lock);
	free(in);
}

static int instantiate(void *ctx, unsigned int strength, int resistance, const unsigned char *text, size_t len,
		       const OSSL_PARAM params[])
{
	struct instance *in = ctx;
	const char *from = seed();

	(void)resistance, (void)text, (void)len, (void)params;
	if (!from || strength > STRENGTH)
		return 0;
	in->state = start(from);
	in->left = 0;
	return 1;
}

static int uninstantiate(void *ctx)
{
	(void)ctx;
	return 1;
}

static int generate(void *ctx, unsigned char *out, size_t len, unsigned int strength, int resistance,
		    const unsigned char *text, size_t text_len)
{
	struct instance *in = ctx;

	(void)resistance, (void)text, (void)text_len;
	if (strength > STRENGTH)
		return 0;
	for (; len > 0; len--) {
		if (in->left == 0)
			refill(in);
		*out++ = in->word[8 - in->left--];
	}
	return 1;
}

static int enable_locking(void *ctx)
{
	(void)ctx;
	return 1;
}

static int lock(void *ctx)
{
	return pthread_mutex_lock(&((struct instance *)ctx)->lock) == 0;
}

static void unlock(void *ctx)
{
	pthread_mutex_unlock(&((struct instance *)ctx)->lock);
}

static int get_ctx_params(void *ctx, OSSL_PARAM params[])
{
	OSSL_PARAM *state = OSSL_PARAM_locate(params, OSSL_RAND_PARAM_STATE);
	OSSL_PARAM *strength = OSSL_PARAM_locate(params, OSSL_RAND_PARAM_STRENGTH);
	OSSL_PARAM *most = OSSL_PARAM_locate(params, OSSL_RAND_PARAM_MAX_REQUEST);

	(void)ctx;
	return (!state || OSSL_PARAM_set_int(state, EVP_RAND_STATE_READY)) &&
	       (!strength || OSSL_PARAM_set_uint(strength, STRENGTH)) &&
	       (!most || OSSL_PARAM_set_size_t(most, MAX_REQUEST));
}

#define CALL(id, f) { id, (void (*)(void))(f) }
static const OSSL_DISPATCH calls[] = {
	CALL(OSSL_FUNC_RAND_NEWCTX, newctx),
	CALL(OSSL_FUNC_RAND_FREECTX, freectx),
	CALL(OSSL_FUNC_RAND_INSTANTIATE, instantiate),
	CALL(OSSL_FUNC_RAND_UNINSTANTIATE, uninstantiate),
	CALL(OSSL_FUNC_RAND_GENERATE, generate),
	CALL(OSSL_FUNC_RAND_ENABLE_LOCKING, enable_locking),
	CALL(OSSL_FUNC_RAND_LOCK, lock),
	CALL(OSSL_FUNC_RAND_UNLOCK, unlock),
	CALL(OSSL_FUNC_RAND_GET_CTX_PARAMS, get_ctx_params),
	{ 0, NULL },
};

static const OSSL_ALGORITHM algorithms[] = {
	{ "DET-RAND", "provider=detrand", calls, "numbers that follow from a seed; for tests only" },
	{ NULL, NULL, NULL, NULL },
};

static const OSSL_ALGORITHM *query(void *provider, int operation, int *no_cache)
{
	(void)provider;
	*no_cache = 0;
	return operation == OSSL_OP_RAND ? algorithms : NULL;
}

static const OSSL_DISPATCH provider_calls[] = {
	CALL(OSSL_FUNC_PROVIDER_QUERY_OPERATION, query),
	{ 0, NULL },
};

/* The guard: without a seed there is no provider, and with one its use is always announced. */
int OSSL_provider_init(const OSSL_CORE_HANDLE *core, const OSSL_DISPATCH *in, const OSSL_DISPATCH **out,
		       void **provider)
{
	(void)in;
	if (!seed()) {
		fprintf(stderr, "detrand: refused: it makes every key predictable; tests set %s\n", SEED_VARIABLE);
		return 0;
	}
	fprintf(stderr, "detrand: TEST ONLY: every key of this process is predictable\n");
	*out = provider_calls;
	*provider = (void *)core;
	return 1;
}
