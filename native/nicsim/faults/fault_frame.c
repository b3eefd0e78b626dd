// SPDX-License-Identifier: GPL-2.0-only
/* Faults of whole packets and frames on their way out: lost, twice, in another order, altered. */
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <net/dsfield.h>
#include <net/ip.h>

#include "nicsim.h"

/* One in `knob` of the frames that meet the conditions; 1 is each. */
static bool nicsim_nth(struct nicsim_ktls *ctx, u32 *count, u32 knob)
{
	if (!nicsim_every(count, nicsim_gated(ctx->ns, &ctx->fault.at, knob)))
		return false;
	nicsim_fired(ctx->ns);
	return true;
}

/* Is this packet lost in the card, and counted as sent? */
bool nicsim_fault_tx_drops(struct nicsim_ktls *ctx)
{
	return nicsim_nth(ctx, &ctx->ns->fault.drops, READ_ONCE(ctx->ns->knobs.tx_drop));
}

/* Does this frame leave once more in plaintext, where no receiver takes it? */
bool nicsim_fault_tx_strays(struct nicsim_ktls *ctx)
{
	return nicsim_nth(ctx, &ctx->ns->fault.strays, READ_ONCE(ctx->ns->knobs.tx_stray));
}

/* Does this frame leave after the next one of its packet? */
bool nicsim_fault_tx_swaps(struct nicsim_ktls *ctx, bool more)
{
	return more && nicsim_nth(ctx, &ctx->ns->fault.swaps, READ_ONCE(ctx->ns->knobs.tx_swap));
}

/* The card makes a header of its own, and forgets the traffic class. */
void nicsim_fault_tx_headers(struct nicsim_ktls *ctx, u8 *ip)
{
	struct iphdr *ip4 = (struct iphdr *)ip;

	u8 class = ip4->version == 6 ? ipv6_get_dsfield((void *)ip) : ip4->tos;

	if (!class || !nicsim_bad(ctx, READ_ONCE(ctx->ns->knobs.tx_tos)))
		return;
	if (ip4->version == 6) {
		ipv6_change_dsfield((struct ipv6hdr *)ip, 0, 0);
		return;
	}
	ip4->tos = 0;
	ip_send_check(ip4);
}

/* A frame on its way out. Returns what leaves after it, or NULL. */
struct sk_buff *nicsim_fault_tx_frame(struct nicsim_ktls *ctx, struct sk_buff *frame, u32 trans)
{
	struct nicsim *ns = ctx->ns;
	struct tcphdr *th = (struct tcphdr *)(frame->data + trans);

	if (nicsim_nth(ctx, &ns->fault.csums, READ_ONCE(ns->knobs.tx_bad_csum)))
		th->check ^= (__force __sum16)1;
	if (nicsim_nth(ctx, &ns->fault.dups, READ_ONCE(ns->knobs.tx_dup)))
		return skb_copy(frame, GFP_KERNEL);
	return NULL;
}
