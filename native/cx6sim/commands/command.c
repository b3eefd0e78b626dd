/* SPDX-License-Identifier: Apache-2.0 */
/* The command queue: entries of 64 bytes with mailboxes behind them; each command is read, run and answered. */
#include <stdlib.h>

#include "cx6.h"

/* mlx5_cmd_layout and mlx5_cmd_prot_block of the kernel's device.h */
enum { ENTRY = 64, IN_LEN = 4, IN_MAILBOX = 8, IN = 16, OUT = 32, OUT_MAILBOX = 48, OUT_LEN = 56, TOKEN = 60, OWNER = 63,
       INLINE = 16, SLOTS = 32 };
enum { BLOCK = 576, BLOCK_DATA = 512, BLOCK_NEXT = 560, BLOCK_TOKEN = 573 };
enum { DELIVERED = 0, BAD_TOKEN = 2, BAD_LENGTH_IN = 7, BAD_LENGTH_OUT = 8 };
#define MILLION 1000000u /* nanoseconds of a millisecond */
#define SYNDROME_UNKNOWN 0x1d9bc0u /* for an opcode that the card lacks; any number that is not zero would do */

static const struct verb *const tables[] = { setup_verbs, queue_verbs, resource_verbs, flow_verbs, port_verbs };

static const struct verb *find(uint16_t op)
{
	for (size_t i = 0; i < sizeof(tables) / sizeof(*tables); i++)
		for (const struct verb *v = tables[i]; v->name; v++)
			if (v->op == op)
				return v;
	return NULL;
}

/* Run a command that has been read; its answer lies in `out` but for the status. */
enum status command_run(struct card *c, const struct command *cmd)
{
	const struct verb *v = find(cmd->op);
	enum status st;

	c->truth.commands++;
	if (!v) {
		c->truth.unknown++;
		say(c, 0, "the model lacks command %#x (modifier %#x, %u bytes)", cmd->op, cmd->mod, cmd->in.len);
		return ST_BAD_OP;
	}
	st = fault_hit(c, FAULT_COMMAND) ? ST_INTERNAL : v->run(c, cmd);
	say(c, st ? 1 : 2, "%s (%#x, modifier %#x): status %#x", v->name, cmd->op, cmd->mod, st);
	return st;
}

/* Copy a message between the chain of mailboxes and `data`. False if the chain ends early or has another token. */
static bool walk(struct card *c, uint64_t mailbox, uint8_t token, uint8_t *data, uint32_t len, bool out)
{
	for (uint32_t done = 0; done < len; done += BLOCK_DATA) {
		uint32_t part = len - done < BLOCK_DATA ? len - done : BLOCK_DATA;
		uint8_t *block = mailbox ? guest_at(&c->guest, mailbox, BLOCK) : NULL;

		if (!block || block[BLOCK_TOKEN] != token)
			return false;
		if (out)
			memcpy(block, data + done, part);
		else
			memcpy(data + done, block, part);
		mailbox = load64(block + BLOCK_NEXT);
	}
	return true;
}

static uint8_t execute(struct card *c, uint8_t *entry, uint8_t *in, uint32_t in_len, uint8_t *out, uint32_t out_len)
{
	struct command cmd = { { in, in_len }, { out, out_len }, 0, 0 };
	enum status st;

	memcpy(in, entry + IN, INLINE);
	if (!walk(c, load64(entry + IN_MAILBOX), entry[TOKEN], in + INLINE, in_len - INLINE, false))
		return BAD_TOKEN;
	cmd.op = load16(in);
	cmd.mod = load16(in + 6);
	st = command_run(c, &cmd);
	out[0] = (uint8_t)st;
	if (st)
		store32(out + 4, SYNDROME_UNKNOWN + cmd.op);
	memcpy(entry + OUT, out, INLINE);
	if (!walk(c, load64(entry + OUT_MAILBOX), entry[TOKEN], out + INLINE, out_len - INLINE, true))
		return BAD_TOKEN;
	return DELIVERED;
}

static uint32_t at_least(uint32_t len)
{
	return len < INLINE ? INLINE : len;
}

/* The guest may change the entry while we work: its lengths are read once. */
static uint8_t deliver(struct card *c, uint8_t *entry)
{
	uint32_t in_len = at_least(load32(entry + IN_LEN)), out_len = at_least(load32(entry + OUT_LEN));
	uint8_t *in, *out, status = BAD_LENGTH_IN;

	if (in_len > MAILBOX_MAX)
		return BAD_LENGTH_IN;
	if (out_len > MAILBOX_MAX)
		return BAD_LENGTH_OUT;
	in = calloc(1, in_len);
	out = calloc(1, out_len);
	if (in && out)
		status = execute(c, entry, in, in_len, out, out_len);
	free(in);
	free(out);
	return status;
}

/* The event comes only if somebody listened before: creating the EQ of the commands is itself a command. */
static void run_slot(struct card *c, uint32_t slot)
{
	uint8_t *entry = guest_at(&c->guest, c->command_queue + (uint64_t)slot * ENTRY, ENTRY);
	uint8_t status, data[4];
	bool heard;

	if (!entry || !(entry[OWNER] & 1) || fault_hit(c, FAULT_TIMEOUT))
		return;
	heard = event_heard(c, EVENT_COMMAND);
	status = deliver(c, entry);
	__atomic_store_n(entry + OWNER, (uint8_t)(status << 1), __ATOMIC_RELEASE);
	store32(data, 1u << slot);
	if (heard)
		event_say(c, EVENT_COMMAND, 0, data, sizeof(data));
}

static void run_slots(struct card *c, uint32_t vector)
{
	for (uint32_t i = 0; i < SLOTS && c->command_queue && !c->syndrome; i++)
		if (vector >> i & 1)
			run_slot(c, i);
}

/* The slow card: all that is asked meanwhile waits for the same moment. */
void command_doorbell(struct card *c, uint32_t vector)
{
	uint64_t delay = fault_value(c, FAULT_DELAY);

	if (!delay) {
		run_slots(c, vector);
		return;
	}
	if (!c->commands_held)
		c->commands_due = nanoseconds() + delay * MILLION;
	c->commands_held |= vector;
}

int commands_wait(const struct card *c)
{
	uint64_t now = nanoseconds(), left = c->commands_due > now ? c->commands_due - now : 0;

	if (!c->commands_held)
		return -1;
	return left / MILLION < INT32_MAX ? (int)((left + MILLION - 1) / MILLION) : INT32_MAX;
}

void commands_run_slow(struct card *c)
{
	uint32_t vector = c->commands_held;

	if (commands_wait(c) != 0)
		return;
	c->commands_held = 0;
	run_slots(c, vector);
}
