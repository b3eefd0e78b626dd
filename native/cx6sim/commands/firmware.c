/* SPDX-License-Identifier: Apache-2.0 */
/* The registers that tell which firmware runs, for `devlink dev info` (the driver's fw.c) and mstflint. */
#include "cx6.h"

enum { REG_MGIR = 0x9020, REG_MCQS = 0x9060, REG_MCQI, REG_MCC, REG_MCDA, REG_MQIS, REG_MCAM = 0x907f };
enum { ACCESS_REGS_FIRST, BOOT_IMAGE = 1, INFO_VERSION = 1 };

/* MGIR, which mstflint asks first; its fields are not in mlx5_ifc.h but in tools_layouts/reg_access_hca_layouts.c of mstflint. */
enum { MGIR_DEVICE = 2, MGIR_HW_DEVICE = 10, MGIR_DATE = 40, MGIR_PSID = 48, MGIR_MAJOR = 68, MGIR_MINOR = 72, MGIR_SUB = 76,
       MGIR_SIZE = 160 };

static bool ask_identity(const struct card *c, struct view out)
{
	if (!view_has(out, 0, MGIR_SIZE))
		return false;
	memset(out.at, 0, MGIR_SIZE);
	store16(out.at + MGIR_DEVICE, c->config[2] | c->config[3] << 8);
	store16(out.at + MGIR_HW_DEVICE, HW_ID);
	store32(out.at + MGIR_DATE, 0x06012024); /* month, day and year, a digit in four bits */
	memcpy(out.at + MGIR_PSID, BOARD, sizeof(BOARD));
	store32(out.at + MGIR_MAJOR, FW_MAJOR);
	store32(out.at + MGIR_MINOR, FW_MINOR);
	store32(out.at + MGIR_SUB, FW_SUB);
	return true;
}

/* Registers 0x9001 to 0x907f that the card has, a bit each from the last; of other groups, and of features, none. */
static void ask_registers(struct view out)
{
	struct view mask = view_at(out, F(mcam_reg, mng_access_reg_cap_mask));
	static const uint16_t has[] = { REG_MGIR, REG_MCQS, REG_MCQI, REG_MCC, REG_MCDA, REG_MQIS };

	if (get(out, F(mcam_reg, access_reg_group)) != ACCESS_REGS_FIRST || mask.len < 16)
		return;
	memset(mask.at, 0, 16);
	for (size_t i = 0; i < sizeof(has) / sizeof(*has); i++)
		mask.at[15 - (has[i] & 0x7f) / 8] |= (uint8_t)(1 << (has[i] & 7));
}

/* The boot image is the only component, and no update of it waits for a reset. */
static bool ask_component(struct view out)
{
	if (get(out, F(mcqs_reg, component_index)) != 0)
		return false;
	set(out, F(mcqs_reg, last_index_flag), 1);
	set(out, F(mcqs_reg, identifier), BOOT_IMAGE);
	return true;
}

/* The version of the component that runs; the stored one is the same. Of its capabilities, only that it has a version. */
static bool ask_version(struct view out)
{
	struct view v = view_at(out, A(mcqi_reg, data));

	if (get(out, F(mcqi_reg, component_index)) != 0)
		return false;
	set(out, F(mcqi_reg, info_size), get(out, F(mcqi_reg, data_size)));
	if (get(out, F(mcqi_reg, info_type)) == INFO_VERSION)
		set(v, F(mcqi_version, version), FW_MAJOR << 24 | FW_MINOR << 16 | FW_SUB);
	else
		set(v, F(mcqi_cap, supported_info_bitmask), 1 << INFO_VERSION);
	return true;
}

/* False: `known`, but the card refuses. Nothing can be burned into it, so its component register is idle, and is not written. */
bool firmware_register(const struct card *c, uint32_t id, bool write, struct view out, bool *known)
{
	*known = true;
	switch (id) {
	case REG_MGIR:
		return ask_identity(c, out);
	case REG_MCAM:
		ask_registers(out);
		return true;
	case REG_MCQS:
		return ask_component(out);
	case REG_MCQI:
		return ask_version(out);
	case REG_MCC:
		return !write;
	case REG_MCDA:
	case REG_MQIS:
		return false;
	}
	*known = false;
	return true;
}
