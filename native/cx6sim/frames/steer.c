/* SPDX-License-Identifier: Apache-2.0 */
/* Where an arriving frame goes: from the root through flow tables to TIRs, and from there to a receive queue. */
#include "cx6.h"

enum { ACTION_ALLOW = 1, ACTION_DROP = 2, ACTION_FORWARD = 4, ACTION_COUNT = 8 };
enum { HOPS_MAX = 32, ROOT_RX = 0 };
enum { OWN_UNICAST = 1, OWN_MULTICAST = 2 };
enum { HASH_SRC = 1, HASH_DST = 2, HASH_SPORT = 4, HASH_DPORT = 8 };

static void describe_l4(const struct frame *f, struct view v)
{
	const uint8_t *p = f->data + f->l4;

	if (f->protocol == 6) {
		set(v, F(fte_match_set_lyr_2_4, tcp_sport), load16(p));
		set(v, F(fte_match_set_lyr_2_4, tcp_dport), load16(p + 2));
		set(v, F(fte_match_set_lyr_2_4, tcp_flags), p[13]);
	} else if (f->protocol == 17) {
		set(v, F(fte_match_set_lyr_2_4, udp_sport), load16(p));
		set(v, F(fte_match_set_lyr_2_4, udp_dport), load16(p + 2));
	}
}

static void describe_ip(const struct frame *f, struct view v)
{
	const uint8_t *p = f->data + f->l3;
	uint32_t src = F(fte_match_set_lyr_2_4, src_ipv4_src_ipv6).bit / 8;
	uint32_t dst = F(fte_match_set_lyr_2_4, dst_ipv4_dst_ipv6).bit / 8;

	set(v, F(fte_match_set_lyr_2_4, ip_version), f->version);
	if (f->version == 4) {
		set(v, F(fte_match_set_lyr_2_4, ip_protocol), p[9]);
		set(v, F(fte_match_set_lyr_2_4, ttl_hoplimit), p[8]);
		set(v, F(fte_match_set_lyr_2_4, frag), f->fragment);
		copy_in(v, src + 12, p + 12, 4);
		copy_in(v, dst + 12, p + 16, 4);
	} else if (f->version == 6) {
		set(v, F(fte_match_set_lyr_2_4, ip_protocol), p[6]);
		copy_in(v, src, p + 8, 16);
		copy_in(v, dst, p + 24, 16);
	}
}

/* A frame as a match value: the outer headers; nothing of tunnels. */
static void describe(const struct frame *f, uint64_t value[static MATCH_WORDS])
{
	struct view v = { (uint8_t *)value, MATCH_WORDS * 8 };

	memset(value, 0, MATCH_WORDS * 8);
	set(v, F(fte_match_set_lyr_2_4, dmac_47_16), load32(f->data));
	set(v, F(fte_match_set_lyr_2_4, dmac_15_0), load16(f->data + 4));
	set(v, F(fte_match_set_lyr_2_4, smac_47_16), load32(f->data + 6));
	set(v, F(fte_match_set_lyr_2_4, smac_15_0), load16(f->data + 10));
	set(v, F(fte_match_set_lyr_2_4, ethertype), f->ethertype);
	set(v, F(fte_match_set_lyr_2_4, cvlan_tag), f->tagged);
	set(v, F(fte_match_set_lyr_2_4, first_vid), f->vlan & 0xfff);
	set(v, F(fte_match_set_lyr_2_4, first_cfi), f->vlan >> 12 & 1);
	set(v, F(fte_match_set_lyr_2_4, first_prio), f->vlan >> 13);
	describe_ip(f, v);
	describe_l4(f, v);
}

static const struct entry *match(struct card *c, const struct table *t, const uint64_t *value)
{
	for (uint32_t i = 0; i < t->count; i++) {
		const struct entry *e = &t->entry[i];
		const struct group *g = object_find(c, KIND_GROUP, e->group);
		uint32_t k = 0;

		while (g && k < g->words && !((value[g->word[k]] ^ e->value[g->word[k]]) & g->mask[g->word[k]]))
			k++;
		if (g && g->table == t->number && k == g->words)
			return e;
	}
	return NULL;
}

