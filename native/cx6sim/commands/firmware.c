/* SPDX-License-Identifier: Apache-2.0 */
/* The registers that tell which firmware runs: `devlink dev info` reads them (the driver's fw.c). */
#include "cx6.h"

enum { REG_MCQS = 0x9060, REG_MCQI = 0x9061, REG_MCAM = 0x907f };
enum { ACCESS_REGS_FIRST, BOOT_IMAGE = 1, INFO_VERSION = 1 };

/* Which registers the card has, of the first group; no further feature. */
static void ask_registers(struct view out)
{
	struct view mask = view_at(out, F(mcam_reg, mng_access_reg_cap_mask));

	if (get(out, F(mcam_reg, access_reg_group)) != ACCESS_REGS_FIRST)
		return;
	set(mask, F(mcam_access_reg, mcqi), 1);
	set(mask, F(mcam_access_reg, mcqs), 1);
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

/* False: `known`, but there is no such component. */
bool firmware_register(uint32_t id, struct view out, bool *known)
{
	*known = true;
	switch (id) {
	case REG_MCAM:
		ask_registers(out);
		return true;
	case REG_MCQS:
		return ask_component(out);
	case REG_MCQI:
		return ask_version(out);
	}
	*known = false;
	return true;
}
