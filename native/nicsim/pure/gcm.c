// SPDX-License-Identifier: GPL-2.0-only
/*
 * AES-GCM (NIST SP 800-38D), byte by byte: GHASH with Shoup's 8-bit table, CTR by the
 * caller's AES. A TCP segment may end anywhere in a record, so all state is in struct gcm.
 */
#include "gcm.h"

/* The field polynomial 1 + x + x^2 + x^7 + x^128 in GCM's reflected bit order. */
#define GCM_POLY 0xe100000000000000ULL

/* Reduction of the byte that a shift by 8 pushes out: its multiple of GCM_POLY, top 16 bits. */
static u16 gcm_reduce(u32 byte)
{
	u64 r = 0;
	u32 i;

	for (i = 0; i < 8; i++) {
		r = (r >> 1) ^ (byte & 1 ? GCM_POLY : 0);
		byte >>= 1;
	}
	return r >> 48;
}

static u16 gcm_rem[256];

static void gcm_fill_rem(void)
{
	u32 i;

	/* Every caller writes the same values, so a race does no harm. */
	for (i = 0; i < 256; i++)
		gcm_rem[i] = gcm_reduce(i);
}

static void gcm_fill_table(struct gcm_key *key)
{
	u64 hi = nicsim_load64(key->h);
	u64 lo = nicsim_load64(key->h + 8);
	u32 i, j;

	memset(key->table, 0, sizeof(key->table));
	for (i = 0x80; i; i >>= 1) {
		u64 carry = lo & 1 ? GCM_POLY : 0;

		key->table[i][0] = hi;
		key->table[i][1] = lo;
		lo = lo >> 1 | hi << 63;
		hi = (hi >> 1) ^ carry;
	}
	for (i = 2; i < 256; i <<= 1) {
		for (j = 1; j < i; j++) {
			key->table[i + j][0] = key->table[i][0] ^ key->table[j][0];
			key->table[i + j][1] = key->table[i][1] ^ key->table[j][1];
		}
	}
}

int gcm_key_init(struct gcm_key *key, gcm_ctr_fn ctr, void *aes)
{
	static const u8 zero[GCM_BLOCK];
	int err;

	key->ctr = ctr;
	key->aes = aes;
	memset(key->h, 0, sizeof(key->h));
	/* CTR over zeros with a zero counter is E(K, 0), that is H. */
	err = ctr(aes, zero, key->h, sizeof(key->h));
	if (err)
		return err;
	gcm_fill_rem();
	gcm_fill_table(key);
	return 0;
}

static void gcm_mult(const struct gcm_key *key, u64 hash[2])
{
	u64 in[2] = { hash[1], hash[0] };
	u64 hi = 0, lo = 0;
	u32 i, rem;

	for (i = 0; i < GCM_BLOCK; i++) {
		const u64 *t = key->table[in[i >> 3] & 0xff];

		in[i >> 3] >>= 8;
		rem = lo & 0xff;
		lo = (lo >> 8 | hi << 56) ^ t[1];
		hi = (hi >> 8) ^ ((u64)gcm_rem[rem] << 48) ^ t[0];
	}
	hash[0] = hi;
	hash[1] = lo;
}

/* Hash @n bytes; @at is how many bytes of the current block have been hashed before. */
static void gcm_hash(const struct gcm_key *key, u64 hash[2], u32 at, const u8 *p, u32 n)
{
	while (n && at) {
		hash[at >> 3] ^= (u64)*p++ << (56 - 8 * (at & 7));
		n--;
		at = (at + 1) % GCM_BLOCK;
		if (!at)
			gcm_mult(key, hash);
	}
	for (; n >= GCM_BLOCK; n -= GCM_BLOCK, p += GCM_BLOCK) {
		hash[0] ^= nicsim_load64(p);
		hash[1] ^= nicsim_load64(p + 8);
		gcm_mult(key, hash);
	}
	for (; n; n--, at++)
		hash[at >> 3] ^= (u64)*p++ << (56 - 8 * (at & 7));
}

static int gcm_ctr(const struct gcm_key *key, struct gcm *g, u32 block, u8 *p, u32 n)
{
	u8 iv[GCM_BLOCK];

	memcpy(iv, g->nonce, GCM_NONCE);
	nicsim_store32(iv + GCM_NONCE, block);
	return key->ctr(key->aes, iv, p, n);
}

/* Key stream from payload offset g->len on. Block 1 is J0 and belongs to the tag. */
static int gcm_stream(const struct gcm_key *key, struct gcm *g, u8 *p, u32 n)
{
	u32 at = g->len % GCM_BLOCK;
	u32 block = 2 + g->len / GCM_BLOCK + (g->len < g->skew_from ? 0 : g->skew);
	u32 whole;
	int err;

	if (at) {
		for (; n && at < GCM_BLOCK; n--)
			*p++ ^= g->stream[at++];
		block++;
	}
	whole = n - n % GCM_BLOCK;
	if (whole) {
		err = gcm_ctr(key, g, block, p, whole);
		if (err)
			return err;
		p += whole;
		n -= whole;
		block += whole / GCM_BLOCK;
	}
	if (!n)
		return 0;
	memset(g->stream, 0, GCM_BLOCK);
	err = gcm_ctr(key, g, block, g->stream, GCM_BLOCK);
	if (err)
		return err;
	for (at = 0; at < n; at++)
		p[at] ^= g->stream[at];
	return 0;
}

void gcm_start(const struct gcm_key *key, struct gcm *g, const u8 nonce[GCM_NONCE],
	       const u8 *aad, u32 aad_len)
{
	memset(g, 0, sizeof(*g));
	memcpy(g->nonce, nonce, GCM_NONCE);
	g->aad_len = aad_len;
	gcm_hash(key, g->hash, 0, aad, aad_len);
	if (aad_len % GCM_BLOCK)
		gcm_mult(key, g->hash);
}

/* GCM_HASH_ONLY authenticates the bytes as they are: that is the leak fault. */
static int gcm_part(const struct gcm_key *key, struct gcm *g, enum gcm_op op, u8 *p, u32 n)
{
	int err = 0;

	if (op == GCM_ENCRYPT)
		err = gcm_stream(key, g, p, n);
	if (!err)
		gcm_hash(key, g->hash, g->len % GCM_BLOCK, p, n);
	if (op == GCM_DECRYPT)
		err = gcm_stream(key, g, p, n);
	g->len += n;
	return err;
}

/* @skew_from is a whole number of blocks; the fault may begin in the middle of a packet. */
int gcm_crypt(const struct gcm_key *key, struct gcm *g, enum gcm_op op, u8 *p, u32 n)
{
	u32 right = g->len < g->skew_from ? min_t(u32, n, g->skew_from - g->len) : 0;
	int err = gcm_part(key, g, op, p, right);

	return err ? err : gcm_part(key, g, op, p + right, n - right);
}

int gcm_tag(const struct gcm_key *key, struct gcm *g, u8 tag[GCM_BLOCK])
{
	u32 i;
	int err;

	if (g->len % GCM_BLOCK)
		gcm_mult(key, g->hash);
	g->hash[0] ^= (u64)g->aad_len * 8;
	g->hash[1] ^= (u64)g->len * 8;
	gcm_mult(key, g->hash);
	memset(g->stream, 0, GCM_BLOCK);
	err = gcm_ctr(key, g, 1, g->stream, GCM_BLOCK);
	nicsim_store64(tag, g->hash[0]);
	nicsim_store64(tag + 8, g->hash[1]);
	for (i = 0; i < GCM_BLOCK; i++)
		tag[i] ^= g->stream[i];
	return err;
}
