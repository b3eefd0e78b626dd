// SPDX-License-Identifier: GPL-2.0-only
/* When does a received frame raise the interrupt? At once, or later: `ethtool -C rx-usecs`. */
#include <linux/ethtool.h>
#include <linux/hrtimer.h>
#include <linux/moduleparam.h>

#include "compat.h"
#include "nicsim.h"

/* A tenth of a second: longer, and TCP takes a batch for a loss. */
#define NICSIM_MAX_USECS 100000

static int nicsim_irq_cpu = -1;
module_param_named(irq_cpu, nicsim_irq_cpu, int, 0444);
MODULE_PARM_DESC(irq_cpu, "CPU that takes the receive interrupts (-1: that of hw_cpu)");

/* Raise the receive interrupt, from the silicon or from the timer that coalesces. */
void nicsim_hw_interrupt(struct nicsim *ns)
{
	if (nicsim_irq_cpu >= 0 && cpu_online(nicsim_irq_cpu)) {
		/* -EBUSY: the last one is still on its way and will see the new frame. */
		smp_call_function_single_async(nicsim_irq_cpu, &ns->irq);
		return;
	}
	if (in_hardirq()) {
		napi_schedule(&ns->napi);
		return;
	}
	local_bh_disable();
	napi_schedule(&ns->napi);
	local_bh_enable();
}

static enum hrtimer_restart nicsim_coalesce_end(struct hrtimer *timer)
{
	struct nicsim *ns = container_of(timer, struct nicsim, coalesce);

	clear_bit(0, &ns->coalescing);
	/* The poll comes after that: a frame whose sender found the bit set is in its queue. */
	smp_mb__after_atomic();
	nicsim_hw_interrupt(ns);
	return HRTIMER_NORESTART;
}

/* Frames lie in the completion queue: tell the host, now or soon. */
void nicsim_hw_kick(struct nicsim *ns)
{
	u32 usecs = READ_ONCE(ns->rx_usecs);
	u32 frames = READ_ONCE(ns->rx_frames);

	if (!usecs || (frames && skb_queue_len_lockless(&ns->done) >= frames)) {
		nicsim_hw_interrupt(ns);
		return;
	}
	if (!test_and_set_bit(0, &ns->coalescing))
		hrtimer_start(&ns->coalesce, ns_to_ktime((u64)usecs * NSEC_PER_USEC),
			      HRTIMER_MODE_REL);
}

void nicsim_coalesce_init(struct nicsim *ns)
{
	nicsim_hrtimer_setup(&ns->coalesce, nicsim_coalesce_end);
}

/* After the silicon has stopped. */
void nicsim_coalesce_stop(struct nicsim *ns)
{
	hrtimer_cancel(&ns->coalesce);
}

int nicsim_get_coalesce(struct net_device *dev, struct ethtool_coalesce *coal,
			struct kernel_ethtool_coalesce *kernel, struct netlink_ext_ack *extack)
{
	struct nicsim *ns = nicsim_of(dev);

	coal->rx_coalesce_usecs = ns->rx_usecs;
	coal->rx_max_coalesced_frames = ns->rx_frames;
	return 0;
}

int nicsim_set_coalesce(struct net_device *dev, struct ethtool_coalesce *coal,
			struct kernel_ethtool_coalesce *kernel, struct netlink_ext_ack *extack)
{
	struct nicsim *ns = nicsim_of(dev);

	if (coal->rx_coalesce_usecs > NICSIM_MAX_USECS ||
	    coal->rx_max_coalesced_frames > NICSIM_RX_RING) {
		NL_SET_ERR_MSG(extack, "rx-usecs up to 100000, rx-frames up to 4096");
		return -ERANGE;
	}
	nicsim_fault_event(ns, EVENT_COALESCE);
	WRITE_ONCE(ns->rx_usecs, coal->rx_coalesce_usecs);
	WRITE_ONCE(ns->rx_frames, coal->rx_max_coalesced_frames);
	return 0;
}
