/* SPDX-License-Identifier: Apache-2.0 */
/* Commands for steering: flow tables, groups with a mask, entries with a value, and counters of entries. */
#include <stdlib.h>

#include "cx6.h"

#define ENTRIES_MAX (1u << 16)
#define MATCH_BYTES (MATCH_WORDS * 8)

static enum status set_root(struct card *c, const struct command *cmd)
{
	uint32_t type = get(cmd->in, F(set_flow_table_root_in, table_type));

	if (type < 8)
		c->root[type] = cmd->mod ? 0 : get(cmd->in, F(set_flow_table_root_in, table_id));
	return ST_OK;
}

static void take_miss(struct table *t, struct view x)
{
	t->miss_goes_on = get(x, F(flow_table_context, table_miss_action)) == 1;
	t->miss = get(x, F(flow_table_context, table_miss_id));
}

static enum status make_table(struct card *c, const struct command *cmd)
{
	uint32_t number;
	struct table *t = object_make(c, KIND_TABLE, &number);

	if (!t)
		return ST_LIMIT;
	take_miss(t, view_at(cmd->in, F(create_flow_table_in, flow_table_context)));
	set(cmd->out, F(create_flow_table_out, table_id), number);
	return ST_OK;
}

static enum status change_table(struct card *c, const struct command *cmd)
{
	struct table *t = object_find(c, KIND_TABLE, get(cmd->in, F(modify_flow_table_in, table_id)));

	if (!t)
		return ST_BAD_RESOURCE;
	take_miss(t, view_at(cmd->in, F(modify_flow_table_in, flow_table_context)));
	return ST_OK;
}

static enum status drop_table(struct card *c, const struct command *cmd)
{
	uint32_t number = get(cmd->in, F(destroy_flow_table_in, table_id));

	return object_drop(c, KIND_TABLE, number) ? ST_OK : ST_BAD_RESOURCE;
}

/* match_criteria_enable has a bit for each 64 bytes of the mask. */
static void take_mask(struct group *g, struct view mask, uint32_t enabled)
{
	memcpy(g->mask, mask.at, MATCH_BYTES);
	for (uint32_t i = 0; i < MATCH_WORDS; i++) {
		if (!(enabled >> (i / 8) & 1))
			g->mask[i] = 0;
		if (g->mask[i])
			g->word[g->words++] = (uint8_t)i;
	}
}

static enum status make_group(struct card *c, const struct command *cmd)
{
	struct view mask = view_at(cmd->in, F(create_flow_group_in, match_criteria));
	uint32_t number, table = get(cmd->in, F(create_flow_group_in, table_id));
	struct group *g;

	if (!object_find(c, KIND_TABLE, table))
		return ST_BAD_RESOURCE;
	if (!view_has(mask, 0, MATCH_BYTES))
		return ST_BAD_INPUT;
	g = object_make(c, KIND_GROUP, &number);
	if (!g)
		return ST_LIMIT;
	g->table = table;
	take_mask(g, mask, get(cmd->in, F(create_flow_group_in, match_criteria_enable)));
	set(cmd->out, F(create_flow_group_out, group_id), number);
	return ST_OK;
}

static enum status drop_group(struct card *c, const struct command *cmd)
{
	uint32_t number = get(cmd->in, F(destroy_flow_group_in, group_id));

	return object_drop(c, KIND_GROUP, number) ? ST_OK : ST_BAD_RESOURCE;
}

