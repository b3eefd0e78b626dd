// SPDX-License-Identifier: GPL-2.0-only
/* Rings and receive queues: a change closes what is open and opens it again, as drivers do. */
#include <linux/delay.h>
#include <linux/ethtool.h>

#include "nicsim.h"

#define NICSIM_LEAST_RING 32
/* Milliseconds that the silicon gets to send what it was given. */
#define NICSIM_DRAIN 1000

/* Under RTNL; nothing is sent or received from here to nicsim_reopen(). */
static void nicsim_close(struct nicsim *ns)
{
	int i;

	if (!netif_running(ns->host))
		return;
	netif_tx_disable(ns->host);
	for (i = 0; i < NICSIM_DRAIN && !skb_queue_empty_lockless(&ns->txq); i++)
		usleep_range(1000, 2000);
	napi_disable(&ns->napi);
	nicsim_hw_purge_tx(ns);
	nicsim_hw_purge_done(ns);
}

static void nicsim_reopen(struct nicsim *ns)
{
	nicsim_fault_event(ns, EVENT_RINGS);
	if (!netif_running(ns->host))
		return;
	napi_enable(&ns->napi);
	netif_wake_queue(ns->host);
	/* What came while the poll was off raised no interrupt. */
	nicsim_hw_interrupt(ns);
}

void nicsim_get_ringparam(struct net_device *dev, struct ethtool_ringparam *ring,
			  struct kernel_ethtool_ringparam *kernel, struct netlink_ext_ack *extack)
{
	struct nicsim *ns = nicsim_of(dev);

	ring->rx_max_pending = NICSIM_RX_RING;
	ring->tx_max_pending = NICSIM_TX_RING;
	ring->rx_pending = ns->rx_ring;
	ring->tx_pending = ns->tx_ring;
}

int nicsim_set_ringparam(struct net_device *dev, struct ethtool_ringparam *ring,
			 struct kernel_ethtool_ringparam *kernel, struct netlink_ext_ack *extack)
{
	struct nicsim *ns = nicsim_of(dev);

	if (ring->rx_pending < NICSIM_LEAST_RING || ring->tx_pending < NICSIM_LEAST_RING) {
		NL_SET_ERR_MSG(extack, "a ring has at least 32 entries");
		return -ERANGE;
	}
	nicsim_close(ns);
	WRITE_ONCE(ns->rx_ring, ring->rx_pending);
	WRITE_ONCE(ns->tx_ring, ring->tx_pending);
	nicsim_reopen(ns);
	return 0;
}

void nicsim_get_channels(struct net_device *dev, struct ethtool_channels *ch)
{
	ch->max_rx = NICSIM_RX_QUEUES;
	ch->max_tx = 1;
	ch->rx_count = dev->real_num_rx_queues;
	ch->tx_count = 1;
}

int nicsim_set_channels(struct net_device *dev, struct ethtool_channels *ch)
{
	struct nicsim *ns = nicsim_of(dev);
	int err;

	nicsim_close(ns);
	err = netif_set_real_num_rx_queues(dev, ch->rx_count);
	nicsim_reopen(ns);
	return err;
}

/* A connection's frames come by one queue, until their number changes. */
void nicsim_steer(struct nicsim *ns, struct sk_buff *skb)
{
	unsigned int queues = READ_ONCE(ns->host->real_num_rx_queues);

	if (queues > 1)
		skb_record_rx_queue(skb, reciprocal_scale(skb_get_hash(skb), queues));
}
