// SPDX-License-Identifier: GPL-2.0-only
/* Bugs of a driver that work by luck: a debug kernel sees them. README.md tells their stories. */
#include <linux/slab.h>
#include <linux/spinlock.h>

#include "nicsim.h"

static DEFINE_SPINLOCK(nicsim_table_lock);
static DEFINE_SPINLOCK(nicsim_queue_lock);

static bool nicsim_has_bug(struct nicsim_ktls *ctx, enum nicsim_bug bug)
{
	return nicsim_bad(ctx, READ_ONCE(ctx->ns->knobs.driver_bug) == bug);
}

/* A context is there: its table entry is made under the lock of the table, its queue's inside. */
void nicsim_fault_bug_add(struct nicsim_ktls *ctx)
{
	u8 *entry = NULL;

	if (nicsim_has_bug(ctx, BUG_ORDER)) {
		spin_lock(&nicsim_table_lock);
		spin_lock(&nicsim_queue_lock);
		spin_unlock(&nicsim_queue_lock);
		spin_unlock(&nicsim_table_lock);
	}
	if (nicsim_has_bug(ctx, BUG_SLEEP)) {
		spin_lock(&nicsim_table_lock);
		entry = kzalloc(sizeof(*ctx), GFP_KERNEL);
		spin_unlock(&nicsim_table_lock);
		kfree(entry);
	}
	if (nicsim_has_bug(ctx, BUG_LOST)) {
		entry = kzalloc(sizeof(*ctx), GFP_KERNEL);
		OPTIMIZER_HIDE_VAR(entry);
	}
}

/* A context goes: the queue is emptied first, and its entry goes under the lock of the table. */
void nicsim_fault_bug_del(struct nicsim_ktls *ctx)
{
	if (nicsim_has_bug(ctx, BUG_ORDER)) {
		spin_lock(&nicsim_queue_lock);
		spin_lock(&nicsim_table_lock);
		spin_unlock(&nicsim_table_lock);
		spin_unlock(&nicsim_queue_lock);
	}
}

/* Free a context, and do not let go of it. */
void nicsim_fault_bug_free(struct nicsim_ktls *ctx)
{
	bool stale = nicsim_has_bug(ctx, BUG_STALE);
	bool twice = nicsim_has_bug(ctx, BUG_TWICE);

	kfree_sensitive(ctx);
	OPTIMIZER_HIDE_VAR(ctx);	/* the compiler would see it, too */
	if (stale)
		READ_ONCE(ctx->dir);
	if (twice)
		kfree(ctx);
}
