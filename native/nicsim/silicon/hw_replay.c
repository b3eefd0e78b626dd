// SPDX-License-Identifier: GPL-2.0-only
/* The silicon, transmit: brings the engine to the place of a packet that came out of order. */
#include <linux/skbuff.h>

#include "nicsim.h"

static bool nicsim_replay_frag(struct nicsim *ns, struct rec *rec, const skb_frag_t *frag)
{
	/* Nicsim is built for 64 bit only: every page has an address. */
	const u8 *from = skb_frag_address(frag);
	u32 left = skb_frag_size(frag);

	while (left) {
		struct rec_events ev = {};
		u32 n = min_t(u32, left, PAGE_SIZE);

		memcpy(ns->scratch, from, n);
		if (rec_feed(rec, REC_ENCRYPT, ns->scratch, n, &ev) != n || ev.error)
			return false;
		from += n;
		left -= n;
	}
	nicsim_count(ns, CTR_TX_TLS_DUMP_PACKETS, 1);
	nicsim_count(ns, CTR_TX_TLS_DUMP_BYTES, skb_frag_size(frag));
	return true;
}

/* Bring the engine to the packet's place in its record; its output is dropped. */
bool nicsim_hw_replay(struct nicsim *ns, struct nicsim_ktls *ctx,
		      const struct nicsim_replay *replay, u32 seq)
{
	struct rec *rec = &ctx->tx.rec;
	u32 i;

	rec_reset(rec, replay->sn);
	nicsim_fault_tx_replay(ctx, seq);
	for (i = 0; i < replay->n_frags; i++) {
		if (!nicsim_replay_frag(ns, rec, &replay->frags[i]))
			return false;
	}
	WRITE_ONCE(ctx->tx.stalled, false);
	return true;
}
