// SPDX-License-Identifier: GPL-2.0-only
/* Faults on demand: one file per knob, 0 is a good card. README.md says what each does. */
#include <linux/debugfs.h>
#include <linux/rtnetlink.h>
#include <linux/seq_file.h>

#include "nicsim.h"

static struct dentry *nicsim_root;

#define KNOB(field) { #field, offsetof(struct nicsim_knobs, field) }

#define WHEN(name, condition) { "when_" #name, offsetof(struct nicsim_knobs, when[condition]) }

struct nicsim_file {
	const char *name;
	size_t offset;
};

static const struct nicsim_file nicsim_knob_files[] = {
	KNOB(tx_leak),
	KNOB(tx_bad_tag),
	KNOB(tx_nonce_reuse),
	KNOB(tx_ooo_ks),
	KNOB(tx_ooo_leak),
	KNOB(tx_soft),
	KNOB(tx_fail),
	KNOB(tx_count),
	KNOB(tx_first_leak),
	KNOB(tx_toggle_leak),
	KNOB(tx_down_leak),
	KNOB(tx_route_leak),
	KNOB(tx_wrong_nonce),
	KNOB(tx_replay),
	KNOB(tx_ks),
	KNOB(tx_full_ks),
	KNOB(tx_ooo_other),
	KNOB(tx_rare),
	KNOB(tso_bad),
	KNOB(rx_noauth),
	KNOB(rx_noresync),
	KNOB(rx_bad_sn),
	KNOB(rx_late_resync),
	KNOB(rx_stay_sw),
	KNOB(rx_garble),
	KNOB(rx_count),
	KNOB(rx_short_tag),
	KNOB(rx_stale),
	KNOB(rx_resync_ks),
	KNOB(rx_ks),
	KNOB(rx_pass),
	KNOB(rx_failed),
	KNOB(rekey),
	KNOB(aes256_as_128),
	KNOB(ctx_limit_hard),
	KNOB(off_drops),
	KNOB(tx_bad_csum),
	KNOB(tx_dup),
	KNOB(tx_drop),
	KNOB(tx_stray),
	KNOB(tx_clear),
	KNOB(tx_tail),
	KNOB(tx_tos),
	KNOB(tx_swap),
	KNOB(tx_unseen),
	KNOB(burn),
	KNOB(oops_unload),
	KNOB(wire_flip),
	KNOB(wire_drop_header),
	KNOB(wire_drop_body),
	KNOB(wire_in_drop_header),
	KNOB(wire_in_drop_body),
	KNOB(refuse_add),
	KNOB(ctx_limit),
	KNOB(ctx_leak),
	KNOB(add_slow),
	KNOB(del_slow),
	KNOB(driver_bug),
	WHEN(key, WHEN_KEY),
	WHEN(ip, WHEN_IP),
	WHEN(queue, WHEN_QUEUE),
	WHEN(nth, WHEN_NTH),
	WHEN(contexts, WHEN_CONTEXTS),
	WHEN(turn, WHEN_TURN),
	WHEN(after, WHEN_AFTER),
	WHEN(tos, WHEN_TOS),
	WHEN(ip_header, WHEN_IP_HEADER),
	WHEN(tcp_header, WHEN_TCP_HEADER),
	WHEN(mtu, WHEN_MTU),
	WHEN(no_tso, WHEN_NO_TSO),
	WHEN(again, WHEN_AGAIN),
	WHEN(frame, WHEN_FRAME),
	WHEN(holds, WHEN_HOLDS),
	WHEN(header_cut, WHEN_HEADER_CUT),
	WHEN(tag_cut, WHEN_TAG_CUT),
	WHEN(record, WHEN_RECORD),
	WHEN(below, WHEN_BELOW),
	WHEN(number, WHEN_NUMBER),
	WHEN(offset, WHEN_OFFSET),
	WHEN(span, WHEN_SPAN),
	WHEN(batch, WHEN_BATCH),
	WHEN(lot, WHEN_LOT),
	WHEN(inside, WHEN_INSIDE),
	WHEN(mended, WHEN_MENDED),
	WHEN(every, WHEN_EVERY),
};

static int counters_show(struct seq_file *m, void *unused)
{
	nicsim_show_counters(m->private, m);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(counters);

/* What ethtool sees changes under rtnl, and the core must ask for features again. */
static const struct nicsim_file nicsim_asked_files[] = {
	KNOB(feature_stuck),
	KNOB(feature_refused),
	KNOB(feature_deaf),
	KNOB(feature_fixed),
	KNOB(stats_missing),
	KNOB(stats_many),
	KNOB(stats_blank),
	KNOB(fw_garbage),
	/* No fault: a feature that no profile knows, so no row of the catalogue turns it. */
	KNOB(esp),
};

static struct nicsim_asked {
	struct nicsim *ns;
	u32 *value;
} nicsim_asked[NICSIM_ADAPTERS][ARRAY_SIZE(nicsim_asked_files)];

static int nicsim_get_asked(void *data, u64 *value)
{
	*value = READ_ONCE(*((struct nicsim_asked *)data)->value);
	return 0;
}

static int nicsim_set_asked(void *data, u64 value)
{
	struct nicsim_asked *asked = data;

	rtnl_lock();
	WRITE_ONCE(*asked->value, value);
	netdev_update_features(asked->ns->host);
	rtnl_unlock();
	return 0;
}
DEFINE_DEBUGFS_ATTRIBUTE(nicsim_asked_fops, nicsim_get_asked, nicsim_set_asked, "%llu\n");

/* All knobs back to 0: a test's undo is one write. */
static int nicsim_reset(void *data, u64 value)
{
	struct nicsim *ns = data;

	rtnl_lock();
	memset(&ns->knobs, 0, sizeof(ns->knobs));
	nicsim_fault_reset(ns);
	netdev_update_features(ns->host);
	rtnl_unlock();
	return 0;
}
DEFINE_DEBUGFS_ATTRIBUTE(nicsim_reset_fops, NULL, nicsim_reset, "%llu\n");

static u32 *nicsim_knob(struct nicsim *ns, size_t offset)
{
	return (u32 *)((u8 *)&ns->knobs + offset);
}

void nicsim_debugfs_add(struct nicsim *ns)
{
	struct dentry *dir;
	char name[4];
	unsigned int i;

	snprintf(name, sizeof(name), "%u", ns->id);
	dir = debugfs_create_dir(name, nicsim_root);
	for (i = 0; i < ARRAY_SIZE(nicsim_knob_files); i++)
		debugfs_create_u32(nicsim_knob_files[i].name, 0600, dir,
				   nicsim_knob(ns, nicsim_knob_files[i].offset));
	for (i = 0; i < ARRAY_SIZE(nicsim_asked_files); i++) {
		struct nicsim_asked *asked = &nicsim_asked[ns->id][i];

		asked->ns = ns;
		asked->value = nicsim_knob(ns, nicsim_asked_files[i].offset);
		debugfs_create_file_unsafe(nicsim_asked_files[i].name, 0600, dir, asked,
					   &nicsim_asked_fops);
	}
	debugfs_create_file_unsafe("reset", 0200, dir, ns, &nicsim_reset_fops);
	debugfs_create_file("counters", 0400, dir, ns, &counters_fops);
}

void nicsim_debugfs_init(void)
{
	nicsim_root = debugfs_create_dir(KBUILD_MODNAME, NULL);
}

void nicsim_debugfs_exit(void)
{
	debugfs_remove(nicsim_root);
}
