/* SPDX-License-Identifier: Apache-2.0 */
/* libFuzzer: rules of strangers, frames of strangers, and made-up connections under rules, through the whole engine. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../wirebox.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct engine engine;
static uint64_t sent;

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	return freopen("/dev/null", "w", stdout) ? 0 : -1;
}

static void keep(void *to, int direction, const uint8_t *data, uint32_t len)
{
	uint32_t sum = 0;

	(void)to;
	if (len > FRAME_MAX || direction < 0 || direction >= DIRECTIONS)
		abort();
	for (uint32_t i = 0; i < len; i++)
		sum += data[i];
	sent += 1 + (sum & 0);
}

/* What a line is taken for has to make sense. */
static void rule(const char *line)
{
	struct command c;
	char error[ERROR_MAX] = "";

	if (!rules_parse(line, &c, error)) {
		if (!*error)
			abort();
		return;
	}
	if (c.kind == CMD_RULE && (c.rule.direction >= DIRECTIONS || !c.rule.times || c.rule.times > 100 ||
				   c.rule.bit > 7 || (c.rule.action == ACT_DELAY && !c.rule.behind)))
		abort();
	if (c.kind == CMD_IMPAIR && (c.impairment.loss > 1000000 || c.impairment.reorder > 1000000 ||
				      (!c.to[A_TO_B] && !c.to[B_TO_A])))
		abort();
	if (!rules_apply(&engine.rules, &c, error) && !*error)
		abort();
}

/* Rules that act on what `connection` makes, chosen by the bits of a byte: words alone are slow to be found. */
static void known_rules(uint8_t which)
{
	static const char *const lines[] = {
		"a>b header 0 flip at 3 noise times 5\na>b header +1 drop\nb>a header 1 delay 2",
		"a>b inside 1 delay 3\nb>a inside 0 duplicate\na>b inside +0 flip repaired",
		"a>b tag 1 flip at -1 bit 3 repaired\nb>a tag 0 drop times 3\na>b tag +0 delay 1",
		"a>b first duplicate\nb>a first delay 9\na>b last delay 1000\nb>a last flip noise",
		"a>b offset 70 drop\na>b frame 2 flip at 70 noise\nb>a frame 0 drop times 9",
		"impair both loss 5% corrupt 30% repaired duplicate 10% reorder 20% depth 2",
		"impair b>a seed 3 corrupt 30% noise jitter 3000",
	};

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		char *text = strdup(lines[i]), *rest = text;

		for (char *line; which & 2u << i && (line = strsep(&rest, "\n"));)
			rule(line);
		free(text);
	}
}

/* The lines at the beginning, up to a NUL; what is behind it. */
static size_t rules(const uint8_t *data, size_t size)
{
	size_t len = strnlen((const char *)data, size);
	char *text = strndup((const char *)data, len), *rest = text;

	for (char *line; (line = strsep(&rest, "\n"));)
		rule(line);
	free(text);
	return len < size ? len + 1 : size;
}

static void give(int direction, const uint8_t *data, uint32_t len, uint32_t cut)
{
	uint8_t *copy = malloc(len ? len : 1);

	memcpy(copy, data, len);
	if (cut) {
		engine_cut(&engine, direction, copy, len, cut);
	} else {
		frame_finish(copy, len, len > 3 ? copy[0] : 0, len > 3 ? copy[1] : 0);
		engine_take(&engine, direction, copy, len);
	}
	free(copy);
	engine.now += 1000000;
	hold_due(&engine);
}

/* Frames as they are: a length, a direction, a size to cut at, and the bytes. */
static void strangers(const uint8_t *data, size_t size)
{
	while (size > 4) {
		uint32_t len = (uint32_t)data[0] << 3 | (data[1] & 7), cut = data[2];

		if (len > size - 4)
			len = (uint32_t)size - 4;
		give(data[3] & 1, data + 4, len, cut);
		data += 4 + len;
		size -= 4 + len;
	}
}

/* Frames of one connection: where in the stream, flags and payload come from the input. */
static void connection(const uint8_t *data, size_t size)
{
	static const uint8_t head[54] = { [12] = 8, [14] = 0x45, [23] = 6, [26] = 1, [30] = 2, [46] = 0x50 };
	uint32_t next[DIRECTIONS] = { 0xfffffff0, 77 };

	while (size > 4) {
		uint32_t len = data[0], total = 40 + len;
		int direction = data[1] & 1;
		uint32_t seq = next[direction] + (data[1] & 2 ? (uint32_t)(int8_t)data[2] : 0);
		uint8_t frame[54 + 256];

		if (len > size - 4)
			total = 40 + (len = (uint32_t)size - 4);
		memcpy(frame, head, sizeof(head));
		memcpy(frame + 54, data + 4, len);
		frame[16] = (uint8_t)(total >> 8);
		frame[17] = (uint8_t)total;
		frame[direction ? 33 : 29] = 1; /* addresses and ports change sides */
		frame[direction ? 29 : 33] = 2;
		frame[26] = frame[30] = 10;
		frame[direction ? 37 : 35] = 9;
		for (int i = 0; i < 4; i++)
			frame[38 + i] = (uint8_t)(seq >> (24 - 8 * i));
		frame[47] = data[3];
		next[direction] = seq + len + (data[3] & TCP_SYN ? 1 : 0);
		give(direction, frame, 54 + len, data[1] & 4 ? 100 : 0);
		data += 4 + len;
		size -= 4 + len;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t at;

	memset(&engine, 0, sizeof(engine));
	engine.send = keep;
	engine.rules.seed = 1;
	if (!size)
		return 0;
	known_rules(*data);
	at = 1 + rules(data + 1, size - 1);
	if (*data & 1)
		strangers(data + at, size - at);
	else
		connection(data + at, size - at);
	hold_flush(&engine);
	if (engine.held_count || engine.held_bytes)
		abort();
	return 0;
}
