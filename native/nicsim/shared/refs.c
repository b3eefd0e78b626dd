// SPDX-License-Identifier: GPL-2.0-only
/* A packet's descriptor holds the context that it is for; who lets go of it last frees it. */
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/workqueue.h>

#include "nicsim.h"

/* Where contexts are freed. */
struct workqueue_struct *nicsim_wq;

static void nicsim_ktls_release(struct kref *ref)
{
	struct nicsim_ktls *ctx = container_of(ref, struct nicsim_ktls, ref);

	/* May be softirq; and tls_dev_resync(), under RCU, may still look at it. */
	queue_rcu_work(nicsim_wq, &ctx->free_work);
}

void nicsim_ktls_put(struct nicsim_ktls *ctx)
{
	kref_put(&ctx->ref, nicsim_ktls_release);
}

static void nicsim_esp_release(struct kref *ref)
{
	struct nicsim_esp *esp = container_of(ref, struct nicsim_esp, ref);

	nicsim_aes_exit(&esp->aes);
	kfree_sensitive(esp);
}

void nicsim_esp_put(struct nicsim_esp *esp)
{
	kref_put(&esp->ref, nicsim_esp_release);
}

void nicsim_txd_free(struct sk_buff *skb)
{
	struct nicsim_txd *txd = nicsim_txd(skb);
	u32 i;

	if (txd->replay) {
		for (i = 0; i < txd->replay->n_frags; i++)
			put_page(skb_frag_page(&txd->replay->frags[i]));
		kfree(txd->replay);
	}
	if (txd->ctx)
		nicsim_ktls_put(txd->ctx);
	if (txd->esp)
		nicsim_esp_put(txd->esp);
	memset(txd, 0, sizeof(*txd));
}