/* Where the entry with an index is, or belongs. */
static uint32_t place_of(const struct table *t, uint32_t index)
{
	uint32_t low = 0, high = t->count;

	while (low < high) {
		uint32_t middle = (low + high) / 2;

		if (t->entry[middle].index < index)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static struct entry *place_for(struct table *t, uint32_t index)
{
	uint32_t at = place_of(t, index);

	if (at < t->count && t->entry[at].index == index)
		return &t->entry[at];
	if (t->count == t->room) {
		uint32_t room = t->room ? t->room * 2 : 8;
		struct entry *more = room > ENTRIES_MAX ? NULL : realloc(t->entry, room * sizeof(*more));

		if (!more)
			return NULL;
		t->entry = more;
		t->room = room;
	}
	memmove(&t->entry[at + 1], &t->entry[at], (t->count++ - at) * sizeof(*t->entry));
	return &t->entry[at];
}

/* Eight bytes for each way: its type and its number; the counters come behind the last one. */
static void take_targets(struct entry *e, struct view x)
{
	struct view list = view_at(x, A(flow_context, destination));
	uint32_t count = get(x, F(flow_context, destination_list_size));

	for (uint32_t i = 0; i < count && i < ENTRY_TARGETS && view_has(list, 8 * i, 8); i++) {
		e->target[e->targets].type = list.at[8 * i];
		e->target[e->targets++].id = load24(list.at + 8 * i + 1);
	}
	if (get(x, F(flow_context, flow_counter_list_size)) && count <= ENTRY_TARGETS && view_has(list, 8 * count, 8))
		e->counter = load32(list.at + 8 * count);
}

/* A receive rule: it leads a connection's frames to the context that decrypts them. */
static bool leads_to_tls(struct card *c, const struct entry *e)
{
	const struct tir *tir = e->target[0].type == TARGET_TIR ? object_find(c, KIND_TIR, e->target[0].id) : NULL;

	return tir && tir->tls_en;
}

/* The driver gives up on the first answer, and asks again for ever on the second. */
static enum status refuse(struct card *c, const struct entry *e)
{
	if (!leads_to_tls(c, e))
		return ST_OK;
	if (fault_hit(c, FAULT_RX_NO_RULE))
		return ST_LIMIT;
	return fault_hit(c, FAULT_RX_NO_ROOM) ? ST_NO_RESOURCES : ST_OK;
}

static enum status set_entry(struct card *c, const struct command *cmd)
{
	struct table *t = object_find(c, KIND_TABLE, get(cmd->in, F(set_fte_in, table_id)));
	struct view x = view_at(cmd->in, F(set_fte_in, flow_context));
	struct view value = view_at(x, F(flow_context, match_value));
	enum status refused;
	struct entry *e, made = { .index = get(cmd->in, F(set_fte_in, flow_index)),
				  .group = get(x, F(flow_context, group_id)), .tag = get(x, F(flow_context, flow_tag)),
				  .action = get(x, F(flow_context, action)) };

	if (!t)
		return ST_BAD_RESOURCE;
	if (!view_has(value, 0, MATCH_BYTES))
		return ST_BAD_INPUT;
	memcpy(made.value, value.at, MATCH_BYTES);
	take_targets(&made, x);
	refused = refuse(c, &made);
	if (refused)
		return refused;
	e = place_for(t, made.index);
	if (!e)
		return ST_LIMIT;
	*e = made;
	return ST_OK;
}

static enum status delete_entry(struct card *c, const struct command *cmd)
{
	struct table *t = object_find(c, KIND_TABLE, get(cmd->in, F(delete_fte_in, table_id)));
	uint32_t index = get(cmd->in, F(delete_fte_in, flow_index)), at = t ? place_of(t, index) : 0;

	if (!t || at == t->count || t->entry[at].index != index)
		return ST_BAD_RESOURCE;
	memmove(&t->entry[at], &t->entry[at + 1], (--t->count - at) * sizeof(*t->entry));
	return ST_OK;
}

static enum status make_counter(struct card *c, const struct command *cmd)
{
	uint32_t number;

	if (!object_make(c, KIND_COUNTER, &number))
		return ST_LIMIT;
	set(cmd->out, F(alloc_flow_counter_out, flow_counter_id), number);
	return ST_OK;
}

static enum status drop_counter(struct card *c, const struct command *cmd)
{
	uint32_t number = get(cmd->in, F(dealloc_flow_counter_in, flow_counter_id));

	return object_drop(c, KIND_COUNTER, number) ? ST_OK : ST_BAD_RESOURCE;
}

static enum status ask_counter(struct card *c, const struct command *cmd)
{
	struct view list = view_at(cmd->out, A(query_flow_counter_out, flow_statistics));
	uint32_t first = get(cmd->in, F(query_flow_counter_in, flow_counter_id));
	uint32_t count = get(cmd->in, F(query_flow_counter_in, num_of_counters));

	for (uint32_t i = 0; i < (count ? count : 1) && view_has(list, 16 * i, 16); i++) {
		const struct counter *n = object_find(c, KIND_COUNTER, first + i);

		store64(list.at + 16 * i, n ? n->frames : 0);
		store64(list.at + 16 * i + 8, n ? n->bytes : 0);
	}
	return ST_OK;
}

const struct verb flow_verbs[] = {
	{ 0x92f, "SET_FLOW_TABLE_ROOT", set_root },	 { 0x930, "CREATE_FLOW_TABLE", make_table },
	{ 0x931, "DESTROY_FLOW_TABLE", drop_table },	 { 0x933, "CREATE_FLOW_GROUP", make_group },
	{ 0x934, "DESTROY_FLOW_GROUP", drop_group },	 { 0x936, "SET_FLOW_TABLE_ENTRY", set_entry },
	{ 0x938, "DELETE_FLOW_TABLE_ENTRY", delete_entry }, { 0x939, "ALLOC_FLOW_COUNTER", make_counter },
	{ 0x93a, "DEALLOC_FLOW_COUNTER", drop_counter }, { 0x93b, "QUERY_FLOW_COUNTER", ask_counter },
	{ 0x93c, "MODIFY_FLOW_TABLE", change_table },	 { 0, NULL, NULL },
};
