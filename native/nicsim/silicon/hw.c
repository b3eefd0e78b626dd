// SPDX-License-Identifier: GPL-2.0-only
/* The silicon: a thread that takes frames of both directions, and its interrupt. */
#include <linux/kthread.h>
#include <linux/etherdevice.h>
#include <linux/moduleparam.h>

#include "nicsim.h"

/* Frames per turn, so that neither direction starves the other. */
#define NICSIM_RX_TURN 16
#define NICSIM_TX_TURN 4

static int nicsim_hw_cpu = -1;
module_param_named(hw_cpu, nicsim_hw_cpu, int, 0444);
MODULE_PARM_DESC(hw_cpu, "CPU that runs the simulated hardware (-1: any)");

static void nicsim_irq(void *arg)
{
	struct nicsim *ns = arg;

	napi_schedule(&ns->napi);
}

static void nicsim_hw_turn(struct nicsim *ns)
{
	struct sk_buff *skb;
	int i;

	for (i = 0; i < NICSIM_RX_TURN && (skb = skb_dequeue(&ns->rxq)); i++) {
		nicsim_hw_rx(ns, skb);
		consume_skb(skb);
	}
	if (!skb_queue_empty_lockless(&ns->done))
		nicsim_hw_kick(ns);
	for (i = 0; i < NICSIM_TX_TURN && (skb = skb_dequeue(&ns->txq)); i++) {
		nicsim_hw_tx(ns, skb);
		nicsim_txd_free(skb);
		consume_skb(skb);
	}
	if (netif_queue_stopped(ns->host) && netif_running(ns->host) &&
	    skb_queue_len_lockless(&ns->txq) <= READ_ONCE(ns->tx_ring) / 2)
		netif_wake_queue(ns->host);
}

static bool nicsim_hw_busy(struct nicsim *ns)
{
	return !skb_queue_empty_lockless(&ns->txq) || !skb_queue_empty_lockless(&ns->rxq);
}

static int nicsim_hw_thread(void *arg)
{
	struct nicsim *ns = arg;

	for (;;) {
		wait_event_interruptible(ns->wait, nicsim_hw_busy(ns) || kthread_should_stop());
		if (kthread_should_stop())
			break;
		nicsim_hw_turn(ns);
		cond_resched();
	}
	return 0;
}

/* A descriptor holds references: never drop one by skb_queue_purge(). */
void nicsim_hw_purge_tx(struct nicsim *ns)
{
	struct sk_buff *skb;

	while ((skb = skb_dequeue(&ns->txq))) {
		nicsim_txd_free(skb);
		dev_kfree_skb_any(skb);
	}
}

void nicsim_hw_purge_done(struct nicsim *ns)
{
	struct sk_buff *skb;

	while ((skb = skb_dequeue(&ns->done))) {
		nicsim_rxd_free(skb);
		dev_kfree_skb_any(skb);
	}
}

int nicsim_hw_start(struct nicsim *ns)
{
	skb_queue_head_init(&ns->txq);
	skb_queue_head_init(&ns->rxq);
	skb_queue_head_init(&ns->done);
	init_waitqueue_head(&ns->wait);
	INIT_CSD(&ns->irq, nicsim_irq, ns);
	nicsim_coalesce_init(ns);
	ns->scratch = kmalloc(PAGE_SIZE, GFP_KERNEL);
	if (!ns->scratch)
		return -ENOMEM;
	ns->task = kthread_create(nicsim_hw_thread, ns, "nicsim-hw%u", ns->id);
	if (IS_ERR(ns->task)) {
		kfree(ns->scratch);
		return PTR_ERR(ns->task);
	}
	if (nicsim_hw_cpu >= 0 && cpu_online(nicsim_hw_cpu))
		kthread_bind(ns->task, nicsim_hw_cpu);
	/* It sleeps until the first frame, and frames come after the net devices do. */
	wake_up_process(ns->task);
	return 0;
}

static void nicsim_nop(void *arg)
{
}

void nicsim_hw_stop(struct nicsim *ns)
{
	kthread_stop(ns->task);
	nicsim_coalesce_stop(ns);
	/* Calls to a CPU are served in order: after this one no interrupt is under way. */
	on_each_cpu(nicsim_nop, NULL, 1);
	nicsim_hw_purge_tx(ns);
	nicsim_hw_purge_done(ns);
	skb_queue_purge(&ns->rxq);
	kfree_sensitive(ns->scratch);
}
