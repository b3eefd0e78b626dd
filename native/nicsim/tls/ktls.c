// SPDX-License-Identifier: GPL-2.0-only
/* tlsdev_ops: what the card takes and refuses, and the life of an offloaded direction. */
#include <crypto/skcipher.h>
#include <linux/delay.h>
#include <net/tls.h>

#include "compat.h"
#include "nicsim.h"

/* The driver's slot in the core's context holds one pointer: that fits every kernel. */
static struct nicsim_ktls **nicsim_ktls_slot(struct tls_context *tls, enum tls_offload_ctx_dir dir)
{
	BUILD_BUG_ON(sizeof(void *) > TLS_DRIVER_STATE_SIZE_RX);
	return __tls_driver_ctx(tls, dir);
}

static int nicsim_secret(const struct nicsim *ns, enum tls_offload_ctx_dir dir,
			 struct tls_crypto_info *info, struct nicsim_secret *s)
{
	u32 keys = dir == TLS_OFFLOAD_CTX_DIR_TX ? ns->card.tx_keys : ns->card.rx_keys;
	bool tls13 = info->version == TLS_1_3_VERSION;

	if (tls13 ? !(keys & NICSIM_TLS_13) : info->version != TLS_1_2_VERSION)
		return -EOPNOTSUPP;
	if (info->cipher_type == TLS_CIPHER_AES_GCM_128 && keys & NICSIM_KEY_128) {
		struct tls12_crypto_info_aes_gcm_128 *gcm = (void *)info;

		*s = (struct nicsim_secret){ gcm->key, gcm->salt, gcm->iv, gcm->rec_seq,
					     sizeof(gcm->key), tls13 };
		return 0;
	}
	if (info->cipher_type == TLS_CIPHER_AES_GCM_256 && keys & NICSIM_KEY_256) {
		struct tls12_crypto_info_aes_gcm_256 *gcm = (void *)info;

		*s = (struct nicsim_secret){ gcm->key, gcm->salt, gcm->iv, gcm->rec_seq,
					     sizeof(gcm->key), tls13 };
		return 0;
	}
	return -EOPNOTSUPP;
}

static void nicsim_ktls_free(struct nicsim_ktls *ctx)
{
	atomic_dec(&ctx->ns->contexts);
	nicsim_aes_exit(&ctx->aes);
	nicsim_fault_ctx_exit(ctx);
	nicsim_fault_bug_free(ctx);
}

static void nicsim_ktls_free_work(struct work_struct *work)
{
	struct nicsim_ktls *ctx = container_of(to_rcu_work(work), struct nicsim_ktls, free_work);
	struct nicsim *ns = ctx->ns;

	if (ctx->dir == TLS_OFFLOAD_CTX_DIR_RX)
		sock_put(ctx->rx.sk);
	if (ctx->fault.leaks) {
		spin_lock_bh(&ns->rx_lock);
		list_add(&ctx->leaked, &ns->leaked);
		spin_unlock_bh(&ns->rx_lock);
		return;
	}
	nicsim_ktls_free(ctx);
}

/* At unload: wait for the last contexts, and release what ctx_leak kept. */
void nicsim_ktls_cleanup(struct nicsim *ns)
{
	struct nicsim_ktls *ctx, *next;

	rcu_barrier();
	flush_workqueue(nicsim_wq);
	list_for_each_entry_safe(ctx, next, &ns->leaked, leaked)
		nicsim_ktls_free(ctx);
	WARN_ON(atomic_read(&ns->contexts));
}

static struct nicsim_ktls *nicsim_ktls_alloc(struct nicsim *ns, enum tls_offload_ctx_dir dir,
					     const struct nicsim_secret *s)
{
	struct nicsim_ktls *ctx = kzalloc(sizeof(*ctx), GFP_KERNEL);
	int err;

	if (!ctx)
		return ERR_PTR(-ENOMEM);
	kref_init(&ctx->ref);
	INIT_RCU_WORK(&ctx->free_work, nicsim_ktls_free_work);
	ctx->ns = ns;
	ctx->dir = dir;
	err = nicsim_aes_init(&ctx->aes, s->key, nicsim_fault_key_len(ns, s->key_len));
	if (err)
		goto err_free;
	err = gcm_key_init(&ctx->key, nicsim_aes_ctr, &ctx->aes);
	if (err)
		goto err_exit_aes;
	atomic_inc(&ns->contexts);
	return ctx;

err_exit_aes:
	nicsim_aes_exit(&ctx->aes);
err_free:
	kfree_sensitive(ctx);
	return ERR_PTR(err);
}

/* A firmware that answers late, as ch_ktls waits for: the kernel holds a lock meanwhile. */
static void nicsim_firmware_wait(u32 ms)
{
	if (ms)
		msleep(min(ms, 10000U));
}

