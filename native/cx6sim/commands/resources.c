/* SPDX-License-Identifier: Apache-2.0 */
/* Commands for what queues stand on: UAR, PD, memory keys, TIS, TIR, RQT, counters of queues, and encryption keys. */
#include <stdlib.h>

#include "cx6.h"

#define TRANSLATIONS_MAX (1u << 20)
#define OBJECT_DEK 0xc
enum { DISP_DIRECT, DISP_INDIRECT };

/* Most commands answer with the number of what they made in the third word. */
static enum status made(const struct command *cmd, const void *object, uint32_t number)
{
	if (!object)
		return ST_LIMIT;
	store32(cmd->out.at + 8, number);
	return ST_OK;
}

static enum kind plain_kind(uint16_t op)
{
	return op <= 0x801 ? KIND_PD : op <= 0x803 ? KIND_UAR : KIND_TD;
}

static enum status alloc_plain(struct card *c, const struct command *cmd)
{
	uint32_t number = 0;
	void *object = object_make(c, plain_kind(cmd->op), &number);

	return made(cmd, object, number);
}

static enum status free_plain(struct card *c, const struct command *cmd)
{
	return object_drop(c, plain_kind(cmd->op), load32(cmd->in.at + 8) & 0xffffff) ? ST_OK : ST_BAD_RESOURCE;
}

/* A key that UMR may change has its own pages; all others say where the guest's memory is as it is. */
static enum status make_mkey(struct card *c, const struct command *cmd)
{
	struct view x = view_at(cmd->in, F(create_mkey_in, memory_key_mkey_entry));
	struct view list = view_at(cmd->in, A(create_mkey_in, klm_pas_mtt));
	uint32_t number, count = get(x, F(mkc, umr_en)) ? get(x, F(mkc, translations_octword_size)) : 0;
	struct mkey *key;

	if (count > TRANSLATIONS_MAX / 2)
		return ST_BAD_PARAM;
	key = object_make(c, KIND_MKEY, &number);
	if (!key)
		return ST_LIMIT;
	key->shift = get(x, F(mkc, log_page_size));
	key->page = count && key->shift >= 12 ? calloc(2 * (size_t)count, sizeof(*key->page)) : NULL;
	key->count = key->page ? 2 * count : 0;
	for (uint32_t i = 0; i < key->count && i < list.len / 8; i++)
		key->page[i] = load64(list.at + 8 * i);
	set(cmd->out, F(create_mkey_out, mkey_index), number);
	return ST_OK;
}

static enum status free_mkey(struct card *c, const struct command *cmd)
{
	return object_drop(c, KIND_MKEY, load32(cmd->in.at + 8) & 0xffffff) ? ST_OK : ST_BAD_RESOURCE;
}

static enum status make_tis(struct card *c, const struct command *cmd)
{
	uint32_t number = 0;
	struct tis *tis = fault_hit(c, FAULT_NO_STREAM) ? NULL : object_make(c, KIND_TIS, &number);

	return made(cmd, tis, number);
}

static enum status change_tis(struct card *c, const struct command *cmd)
{
	return object_find(c, KIND_TIS, load32(cmd->in.at + 8) & 0xffffff) ? ST_OK : ST_BAD_RESOURCE;
}

static void take_hash(struct tir *tir, struct view x)
{
	struct view outer = view_at(x, F(tirc, rx_hash_field_selector_outer));
	struct view key = view_at(x, F(tirc, rx_hash_toeplitz_key));

	tir->fields = get(outer, F(rx_hash_field_select, selected_fields));
	tir->symmetric = get(x, F(tirc, rx_hash_symmetric));
	if (view_has(key, 0, sizeof(tir->hash_key)))
		memcpy(tir->hash_key, key.at, sizeof(tir->hash_key));
}

static enum status make_tir(struct card *c, const struct command *cmd)
{
	struct view x = view_at(cmd->in, F(create_tir_in, ctx));
	uint32_t number = 0;
	struct tir *tir = object_make(c, KIND_TIR, &number);

	if (tir) {
		tir->rq = get(x, F(tirc, inline_rqn));
		tir->rqt = get(x, F(tirc, disp_type)) == DISP_INDIRECT ? get(x, F(tirc, indirect_table)) : 0;
		tir->tls_en = get(x, F(tirc, tls_en));
		tir->takes_own = get(x, F(tirc, self_lb_block));
		take_hash(tir, x);
	}
	return made(cmd, tir, number);
}

static enum status change_tir(struct card *c, const struct command *cmd)
{
	struct tir *tir = object_find(c, KIND_TIR, get(cmd->in, F(modify_tir_in, tirn)));
	struct view bits = view_at(cmd->in, F(modify_tir_in, bitmask)), x = view_at(cmd->in, F(modify_tir_in, ctx));

	if (!tir)
		return ST_BAD_RESOURCE;
	if (get(bits, F(modify_tir_bitmask, self_lb_en)))
		tir->takes_own = get(x, F(tirc, self_lb_block));
	if (get(bits, F(modify_tir_bitmask, hash)))
		take_hash(tir, x);
	return ST_OK;
}

static void take_rqs(struct rqt *rqt, struct view x)
{
	struct view list = view_at(x, A(rqtc, rq_num));
	uint32_t count = get(x, F(rqtc, rqt_actual_size));

	rqt->count = 0;
	while (rqt->count < count && rqt->count < 256 && rqt->count < list.len / 4) {
		rqt->rq[rqt->count] = load32(list.at + 4 * rqt->count) & 0xffffff;
		rqt->count++;
	}
}

