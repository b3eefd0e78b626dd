// SPDX-License-Identifier: GPL-2.0-only
/* Module parameters, and the life of the two adapters. */
#include <linux/module.h>

#include "nicsim.h"

static char *personality[NICSIM_ADAPTERS] = { "plain", "plain" };
module_param_array(personality, charp, NULL, 0444);
MODULE_PARM_DESC(personality, "per adapter, the card that it emulates: a word of offload/suite/bench/vm/card.py");

static int adapter = -1;
module_param(adapter, int, 0444);
MODULE_PARM_DESC(adapter, "the only adapter that this module has (-1: both)");

static struct nicsim *nicsim_adapters[NICSIM_ADAPTERS];

static struct nicsim *nicsim_create(unsigned int id)
{
	struct nicsim *ns;
	int err;

	ns = kzalloc(sizeof(*ns), GFP_KERNEL);
	if (!ns)
		return ERR_PTR(-ENOMEM);
	ns->id = id;
	INIT_LIST_HEAD(&ns->leaked);
	INIT_LIST_HEAD(&ns->esp);
	ns->tx_ring = NICSIM_TX_RING;
	ns->rx_ring = NICSIM_RX_RING;
	nicsim_fault_init(ns);
	spin_lock_init(&ns->rx_lock);
	hash_init(ns->rx_table);
	err = nicsim_card_init(&ns->card, personality[id]);
	if (err)
		goto err_free;
	err = nicsim_hw_start(ns);
	if (err)
		goto err_card;
	err = nicsim_netdev_create(ns);
	if (err)
		goto err_stop;
	nicsim_debugfs_add(ns);
	return ns;

err_stop:
	nicsim_hw_stop(ns);
err_card:
	nicsim_card_exit(&ns->card);
err_free:
	kfree(ns);
	return ERR_PTR(err);
}

static void nicsim_destroy(struct nicsim *ns)
{
	nicsim_netdev_unregister(ns);
	nicsim_hw_stop(ns);
	nicsim_fault_exit(ns);
	nicsim_ktls_cleanup(ns);
	nicsim_netdev_free(ns);
	nicsim_fault_unload(ns);
	nicsim_card_exit(&ns->card);
	kfree(ns);
}

static void nicsim_destroy_all(void)
{
	unsigned int i;

	nicsim_debugfs_exit();
	for (i = 0; i < NICSIM_ADAPTERS; i++) {
		if (nicsim_adapters[i])
			nicsim_destroy(nicsim_adapters[i]);
	}
	destroy_workqueue(nicsim_wq);
}

static int __init nicsim_init(void)
{
	unsigned int i;

	nicsim_wq = alloc_workqueue("nicsim", WQ_UNBOUND, 0);
	if (!nicsim_wq)
		return -ENOMEM;
	nicsim_debugfs_init();
	for (i = 0; i < NICSIM_ADAPTERS; i++) {
		struct nicsim *ns;

		if (adapter >= 0 && adapter != i)
			continue;
		ns = nicsim_create(i);
		if (IS_ERR(ns)) {
			nicsim_destroy_all();
			return PTR_ERR(ns);
		}
		nicsim_adapters[i] = ns;
	}
	return 0;
}

static void __exit nicsim_exit(void)
{
	nicsim_destroy_all();
}

module_init(nicsim_init);
module_exit(nicsim_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Simulated NIC with TLS offload");
MODULE_VERSION(NICSIM_VERSION);
MODULE_SOFTDEP("pre: tls ctr aesni_intel");
