/* SPDX-License-Identifier: Apache-2.0 */
/* Commands that bring the function up and down: pages for the firmware, capabilities, interface revision. */
#include <stdlib.h>

#include "cx6.h"

enum { PAGES_BOOT = 1, PAGES_INIT = 2 };
enum { GIVE_FAIL, GIVE, TAKE };
enum { NEED_BOOT = 16, NEED_INIT = 64 };

static enum status done(struct card *c, const struct command *cmd)
{
	(void)c, (void)cmd;
	return ST_OK;
}

static enum status query_caps(struct card *c, const struct command *cmd)
{
	struct view v = view_at(cmd->out, A(query_hca_cap_out, capability));

	caps_fill(c, cmd->mod >> 1, v);
	if (cmd->mod >> 1 == 0 && c->capabilities_set)
		copy_in(v, 0, c->capabilities, v.len < sizeof(c->capabilities) ? v.len : sizeof(c->capabilities));
	return ST_OK;
}

/* The general capabilities are what the driver chose from then on. */
static enum status set_caps(struct card *c, const struct command *cmd)
{
	struct view v = view_at(cmd->in, F(set_hca_cap_in, capability));

	if (cmd->mod >> 1)
		return ST_OK;
	if (v.len < sizeof(c->capabilities))
		return ST_BAD_INPUT;
	memcpy(c->capabilities, v.at, sizeof(c->capabilities));
	c->capabilities_set = true;
	return ST_OK;
}

static enum status query_adapter(struct card *c, const struct command *cmd)
{
	struct view v = view_at(cmd->out, F(query_adapter_out, query_adapter_struct));

	(void)c;
	copy_in(v, F(query_adapter_param_block, vsd_contd_psid).bit / 8, BOARD, sizeof(BOARD));
	return ST_OK;
}

static enum status query_pages(struct card *c, const struct command *cmd)
{
	uint32_t need = cmd->mod == PAGES_BOOT ? NEED_BOOT : cmd->mod == PAGES_INIT ? NEED_INIT : 0;

	(void)c;
	set(cmd->out, F(query_pages_out, num_pages), need);
	return ST_OK;
}

static enum status give_pages(struct card *c, const struct command *cmd, uint32_t count)
{
	struct view list = view_at(cmd->in, A(manage_pages_in, pas));
	uint64_t *pages;

	if (count > PAGES_MAX - c->page_count || count > list.len / 8)
		return ST_BAD_PARAM;
	if (!count)
		return ST_OK;
	pages = realloc(c->pages, (c->page_count + count) * sizeof(*pages));
	if (!pages)
		return ST_NO_RESOURCES;
	c->pages = pages;
	for (uint32_t i = 0; i < count; i++)
		c->pages[c->page_count++] = load64(list.at + 8 * i);
	return ST_OK;
}

static enum status take_pages(struct card *c, const struct command *cmd, uint32_t count)
{
	struct view list = view_at(cmd->out, A(manage_pages_out, pas));
	uint32_t given = 0;

	while (given < count && c->page_count && given < list.len / 8)
		store64(list.at + 8 * given++, c->pages[--c->page_count]);
	set(cmd->out, F(manage_pages_out, output_num_entries), given);
	return ST_OK;
}

static enum status manage_pages(struct card *c, const struct command *cmd)
{
	uint32_t count = get(cmd->in, F(manage_pages_in, input_num_entries));

	if (cmd->mod == GIVE)
		return give_pages(c, cmd, count);
	return cmd->mod == TAKE ? take_pages(c, cmd, count) : ST_OK;
}

static enum status query_issi(struct card *c, const struct command *cmd)
{
	set(cmd->out, F(query_issi_out, current_issi), c->issi);
	set(cmd->out, F(query_issi_out, supported_issi_dw0), 3);
	return ST_OK;
}

static enum status set_issi(struct card *c, const struct command *cmd)
{
	uint32_t wanted = get(cmd->in, F(set_issi_in, current_issi));

	if (wanted > 1)
		return ST_BAD_PARAM;
	c->issi = wanted;
	return ST_OK;
}

static enum status special_contexts(struct card *c, const struct command *cmd)
{
	(void)c;
	set(cmd->out, F(query_special_contexts_out, resd_lkey), 0x500);
	set(cmd->out, F(query_special_contexts_out, dump_fill_mkey), 0x600);
	return ST_OK;
}

const struct verb setup_verbs[] = {
	{ 0x100, "QUERY_HCA_CAP", query_caps },
	{ 0x101, "QUERY_ADAPTER", query_adapter },
	{ 0x102, "INIT_HCA", done },
	{ 0x103, "TEARDOWN_HCA", done },
	{ 0x104, "ENABLE_HCA", done },
	{ 0x105, "DISABLE_HCA", done },
	{ 0x107, "QUERY_PAGES", query_pages },
	{ 0x108, "MANAGE_PAGES", manage_pages },
	{ 0x109, "SET_HCA_CAP", set_caps },
	{ 0x10a, "QUERY_ISSI", query_issi },
	{ 0x10b, "SET_ISSI", set_issi },
	{ 0x10d, "SET_DRIVER_VERSION", done },
	{ 0x203, "QUERY_SPECIAL_CONTEXTS", special_contexts },
	{ 0, NULL, NULL },
};
