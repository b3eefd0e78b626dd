// SPDX-License-Identifier: GPL-2.0-only
/* Faults of what ethtool sees and switches, and the life of an adapter's faults. */
#include <linux/ethtool.h>
#include <linux/rtnetlink.h>

#include "nicsim.h"

/* Features that cannot be switched off, or on. */
netdev_features_t nicsim_fix_features(struct net_device *dev, netdev_features_t features)
{
	struct nicsim *ns = nicsim_of(dev);

	if (READ_ONCE(ns->knobs.feature_stuck))
		features |= dev->features & NICSIM_TLS_FEATURES;
	if (READ_ONCE(ns->knobs.feature_refused))
		features &= ~(NICSIM_TLS_FEATURES & ~dev->features);
	return nicsim_esp_features(ns, features);
}

/* What ethtool has switched goes back as soon as ethtool has reported success. */
static void nicsim_relapse(struct work_struct *work)
{
	struct nicsim *ns = container_of(work, struct nicsim, fault.relapse);
	struct net_device *dev = ns->host;

	rtnl_lock();
	ns->fault.relapsing = true;
	dev->wanted_features &= ~NICSIM_TLS_FEATURES;
	dev->wanted_features |= ns->fault.before;
	netdev_update_features(dev);
	ns->fault.relapsing = false;
	rtnl_unlock();
}

int nicsim_change_mtu(struct net_device *dev, int mtu)
{
	nicsim_fault_event(nicsim_of(dev), EVENT_MTU);
	WRITE_ONCE(dev->mtu, mtu);
	return 0;
}

int nicsim_set_features(struct net_device *dev, netdev_features_t features)
{
	struct nicsim *ns = nicsim_of(dev);

	if (!((dev->features ^ features) & NICSIM_TLS_FEATURES) || ns->fault.relapsing)
		return 0;
	nicsim_fault_event(ns, EVENT_TOGGLE);
	if (ns->knobs.feature_fixed) {
		if (!ns->fault.switches++)
			ns->fault.found = dev->features & NICSIM_TLS_FEATURES;
		if (ns->fault.switches >= ns->knobs.feature_fixed)
			dev->hw_features &= ~NICSIM_TLS_FEATURES;
	}
	if (ns->knobs.feature_deaf) {
		ns->fault.before = dev->features & NICSIM_TLS_FEATURES;
		queue_work(nicsim_wq, &ns->fault.relapse);
	}
	if (ns->card.off_drops_rules && (dev->features & ~features & NETIF_F_HW_TLS_RX))
		nicsim_ktls_rx_drop_rules(ns);
	return 0;
}

/* Is this one of the lines that are missing? */
bool nicsim_fault_hides(const struct nicsim *ns, const struct nicsim_stat *stat)
{
	static const enum nicsim_counter hidden[] = {
		CTR_TX_TLS_BYTES, CTR_RX_TLS_BYTES, CTR_TX_TLS_DROP_NO_SYNC,
	};
	u32 missing = ns->knobs.stats_missing;

	return missing && missing <= ARRAY_SIZE(hidden) && stat->counter == hidden[missing - 1];
}

unsigned int nicsim_fault_n_stats(const struct nicsim *ns)
{
	unsigned int i, n = ns->knobs.stats_many;

	for (i = 0; i < ns->card.n_stats; i++)
		n += !nicsim_fault_hides(ns, &ns->card.stats[i]);
	nicsim_esp_stats(ns, &i);
	return n + i;
}

void nicsim_fault_name(const struct nicsim *ns, u8 *to, const char *name)
{
	snprintf(to, ETH_GSTRING_LEN, "%-*s",
		 ns->knobs.stats_blank ? ETH_GSTRING_LEN - 1 : 0, name);
}

void nicsim_fault_more_names(const struct nicsim *ns, u8 *to)
{
	u32 i;

	for (i = 0; i < ns->knobs.stats_many; i++, to += ETH_GSTRING_LEN)
		snprintf(to, ETH_GSTRING_LEN, "rx%u_cache_waive", i);
}

/* After the version no character of ASCII, and no end: what is behind the field is read along. */
void nicsim_fault_firmware(const struct nicsim *ns, char *to, size_t size)
{
	size_t i;

	for (i = strnlen(to, size); ns->knobs.fw_garbage && i < size; i++)
		to[i] = 0x80 | i * 37;
}

void nicsim_fault_init(struct nicsim *ns)
{
	INIT_WORK(&ns->fault.relapse, nicsim_relapse);
}

/* All knobs are 0 again, under rtnl. Who met a fixed feature could not put it back. */
void nicsim_fault_reset(struct nicsim *ns)
{
	if (ns->card.offered & ~ns->host->hw_features) {
		ns->host->wanted_features &= ~NICSIM_TLS_FEATURES;
		ns->host->wanted_features |= ns->fault.found;
	}
	kfree_skb(xchg(&ns->fault.last, NULL));
	ns->fault.rare = 0;
	ns->fault.csums = 0;
	ns->fault.dups = 0;
	ns->fault.strays = 0;
	ns->fault.drops = 0;
	ns->fault.swaps = 0;
	atomic64_set(&ns->fault.fired, 0);
	atomic_set(&ns->fault.met, 0);
	ns->fault.switches = 0;
	ns->host->hw_features |= ns->card.offered;
}

/* The net devices are no longer registered, the silicon has stopped. */
void nicsim_fault_exit(struct nicsim *ns)
{
	cancel_work_sync(&ns->fault.relapse);
	kfree_skb(xchg(&ns->fault.last, NULL));
}

/* The last words of a driver that was never unloaded in a test. */
void nicsim_fault_unload(struct nicsim *ns)
{
	WARN_ON(READ_ONCE(ns->knobs.oops_unload) == 1);
	if (READ_ONCE(ns->knobs.oops_unload) == 2)
		WRITE_ONCE(ns->fault.none->mtu, 0);
}
