// SPDX-License-Identifier: GPL-2.0-only
/* What ethtool sees: driver, speed, statistics under the personality's names. */
#include <linux/ethtool.h>

#include "nicsim.h"

static void nicsim_get_drvinfo(struct net_device *dev, struct ethtool_drvinfo *info)
{
	struct nicsim *ns = nicsim_of(dev);

	strscpy(info->driver, "nicsim", sizeof(info->driver));
	strscpy(info->version, NICSIM_VERSION, sizeof(info->version));
	snprintf(info->fw_version, sizeof(info->fw_version), "sim/%s", ns->card.name);
	nicsim_fault_firmware(ns, info->fw_version, sizeof(info->fw_version));
	snprintf(info->bus_info, sizeof(info->bus_info), "sim:%u", ns->id);
}

static int nicsim_get_link_ksettings(struct net_device *dev, struct ethtool_link_ksettings *ks)
{
	/* A bond in 802.3ad mode wants to know. */
	ks->base.speed = SPEED_10000;
	ks->base.duplex = DUPLEX_FULL;
	ks->base.port = PORT_OTHER;
	ks->base.autoneg = AUTONEG_DISABLE;
	return 0;
}

static int nicsim_get_sset_count(struct net_device *dev, int sset)
{
	return sset == ETH_SS_STATS ? nicsim_fault_n_stats(nicsim_of(dev)) : -EOPNOTSUPP;
}

static void nicsim_get_strings(struct net_device *dev, u32 sset, u8 *data)
{
	struct nicsim *ns = nicsim_of(dev);
	const struct nicsim_stat *esp;
	unsigned int i, n;

	if (sset != ETH_SS_STATS)
		return;
	for (i = 0; i < ns->card.n_stats; i++) {
		if (nicsim_fault_hides(ns, &ns->card.stats[i]))
			continue;
		nicsim_fault_name(ns, data, ns->card.stats[i].name);
		data += ETH_GSTRING_LEN;
	}
	esp = nicsim_esp_stats(ns, &n);
	for (i = 0; i < n; i++, data += ETH_GSTRING_LEN)
		nicsim_fault_name(ns, data, esp[i].name);
	nicsim_fault_more_names(ns, data);
}

static void nicsim_get_stats(struct net_device *dev, struct ethtool_stats *stats, u64 *data)
{
	struct nicsim *ns = nicsim_of(dev);
	const struct nicsim_stat *esp;
	unsigned int i, n;

	/* The core gives zeroed memory: what comes after stays 0. */
	for (i = 0; i < ns->card.n_stats; i++) {
		if (!nicsim_fault_hides(ns, &ns->card.stats[i]))
			*data++ = atomic64_read(&ns->counters[ns->card.stats[i].counter]);
	}
	esp = nicsim_esp_stats(ns, &n);
	for (i = 0; i < n; i++)
		*data++ = atomic64_read(&ns->counters[esp[i].counter]);
}

const struct ethtool_ops nicsim_host_ethtool_ops = {
	.supported_coalesce_params = ETHTOOL_COALESCE_RX_USECS | ETHTOOL_COALESCE_RX_MAX_FRAMES,
	.get_coalesce = nicsim_get_coalesce,
	.set_coalesce = nicsim_set_coalesce,
	.get_ringparam = nicsim_get_ringparam,
	.set_ringparam = nicsim_set_ringparam,
	.get_channels = nicsim_get_channels,
	.set_channels = nicsim_set_channels,
	.get_drvinfo = nicsim_get_drvinfo,
	.get_link = ethtool_op_get_link,
	.get_link_ksettings = nicsim_get_link_ksettings,
	.get_sset_count = nicsim_get_sset_count,
	.get_strings = nicsim_get_strings,
	.get_ethtool_stats = nicsim_get_stats,
	.get_ts_info = ethtool_op_get_ts_info,
};

static void nicsim_wire_drvinfo(struct net_device *dev, struct ethtool_drvinfo *info)
{
	strscpy(info->driver, "nicsim-wire", sizeof(info->driver));
	strscpy(info->version, NICSIM_VERSION, sizeof(info->version));
	snprintf(info->bus_info, sizeof(info->bus_info), "sim:%u", nicsim_of(dev)->id);
}

const struct ethtool_ops nicsim_wire_ethtool_ops = {
	.get_drvinfo = nicsim_wire_drvinfo,
	.get_link = ethtool_op_get_link,
	.get_link_ksettings = nicsim_get_link_ksettings,
};