static enum status make_rqt(struct card *c, const struct command *cmd)
{
	uint32_t number = 0;
	struct rqt *rqt = object_make(c, KIND_RQT, &number);

	if (rqt)
		take_rqs(rqt, view_at(cmd->in, F(create_rqt_in, rqt_context)));
	return made(cmd, rqt, number);
}

static enum status change_rqt(struct card *c, const struct command *cmd)
{
	struct rqt *rqt = object_find(c, KIND_RQT, get(cmd->in, F(modify_rqt_in, rqtn)));

	if (!rqt)
		return ST_BAD_RESOURCE;
	take_rqs(rqt, view_at(cmd->in, F(modify_rqt_in, ctx)));
	return ST_OK;
}

static enum status drop_transport(struct card *c, const struct command *cmd)
{
	enum kind kind = cmd->op == 0x902 ? KIND_TIR : cmd->op == 0x914 ? KIND_TIS : KIND_RQT;

	return object_drop(c, kind, load32(cmd->in.at + 8) & 0xffffff) ? ST_OK : ST_BAD_RESOURCE;
}

static enum status make_qcounter(struct card *c, const struct command *cmd)
{
	uint32_t number;

	if (!object_make(c, KIND_QCOUNTER, &number))
		return ST_LIMIT;
	set(cmd->out, F(alloc_q_counter_out, counter_set_id), number);
	return ST_OK;
}

static enum status drop_qcounter(struct card *c, const struct command *cmd)
{
	uint32_t number = get(cmd->in, F(dealloc_q_counter_in, counter_set_id));

	return object_drop(c, KIND_QCOUNTER, number) ? ST_OK : ST_BAD_RESOURCE;
}

static enum status ask_qcounter(struct card *c, const struct command *cmd)
{
	set(cmd->out, F(query_q_counter_out, out_of_buffer), (uint32_t)c->truth.rx_no_buffer);
	return ST_OK;
}

/* A key of 128 bits lies in the second half of its field (mlx5_create_encryption_key in the driver's lib/crypto.c). */
static enum status make_dek(struct card *c, const struct command *cmd)
{
	struct view x = view_from(cmd->in, 16);
	struct view key = view_at(x, F(encryption_key_obj, key));
	uint32_t number = 0, long_key = get(x, F(encryption_key_obj, key_size));
	struct dek *dek;

	if (!view_has(key, 0, 32) || long_key > 1)
		return ST_BAD_PARAM;
	dek = fault_hit(c, FAULT_NO_KEY) ? NULL : object_make(c, KIND_DEK, &number);
	if (dek) {
		dek->size = long_key ? 32 : 16;
		memcpy(dek->key, key.at + (long_key ? 0 : 16), dek->size);
		dek->key[0] ^= fault_hit(c, FAULT_KEY);
	}
	return made(cmd, dek, number);
}

static enum status make_general(struct card *c, const struct command *cmd)
{
	if (get(cmd->in, F(general_obj_in_cmd_hdr, obj_type)) != OBJECT_DEK)
		return ST_BAD_PARAM;
	return make_dek(c, cmd);
}

static enum status drop_general(struct card *c, const struct command *cmd)
{
	uint32_t number = get(cmd->in, F(general_obj_in_cmd_hdr, obj_id));

	if (get(cmd->in, F(general_obj_in_cmd_hdr, obj_type)) != OBJECT_DEK)
		return ST_BAD_PARAM;
	return object_drop(c, KIND_DEK, number) ? ST_OK : ST_BAD_RESOURCE;
}

const struct verb resource_verbs[] = {
	{ 0x200, "CREATE_MKEY", make_mkey },
	{ 0x202, "DESTROY_MKEY", free_mkey },
	{ 0x771, "ALLOC_Q_COUNTER", make_qcounter },
	{ 0x772, "DEALLOC_Q_COUNTER", drop_qcounter },
	{ 0x773, "QUERY_Q_COUNTER", ask_qcounter },
	{ 0x800, "ALLOC_PD", alloc_plain },
	{ 0x801, "DEALLOC_PD", free_plain },
	{ 0x802, "ALLOC_UAR", alloc_plain },
	{ 0x803, "DEALLOC_UAR", free_plain },
	{ 0x816, "ALLOC_TRANSPORT_DOMAIN", alloc_plain },
	{ 0x817, "DEALLOC_TRANSPORT_DOMAIN", free_plain },
	{ 0x900, "CREATE_TIR", make_tir },
	{ 0x901, "MODIFY_TIR", change_tir },
	{ 0x902, "DESTROY_TIR", drop_transport },
	{ 0x912, "CREATE_TIS", make_tis },
	{ 0x913, "MODIFY_TIS", change_tis },
	{ 0x914, "DESTROY_TIS", drop_transport },
	{ 0x916, "CREATE_RQT", make_rqt },
	{ 0x917, "MODIFY_RQT", change_rqt },
	{ 0x918, "DESTROY_RQT", drop_transport },
	{ 0xa00, "CREATE_GENERAL_OBJECT", make_general },
	{ 0xa03, "DESTROY_GENERAL_OBJECT", drop_general },
	{ 0, NULL, NULL },
};
