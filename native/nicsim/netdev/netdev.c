// SPDX-License-Identifier: GPL-2.0-only
/*
 * Two net devices per adapter. The host port is the NIC as the kernel sees it; the wire port
 * gives and takes frames exactly as they are on the cable.
 */
#include <linux/etherdevice.h>
#include <linux/if_vlan.h>

#include "nicsim.h"

#define NICSIM_MAX_MTU 9216

static netdev_tx_t nicsim_host_xmit(struct sk_buff *skb, struct net_device *dev)
{
	struct nicsim *ns = nicsim_of(dev);
	unsigned int len = skb->len;
	u32 segs = skb_is_gso(skb) ? skb_shinfo(skb)->gso_segs : 1;

	if (segs > 1) {
		nicsim_count(ns, CTR_TX_TSO_PACKETS, 1);
		nicsim_count(ns, CTR_TX_TSO_BYTES, len);
	}
	memset(nicsim_txd(skb), 0, sizeof(struct nicsim_txd));
	skb = nicsim_ktls_tx(ns, skb);
	if (skb)
		skb = nicsim_esp_tx(ns, skb);
	if (!skb) {
		nicsim_count(ns, CTR_TX_DROPPED, 1);
		return NETDEV_TX_OK;
	}
	nicsim_count(ns, CTR_TX_PACKETS, segs);
	nicsim_count(ns, CTR_TX_BYTES, len);
	skb_tx_timestamp(skb);
	skb_queue_tail(&ns->txq, skb);
	if (skb_queue_len_lockless(&ns->txq) >= READ_ONCE(ns->tx_ring)) {
		netif_stop_queue(dev);
		/* The silicon wakes the queue at half; it may have passed that point just now. */
		smp_mb();
		if (skb_queue_len_lockless(&ns->txq) <= READ_ONCE(ns->tx_ring) / 2)
			netif_wake_queue(dev);
	}
	wake_up(&ns->wait);
	return NETDEV_TX_OK;
}

static int nicsim_poll(struct napi_struct *napi, int budget)
{
	struct nicsim *ns = container_of(napi, struct nicsim, napi);
	struct sk_buff *skb;
	int done = 0;

	while (done < budget && (skb = skb_dequeue(&ns->done))) {
		nicsim_count(ns, CTR_RX_PACKETS, 1);
		nicsim_count(ns, CTR_RX_BYTES, skb->len);
		skb->dev = ns->host; /* asked by whoever looks into the headers */
		nicsim_esp_rx_skb(ns, skb);
		nicsim_ktls_rx_skb(ns, skb);
		nicsim_steer(ns, skb);
		skb->protocol = eth_type_trans(skb, ns->host);
		napi_gro_receive(napi, skb);
		done++;
	}
	/* The silicon schedules again for what comes after the last look into the queue. */
	if (done < budget && napi_complete_done(napi, done) && !skb_queue_empty_lockless(&ns->done))
		napi_schedule(napi);
	return done;
}

static int nicsim_host_open(struct net_device *dev)
{
	struct nicsim *ns = nicsim_of(dev);

	napi_enable(&ns->napi);
	netif_start_queue(dev);
	nicsim_fault_link_up(ns);
	return 0;
}

static int nicsim_host_stop(struct net_device *dev)
{
	struct nicsim *ns = nicsim_of(dev);

	nicsim_fault_event(ns, EVENT_LINK);
	netif_stop_queue(dev);
	napi_disable(&ns->napi);
	nicsim_hw_purge_tx(ns);
	nicsim_hw_purge_done(ns);
	return 0;
}

static u64 nicsim_read(struct nicsim *ns, enum nicsim_counter c)
{
	return atomic64_read(&ns->counters[c]);
}

static void nicsim_host_stats(struct net_device *dev, struct rtnl_link_stats64 *s)
{
	struct nicsim *ns = nicsim_of(dev);

	s->tx_packets = nicsim_read(ns, CTR_TX_PACKETS);
	s->tx_bytes = nicsim_read(ns, CTR_TX_BYTES);
	s->tx_dropped = nicsim_read(ns, CTR_TX_DROPPED);
	s->rx_packets = nicsim_read(ns, CTR_RX_PACKETS);
	s->rx_bytes = nicsim_read(ns, CTR_RX_BYTES);
	s->rx_dropped = nicsim_read(ns, CTR_RX_DROPPED);
}

static const struct net_device_ops nicsim_host_ops = {
	.ndo_open = nicsim_host_open,
	.ndo_stop = nicsim_host_stop,
	.ndo_start_xmit = nicsim_host_xmit,
	.ndo_get_stats64 = nicsim_host_stats,
	.ndo_fix_features = nicsim_fix_features,
	.ndo_set_features = nicsim_set_features,
	.ndo_change_mtu = nicsim_change_mtu,
	.ndo_set_mac_address = eth_mac_addr,
	.ndo_validate_addr = eth_validate_addr,
};

