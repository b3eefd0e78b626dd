/* SPDX-License-Identifier: Apache-2.0 */
/* Commands for the port: its vport, its link, speed, MTU and pause frames. */
#include "cx6.h"

enum { REG_PMTU = 0x5003, REG_PTYS = 0x5004, REG_PAOS = 0x5006, REG_PFCC = 0x5007, REG_PPCNT = 0x5008, REG_PCAM = 0x507f };
enum { WRITE_REG, READ_REG };
enum { LINK_UP = 1, LINK_DOWN = 2 };
/* bits of ptys_reg as in the driver's port.c: 100GBASE_CR4, 100GBASE_LR4, 25GBASE_SR */
enum { SPEED_100_CR4 = 1 << 20, SPEED_100_LR4 = 1 << 23, SPEED_25_SR = 1 << 28 };
#define SPEEDS (SPEED_100_CR4 | SPEED_100_LR4 | SPEED_25_SR)
#define MTU_MAX 9978

static enum status done(struct card *c, const struct command *cmd)
{
	(void)c, (void)cmd;
	return ST_OK;
}

static enum status ask_vport_state(struct card *c, const struct command *cmd)
{
	set(cmd->out, F(query_vport_state_out, admin_state), 1);
	set(cmd->out, F(query_vport_state_out, state), c->link);
	return ST_OK;
}

static enum status ask_vport(struct card *c, const struct command *cmd)
{
	struct view v = view_at(cmd->out, F(query_nic_vport_context_out, nic_vport_context));
	uint64_t guid = 0x0c42a10000000000ULL + (uint64_t)c->number;

	set(v, F(nic_vport_context, mtu), c->mtu);
	copy_in(v, F(nic_vport_context, permanent_address).bit / 8 + 2, c->mac, sizeof(c->mac));
	set64(v, F(nic_vport_context, system_image_guid), guid);
	set64(v, F(nic_vport_context, node_guid), guid);
	return ST_OK;
}

static enum status change_vport(struct card *c, const struct command *cmd)
{
	struct view bits = view_at(cmd->in, F(modify_nic_vport_context_in, field_select));
	struct view v = view_at(cmd->in, F(modify_nic_vport_context_in, nic_vport_context));
	uint32_t at = F(nic_vport_context, permanent_address).bit / 8 + 2;

	if (get(bits, F(modify_nic_vport_field_select, permanent_address)) && view_has(v, at, sizeof(c->mac)))
		memcpy(c->mac, v.at + at, sizeof(c->mac));
	return ST_OK;
}

static void mtu_register(struct card *c, bool write, struct view in, struct view out)
{
	uint32_t wanted = get(in, F(pmtu_reg, admin_mtu));

	if (write && wanted <= MTU_MAX)
		c->mtu = wanted;
	set(out, F(pmtu_reg, max_mtu), MTU_MAX);
	set(out, F(pmtu_reg, admin_mtu), c->mtu);
	set(out, F(pmtu_reg, oper_mtu), c->mtu);
}

static uint32_t best_speed(uint32_t speeds)
{
	return speeds & SPEED_100_LR4 ? SPEED_100_LR4 : speeds & SPEED_100_CR4 ? SPEED_100_CR4 : speeds & SPEED_25_SR;
}

static void speed_register(struct card *c, bool write, struct view in, struct view out)
{
	if (write) {
		c->speeds = get(in, F(ptys_reg, eth_proto_admin)) & SPEEDS;
		c->autoneg_off = get(in, F(ptys_reg, an_disable_admin));
	}
	set(out, F(ptys_reg, eth_proto_capability), SPEEDS);
	set(out, F(ptys_reg, eth_proto_admin), c->speeds ? c->speeds : SPEEDS);
	set(out, F(ptys_reg, eth_proto_oper), c->link ? best_speed(c->speeds ? c->speeds : SPEEDS) : 0);
	set(out, F(ptys_reg, eth_proto_lp_advertise), SPEEDS);
	set(out, F(ptys_reg, an_disable_cap), 1);
	set(out, F(ptys_reg, an_disable_admin), c->autoneg_off);
	set(out, F(ptys_reg, an_status), 1);
}

static void link_register(struct card *c, bool write, struct view in, struct view out)
{
	if (write) {
		c->link_wanted = get(in, F(paos_reg, admin_status)) == LINK_UP;
		link_settle(c);
	}
	set(out, F(paos_reg, admin_status), c->link_wanted ? LINK_UP : LINK_DOWN);
	set(out, F(paos_reg, oper_status), c->link ? LINK_UP : LINK_DOWN);
}

static void pause_register(struct card *c, bool write, struct view in, struct view out)
{
	if (write)
		c->pause = get(in, F(pfcc_reg, pptx)) << 1 | get(in, F(pfcc_reg, pprx));
	set(out, F(pfcc_reg, pptx), c->pause >> 1);
	set(out, F(pfcc_reg, pprx), c->pause & 1);
}

/* Which registers the port has beyond those that every card has: its counters. Without this bit the driver never asks for them. */
static void ask_registers(struct view out)
{
	struct view mask = view_at(out, F(pcam_reg, port_access_reg_cap_mask));

	if (get(out, F(pcam_reg, access_reg_group)) == 0)
		set(mask, F(pcam_regs_5000_to_507f, ppcnt), 1);
}

/* The answer begins as what was asked; a register that the card lacks reads as it was written, and is not `known`. */
enum status register_access(struct card *c, uint32_t id, bool write, struct view in, struct view out, bool *known)
{
	*known = true;
	copy_in(out, 0, in.at, in.len < out.len ? in.len : out.len);
	switch (id) {
	case REG_PMTU:
		mtu_register(c, write, in, out);
		break;
	case REG_PTYS:
		speed_register(c, write, in, out);
		break;
	case REG_PAOS:
		link_register(c, write, in, out);
		break;
	case REG_PFCC:
		pause_register(c, write, in, out);
		break;
	case REG_PPCNT:
		counter_register(c, out);
		break;
	case REG_PCAM:
		ask_registers(out);
		break;
	default:
		return firmware_register(c, id, write, out, known) ? ST_OK : ST_BAD_PARAM;
	}
	return ST_OK;
}

static enum status access_register(struct card *c, const struct command *cmd)
{
	struct view in = view_at(cmd->in, A(access_register_in, register_data));
	struct view out = view_at(cmd->out, A(access_register_out, register_data));
	uint32_t id = get(cmd->in, F(access_register_in, register_id));
	bool write = cmd->mod == WRITE_REG, known;
	enum status status = register_access(c, id, write, in, out, &known);

	if (!known)
		say(c, 2, "driver %s register %#x, which the model ignores", write ? "wrote" : "read", id);
	return status;
}

const struct verb port_verbs[] = {
	{ 0x750, "QUERY_VPORT_STATE", ask_vport_state }, { 0x751, "MODIFY_VPORT_STATE", done },
	{ 0x754, "QUERY_NIC_VPORT_CONTEXT", ask_vport }, { 0x755, "MODIFY_NIC_VPORT_CONTEXT", change_vport },
	{ 0x76f, "QUERY_VNIC_ENV", done },		 { 0x770, "QUERY_VPORT_COUNTER", ask_vport_counter },
	{ 0x805, "ACCESS_REG", access_register },	 { 0x829, "SET_L2_TABLE_ENTRY", done },
	{ 0x82b, "DELETE_L2_TABLE_ENTRY", done },	 { 0, NULL, NULL },
};