static int nicsim_ktls_check(struct nicsim *ns, enum tls_offload_ctx_dir dir)
{
	netdev_features_t need = dir == TLS_OFFLOAD_CTX_DIR_TX ? NETIF_F_HW_TLS_TX :
								 NETIF_F_HW_TLS_RX;
	u32 limit = READ_ONCE(ns->knobs.ctx_limit);

	if (!(ns->card.offered & need))
		return -EOPNOTSUPP;
	if (limit && atomic_read(&ns->contexts) >= limit) {
		nicsim_count(ns, CTR_SIM_NO_SPACE, 1);
		return -ENOSPC;
	}
	nicsim_firmware_wait(READ_ONCE(ns->knobs.add_slow));
	return 0;
}

static int nicsim_ktls_add(struct net_device *dev, struct sock *sk, enum tls_offload_ctx_dir dir,
			   struct tls_crypto_info *info, u32 start_seq)
{
	struct nicsim *ns = nicsim_of(dev);
	struct nicsim_ktls *ctx;
	bool again = nicsim_rekeys(sk, dir);
	struct nicsim_secret s;
	int err;
	u64 sn;

	err = nicsim_ktls_check(ns, dir);
	if (!err)
		err = nicsim_secret(ns, dir, info, &s);
	if (!err && nicsim_fault_refuses(ns, sk, s.key_len,
					 dir == TLS_OFFLOAD_CTX_DIR_TX ? 1 : 2))
		err = -EOPNOTSUPP;
	if (!err && nicsim_fault_rekey_refused(ns, again))
		err = -EOPNOTSUPP;
	if (err)
		goto refused;
	sn = nicsim_fault_rekey(ns, dir, again, &s);
	ctx = nicsim_ktls_alloc(ns, dir, &s);
	if (IS_ERR(ctx)) {
		err = PTR_ERR(ctx);
		goto refused;
	}
	*nicsim_ktls_slot(tls_get_ctx(sk), dir) = ctx;
	if (dir == TLS_OFFLOAD_CTX_DIR_TX) {
		rec_init(&ctx->tx.rec, &ctx->key, s.salt, sn);
		if (s.tls13)
			rec_tls13(&ctx->tx.rec, s.iv);
		nicsim_fault_ctx_init(ctx, sk, start_seq, s.key_len);
		ctx->fault.early = again;
		ctx->tx.expected_seq = start_seq;
		nicsim_count(ns, CTR_TX_TLS_CTX, 1);
	} else {
		rxt_init(&ctx->rx.rxt, &ctx->key, s.salt, sn, start_seq);
		if (s.tls13)
			rec_tls13(&ctx->rx.rxt.rec, s.iv);
		nicsim_fault_ctx_init(ctx, sk, start_seq, s.key_len);
		nicsim_ktls_rx_add(ctx, sk);
		nicsim_count(ns, CTR_RX_TLS_CTX, 1);
	}
	nicsim_fault_bug_add(ctx);
	return 0;

refused:
	nicsim_count(ns, CTR_SIM_REFUSED, 1);
	return err;
}

static void nicsim_ktls_del(struct net_device *dev, struct tls_context *tls,
			    enum tls_offload_ctx_dir dir)
{
	struct nicsim *ns = nicsim_of(dev);
	struct nicsim_ktls **slot = nicsim_ktls_slot(tls, dir);
	struct nicsim_ktls *ctx = *slot;

	nicsim_firmware_wait(READ_ONCE(ns->knobs.del_slow));
	WRITE_ONCE(*slot, NULL);
	if (dir == TLS_OFFLOAD_CTX_DIR_RX)
		nicsim_ktls_rx_del(ctx);
	nicsim_fault_event(ns, EVENT_OTHER);
	nicsim_fault_bug_del(ctx);
	ctx->fault.leaks = nicsim_bad(ctx, READ_ONCE(ns->knobs.ctx_leak));
	if (!ctx->fault.leaks)
		nicsim_count(ns, dir == TLS_OFFLOAD_CTX_DIR_TX ? CTR_TX_TLS_DEL : CTR_RX_TLS_DEL,
			     1);
	/* Packets in the rings hold references of their own. */
	nicsim_ktls_put(ctx);
}

static int nicsim_ktls_resync(struct net_device *dev, struct sock *sk, u32 seq, u8 *rcd_sn,
			      enum tls_offload_ctx_dir dir)
{
	struct nicsim_ktls *ctx;

	if (dir != TLS_OFFLOAD_CTX_DIR_RX)
		return -EOPNOTSUPP;
	/* Called under rcu_read_lock(). NULL: closed in parallel. */
	ctx = READ_ONCE(*nicsim_ktls_slot(tls_get_ctx(sk), dir));
	if (ctx)
		nicsim_ktls_rx_answer(ctx, seq, nicsim_load64(rcd_sn));
	return 0;
}

static const struct tlsdev_ops nicsim_tlsdev_ops = {
	.tls_dev_add = nicsim_ktls_add,
	.tls_dev_del = nicsim_ktls_del,
	.tls_dev_resync = nicsim_ktls_resync,
};

/* Before register_netdevice(): its notifier refuses TLS features without operations. */
void nicsim_ktls_attach(struct nicsim *ns)
{
	if (ns->card.offered)
		ns->host->tlsdev_ops = &nicsim_tlsdev_ops;
}