/* The Toeplitz hash over what the TIR selects; a key of 40 bytes serves 36 bytes of input. */
static uint32_t toeplitz(const uint8_t *key, const uint8_t *data, uint32_t len)
{
	uint64_t window = load64(key);
	uint32_t hash = 0, next = 8;

	for (uint32_t i = 0; i < len; i++, next++) {
		for (int bit = 7; bit >= 0; bit--) {
			if (data[i] >> bit & 1)
				hash ^= (uint32_t)(window >> 32);
			window <<= 1;
			if (next < 40)
				window |= key[next] >> bit & 1;
		}
	}
	return hash;
}

static uint32_t take(uint8_t *to, uint32_t at, const uint8_t *from, uint32_t len)
{
	memcpy(to + at, from, len);
	return at + len;
}

uint32_t rss_hash(const struct frame *f, const struct tir *t)
{
	uint32_t size = f->version == 4 ? 4 : 16, at = 0;
	const uint8_t *ip = f->data + f->l3 + (f->version == 4 ? 12 : 8);
	uint8_t data[36];

	if (!f->version)
		return 0;
	if (t->fields & HASH_SRC)
		at = take(data, at, ip, size);
	if (t->fields & HASH_DST)
		at = take(data, at, ip + size, size);
	if (t->fields & HASH_SPORT && f->l4)
		at = take(data, at, f->data + f->l4, 2);
	if (t->fields & HASH_DPORT && f->l4)
		at = take(data, at, f->data + f->l4 + 2, 2);
	return toeplitz(t->hash_key, data, at);
}

/* The field is called self_lb_block, and mlx5e_refresh_tirs() sets its bits to let own frames in. */
static bool is_blocked(const struct tir *t, const struct frame *f, bool own)
{
	return own && !(t->takes_own & (f->data[0] & 1 ? OWN_MULTICAST : OWN_UNICAST));
}

static void to_tir(struct card *c, uint32_t number, struct frame *f, uint32_t tag, bool own)
{
	struct tir *t = object_find(c, KIND_TIR, number);
	struct arrival a = { .frame = f, .tag = tag, .sums_right = f->l4 && frame_l4_right(f) };
	struct rqt *spread;
	uint32_t rq;

	if (!t || is_blocked(t, f, own))
		return;
	c->truth.rx_bad_checksum += f->l4 && !a.sums_right;
	rq = t->rq;
	spread = t->rqt ? object_find(c, KIND_RQT, t->rqt) : NULL;
	if (spread && spread->count) {
		a.hash = rss_hash(f, t);
		rq = spread->rq[a.hash % spread->count];
	}
	if (t->tls_en && a.sums_right && f->protocol == 6)
		a.mark = tls_rx(c, &t->tls, f);
	rx_deliver(c, rq, &a);
}

static void count(struct card *c, const struct entry *e, uint32_t len)
{
	struct counter *n = e->action & ACTION_COUNT ? object_find(c, KIND_COUNTER, e->counter) : NULL;

	if (n) {
		n->frames++;
		n->bytes += len;
	}
}

/* Every way of an entry is taken; the last one that leads to a table is where it goes on. 0: nowhere. */
static uint32_t follow(struct card *c, const struct entry *e, struct frame *f, uint32_t *tag, bool own)
{
	uint32_t next = 0, targets = e->action & ACTION_FORWARD ? e->targets : 0;

	if (e->tag)
		*tag = e->tag;
	count(c, e, f->len);
	if (e->action & ACTION_DROP)
		return 0;
	for (uint32_t i = 0; i < targets; i++) {
		if (e->target[i].type == TARGET_TABLE)
			next = e->target[i].id;
		else if (e->target[i].type == TARGET_TIR)
			to_tir(c, e->target[i].id, f, *tag, own);
	}
	return next;
}

/* `own`: the card's own frame, turned round. */
void steer(struct card *c, uint8_t *data, uint32_t len, bool own)
{
	uint64_t value[MATCH_WORDS];
	uint32_t table = c->root[ROOT_RX], tag = 0;
	struct frame f;

	frame_parse(&f, data, len);
	if (len < 14 || fault_hit(c, FAULT_RX_DROP))
		return;
	describe(&f, value);
	for (int hops = 0; table && hops < HOPS_MAX; hops++) {
		const struct table *t = object_find(c, KIND_TABLE, table);
		const struct entry *e = t ? match(c, t, value) : NULL;

		if (!e && !(t && t->miss_goes_on)) {
			c->truth.rx_no_table++;
			return;
		}
		table = e ? follow(c, e, &f, &tag, own) : t->miss;
	}
}
