// SPDX-License-Identifier: GPL-2.0-only
/* AES-CTR by the kernel's crypto API, for the silicon's thread: it may sleep. */
#include <crypto/skcipher.h>
#include <linux/scatterlist.h>

#include "nicsim.h"

int nicsim_aes_init(struct nicsim_aes *aes, const u8 *key, unsigned int len)
{
	int err;

	aes->tfm = crypto_alloc_skcipher("ctr(aes)", 0, 0);
	if (IS_ERR(aes->tfm))
		return PTR_ERR(aes->tfm);
	err = -ENOMEM;
	aes->req = skcipher_request_alloc(aes->tfm, GFP_KERNEL);
	if (!aes->req)
		goto err_free_tfm;
	err = crypto_skcipher_setkey(aes->tfm, key, len);
	if (err)
		goto err_free_req;
	return 0;

err_free_req:
	skcipher_request_free(aes->req);
err_free_tfm:
	crypto_free_skcipher(aes->tfm);
	return err;
}

void nicsim_aes_exit(struct nicsim_aes *aes)
{
	skcipher_request_free(aes->req);
	crypto_free_skcipher(aes->tfm);
}

int nicsim_aes_ctr(void *ptr, const u8 iv[GCM_BLOCK], u8 *buf, size_t len)
{
	struct nicsim_aes *aes = ptr;
	u8 counter[GCM_BLOCK];
	struct scatterlist sg;
	DECLARE_CRYPTO_WAIT(wait);

	memcpy(counter, iv, sizeof(counter));
	sg_init_one(&sg, buf, len);
	skcipher_request_set_callback(aes->req,
				      CRYPTO_TFM_REQ_MAY_BACKLOG | CRYPTO_TFM_REQ_MAY_SLEEP,
				      crypto_req_done, &wait);
	skcipher_request_set_crypt(aes->req, &sg, &sg, len, counter);
	return crypto_wait_req(crypto_skcipher_encrypt(aes->req), &wait);
}
