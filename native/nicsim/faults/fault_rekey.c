// SPDX-License-Identifier: GPL-2.0-only
/*
 * Faults of a KeyUpdate, on a kernel that gives a card keys while the connection lives, and of
 * the mark for what a card could not authenticate. README.md tells their stories.
 */
#include "nicsim.h"

/* Take the old key, or the next number, in place of what the kernel gives. Returns the number. */
u64 nicsim_fault_rekey(struct nicsim *ns, enum tls_offload_ctx_dir dir, bool again,
		       struct nicsim_secret *s)
{
	u32 bad = again ? READ_ONCE(ns->knobs.rekey) : 0;
	struct nicsim_old_key *old = &ns->fault.old[dir];
	u64 sn = nicsim_load64(s->rec_seq);

	if (bad == REKEY_OLD || bad == REKEY_OFF)
		nicsim_fired(ns);
	if (bad == REKEY_OLD) {
		s->key = old->key;
		s->salt = old->salt;
		s->iv = old->iv;
	} else if (READ_ONCE(ns->knobs.rekey) == REKEY_OLD) {
		memcpy(old->key, s->key, s->key_len);
		memcpy(old->salt, s->salt, sizeof(old->salt));
		memcpy(old->iv, s->iv, sizeof(old->iv));
	}
	return bad == REKEY_OFF ? sn + 1 : sn;
}

bool nicsim_fault_rekey_refused(struct nicsim *ns, bool again)
{
	if (!again || READ_ONCE(ns->knobs.rekey) != REKEY_REFUSED)
		return false;
	nicsim_fired(ns);
	return true;
}

/* Driver: a packet from before the start of this context is taken for one of its own. */
bool nicsim_fault_early(struct nicsim_ktls *ctx)
{
	return ctx->fault.early && READ_ONCE(ctx->ns->knobs.rekey) == REKEY_EARLY;
}

/* Silicon: the new key on top of software's ciphertext. */
void nicsim_fault_twice(struct nicsim_ktls *ctx, u8 *p, u32 n, u32 seq)
{
	u8 iv[GCM_BLOCK] = {};

	memcpy(iv, &seq, sizeof(seq));
	nicsim_aes_ctr(&ctx->aes, iv, p, n);
	nicsim_fired(ctx->ns);
}

/* Silicon: what is wrong with a packet that could not be authenticated. */
u32 nicsim_fault_failed(struct nicsim_ktls *ctx, const struct rxt_out *out)
{
	return out->bad_tags ? nicsim_bad(ctx, READ_ONCE(ctx->ns->knobs.rx_failed)) : 0;
}
