/* SPDX-License-Identifier: Apache-2.0 */
/* The mailbox by which programs such as mstflint read registers past the driver (mtcr_ul/mtcr_ul_icmd_cif.c of mstflint). */
#include "cx6.h"

enum { CONTROL = 0x0, BOX_SIZE = 0x1000, SYNDROME = 0x1008, BOX = 0x100000 };
enum { BUSY = 1, OPCODE_REGISTER = 0x9001, STATUS_BAD_OPCODE = 1 };
/* The message: an operation of 16 bytes, the header of a register of 4, the register (mtcr_ul/packets_layout.c) */
enum { AT_STATUS = 1, AT_REGISTER = 4, AT_METHOD = 6, AT_LENGTH = 16, AT_DATA = 20, METHOD_SET = 2 };
enum { REPLY_OK = 0, REPLY_UNKNOWN_REGISTER = 4, REPLY_BAD_PARAM = 7 };

/* The length in words counts the header's own; a message cannot say more than the mailbox holds. */
static uint32_t register_length(const uint8_t *box)
{
	uint32_t words = load16(box + AT_LENGTH) & 0x7ff, most = (TOOL_BOX - AT_DATA) / 4;

	return words ? (words - 1 < most ? words - 1 : most) * 4 : 0;
}

static void run_register(struct card *c)
{
	uint8_t asked[TOOL_BOX], *box = c->tool_box;
	uint32_t len = register_length(box), reply = REPLY_OK;
	bool known;

	memcpy(asked, box + AT_DATA, len);
	if (register_access(c, load16(box + AT_REGISTER), (box[AT_METHOD] & 0x7f) == METHOD_SET, (struct view){ asked, len },
			    (struct view){ box + AT_DATA, len }, &known) != ST_OK)
		reply = REPLY_BAD_PARAM;
	if (!known)
		reply = REPLY_UNKNOWN_REGISTER;
	say(c, 2, "a program asked for register %#x: %u", load16(box + AT_REGISTER), reply);
	box[AT_STATUS] = (uint8_t)((box[AT_STATUS] & 0x80) | reply);
}

static void run(struct card *c, uint32_t control)
{
	uint32_t status = 0;

	if (control >> 16 == OPCODE_REGISTER)
		run_register(c);
	else
		status = STATUS_BAD_OPCODE;
	c->tool_control = (control & 0xffff0000u) | status << 8;
}

bool tool_read(struct card *c, uint32_t at, uint32_t *value)
{
	if (at == CONTROL)
		*value = c->tool_control;
	else if (at == BOX_SIZE)
		*value = TOOL_BOX;
	else if (at >= BOX && at < BOX + TOOL_BOX && !(at & 3))
		*value = load32(c->tool_box + (at - BOX));
	else
		return at == SYNDROME;
	return true;
}

bool tool_write(struct card *c, uint32_t at, uint32_t value)
{
	if (at >= BOX && at < BOX + TOOL_BOX && !(at & 3))
		store32(c->tool_box + (at - BOX), value);
	else if (at != CONTROL)
		return false;
	else if (value & BUSY)
		run(c, value);
	else
		c->tool_control = value;
	return true;
}
