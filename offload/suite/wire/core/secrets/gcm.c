/* SPDX-License-Identifier: Apache-2.0 */
/* AES-GCM by intel-ipsec-mb, which seals twice as fast as libcrypto 3.0 where the processor has VAES. */
#include <pthread.h>
#include <stdlib.h>

#include <intel-ipsec-mb.h>
#include <openssl/crypto.h>

#include "gcm.h"

/* The keys of an epoch, and the record that is sealed under them. */
struct gcm {
	struct gcm_key_data key;
	struct gcm_context_data record;
	bool long_key;
};

static IMB_MGR *library; /* its functions keep nothing in it: all threads share it */
static pthread_once_t loaded = PTHREAD_ONCE_INIT;

/* It tests itself at the start. Without VAES it was never measured, and libcrypto stays. */
static void load(void)
{
	const uint64_t wanted = IMB_FEATURE_VAES | IMB_FEATURE_VPCLMULQDQ | IMB_FEATURE_SELF_TEST_PASS;

	library = alloc_mb_mgr(0);
	if (!library)
		return;
	init_mb_mgr_auto(library, NULL);
	if (!imb_get_errno(library) && (library->features & wanted) == wanted)
		return;
	free_mb_mgr(library);
	library = NULL;
}

/* The keys of this epoch, in *g or in new memory; NULL if libcrypto must do it. */
struct gcm *gcm_key(struct gcm **g, const struct epoch *e)
{
	pthread_once(&loaded, load);
	if (!library || e->suite->cipher == CHACHA20_POLY1305)
		return NULL;
	if (!*g)
		*g = aligned_alloc(_Alignof(struct gcm), sizeof(**g));
	if (!*g)
		return NULL;
	(*g)->long_key = e->suite->cipher == AES_GCM_256;
	if ((*g)->long_key)
		IMB_AES256_GCM_PRE(library, e->key, &(*g)->key);
	else
		IMB_AES128_GCM_PRE(library, e->key, &(*g)->key);
	return *g;
}

void gcm_begin(struct gcm *g, const struct label_of_record *l)
{
	if (g->long_key)
		IMB_AES256_GCM_INIT(library, &g->key, &g->record, l->nonce, l->aad, l->aad_len);
	else
		IMB_AES128_GCM_INIT(library, &g->key, &g->record, l->nonce, l->aad, l->aad_len);
}

void gcm_text(struct gcm *g, const uint8_t *plain, size_t len, uint8_t *out)
{
	if (g->long_key)
		IMB_AES256_GCM_ENC_UPDATE(library, &g->key, &g->record, out, plain, len);
	else
		IMB_AES128_GCM_ENC_UPDATE(library, &g->key, &g->record, out, plain, len);
}

void gcm_end(struct gcm *g, uint8_t tag[TAG])
{
	if (g->long_key)
		IMB_AES256_GCM_ENC_FINALIZE(library, &g->key, &g->record, tag, TAG);
	else
		IMB_AES128_GCM_ENC_FINALIZE(library, &g->key, &g->record, tag, TAG);
}

void gcm_free(struct gcm *g)
{
	if (g)
		OPENSSL_cleanse(g, sizeof(*g));
	free(g);
}

/* Which library seals here? NULL: libcrypto. */
const char *gcm_name(void)
{
	pthread_once(&loaded, load);
	return library ? "intel-ipsec-mb" : NULL;
}