/* A frame from the cable. It may be a clone: it is only read from here on. */
static netdev_tx_t nicsim_wire_xmit(struct sk_buff *skb, struct net_device *dev)
{
	struct nicsim *ns = nicsim_of(dev);

	skb_tx_timestamp(skb);
	if (skb_queue_len_lockless(&ns->rxq) >= READ_ONCE(ns->rx_ring) ||
	    !netif_running(ns->host)) {
		nicsim_count(ns, CTR_RX_DROPPED, 1);
		dev_kfree_skb_any(skb);
		return NETDEV_TX_OK;
	}
	nicsim_count(ns, CTR_WIRE_IN_PACKETS, 1);
	nicsim_count(ns, CTR_WIRE_IN_BYTES, skb->len);
	skb_orphan(skb);
	skb_queue_tail(&ns->rxq, skb);
	wake_up(&ns->wait);
	return NETDEV_TX_OK;
}

/* The cable is in while the wire port is up; at unload the host port has gone before. */
static void nicsim_plug(struct net_device *wire, bool in)
{
	struct net_device *host = nicsim_of(wire)->host;

	if (host->reg_state != NETREG_REGISTERED)
		return;
	nicsim_fault_event(nicsim_of(wire), EVENT_CABLE);
	if (in)
		netif_carrier_on(host);
	else
		netif_carrier_off(host);
}

static int nicsim_wire_open(struct net_device *dev)
{
	netif_start_queue(dev);
	nicsim_plug(dev, true);
	return 0;
}

static int nicsim_wire_stop(struct net_device *dev)
{
	nicsim_plug(dev, false);
	netif_stop_queue(dev);
	return 0;
}

static void nicsim_wire_stats(struct net_device *dev, struct rtnl_link_stats64 *s)
{
	struct nicsim *ns = nicsim_of(dev);

	s->rx_packets = nicsim_read(ns, CTR_WIRE_OUT_PACKETS);
	s->rx_bytes = nicsim_read(ns, CTR_WIRE_OUT_BYTES);
	s->tx_packets = nicsim_read(ns, CTR_WIRE_IN_PACKETS);
	s->tx_bytes = nicsim_read(ns, CTR_WIRE_IN_BYTES);
}

static const struct net_device_ops nicsim_wire_ops = {
	.ndo_open = nicsim_wire_open,
	.ndo_stop = nicsim_wire_stop,
	.ndo_start_xmit = nicsim_wire_xmit,
	.ndo_get_stats64 = nicsim_wire_stats,
	.ndo_set_mac_address = eth_mac_addr,
	.ndo_validate_addr = eth_validate_addr,
};

/* Fixed, locally administered addresses keep captures comparable from run to run. */
static struct net_device *nicsim_alloc(struct nicsim *ns, const char *name, u8 port, u32 queues)
{
	u8 mac[ETH_ALEN] = { 0x02, 'n', 's', 'i', ns->id, port };
	struct net_device *dev = alloc_etherdev_mqs(sizeof(struct nicsim *), 1, queues);

	if (!dev)
		return NULL;
	*(struct nicsim **)netdev_priv(dev) = ns;
	snprintf(dev->name, sizeof(dev->name), "%s%u", name, ns->id);
	eth_hw_addr_set(dev, mac);
	dev->max_mtu = NICSIM_MAX_MTU;
	netif_set_real_num_rx_queues(dev, 1);
	return dev;
}

static void nicsim_setup_host(struct nicsim *ns)
{
	struct net_device *dev = ns->host;

	dev->netdev_ops = &nicsim_host_ops;
	dev->ethtool_ops = &nicsim_host_ethtool_ops;
	dev->hw_features = NETIF_F_SG | NETIF_F_HW_CSUM | NETIF_F_RXCSUM | NETIF_F_TSO |
			   NETIF_F_TSO_ECN | NETIF_F_TSO6 | NETIF_F_GRO;
	dev->features = dev->hw_features | ns->card.initial;
	dev->hw_features |= ns->card.offered;
	netif_napi_add(dev, &ns->napi, nicsim_poll);
	nicsim_ktls_attach(ns);
	nicsim_esp_attach(ns);
	netif_carrier_off(dev);
}

int nicsim_netdev_create(struct nicsim *ns)
{
	int err = -ENOMEM;

	ns->host = nicsim_alloc(ns, "nicsim", 0, NICSIM_RX_QUEUES);
	ns->wire = nicsim_alloc(ns, "nswire", 1, 1);
	if (!ns->host || !ns->wire)
		goto err_free;
	nicsim_setup_host(ns);
	ns->wire->netdev_ops = &nicsim_wire_ops;
	ns->wire->ethtool_ops = &nicsim_wire_ethtool_ops;
	err = register_netdev(ns->wire);
	if (err)
		goto err_free;
	err = register_netdev(ns->host);
	if (err)
		goto err_unregister;
	return 0;

err_unregister:
	unregister_netdev(ns->wire);
err_free:
	nicsim_netdev_free(ns);
	return err;
}

/* After this no packet and no tlsdev_ops call comes in; the silicon may still be busy. */
void nicsim_netdev_unregister(struct nicsim *ns)
{
	unregister_netdev(ns->host);
	unregister_netdev(ns->wire);
}

void nicsim_netdev_free(struct nicsim *ns)
{
	if (ns->host)
		free_netdev(ns->host);
	if (ns->wire)
		free_netdev(ns->wire);
}
