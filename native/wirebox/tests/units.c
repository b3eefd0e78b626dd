/* SPDX-License-Identifier: Apache-2.0 */
/* What frames from a script cannot show in a moment: streams beyond 4 GiB, a full table of flows, metadata that lies. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../wirebox.h"

#define CHECK(condition)                                                                     \
	do {                                                                                 \
		if (!(condition)) {                                                          \
			fprintf(stderr, "%s:%d: not so: %s\n", __func__, __LINE__, #condition); \
			exit(1);                                                             \
		}                                                                            \
	} while (0)

#define HEADERS 54
#define STEP 65000u

static struct engine engine;
static uint64_t sent;

static void count(void *to, int direction, const uint8_t *data, uint32_t len)
{
	(void)to;
	(void)direction;
	sent += data && len;
}

static void begin(const char *line)
{
	struct command c;
	char error[ERROR_MAX];

	memset(&engine, 0, sizeof(engine));
	engine.send = count;
	sent = 0;
	CHECK(rules_parse(line, &c, error) && rules_apply(&engine.rules, &c, error));
}

/* A frame of a connection from port `port`, with `size` bytes that are no TLS. */
static void give(uint16_t port, uint32_t seq, uint8_t flags, uint32_t size)
{
	static uint8_t frame[HEADERS + STEP] = { [12] = 8, [14] = 0x45, [23] = 6, [46] = 0x50 };

	frame[16] = (uint8_t)((40 + size) >> 8);
	frame[17] = (uint8_t)(40 + size);
	frame[34] = (uint8_t)(port >> 8);
	frame[35] = (uint8_t)port;
	for (int i = 0; i < 4; i++)
		frame[38 + i] = (uint8_t)(seq >> (24 - 8 * i));
	frame[47] = flags;
	engine_take(&engine, A_TO_B, frame, HEADERS + size);
}

/* 5 GiB from an ISN near the end of the sequence numbers: the rule meets its byte once, nowhere else. */
static void long_streams(void)
{
	const uint32_t isn = 0xfffff000, frames = 82600;

	begin("a>b offset 4900000000 drop times 9");
	give(1, isn, TCP_SYN, 0);
	for (uint32_t i = 0; i < frames; i++)
		give(1, isn + 1 + i * STEP, TCP_ACK, STEP);
	CHECK(engine.count[A_TO_B].dropped == 1 && engine.flows.gaps == 0);
	CHECK(engine.count[A_TO_B].frames == frames + 1 && sent == frames);
}

/* The table is bounded: of many flows the one that was silent longest is forgotten, the others are not. */
static void many_flows(void)
{
	const uint32_t many = 4 * FLOW_SETS * FLOW_WAYS;

	begin("a>b offset 0 drop");
	give(1, 0, TCP_SYN, 0);
	for (uint32_t i = 2; i <= many; i++) {
		give((uint16_t)i, 0, TCP_SYN, 0);
		give(1, 5, TCP_ACK, 10); /* not its beginning: no rule, but it is alive */
	}
	give(1, 1, TCP_ACK, 4);
	CHECK(engine.count[A_TO_B].dropped == 1);
	give(2, 1, TCP_ACK, 4);
	CHECK(engine.count[A_TO_B].dropped == 1 && engine.flows.unknown == 1);
	CHECK(engine.flows.seen == many);
}

/* Where the sender says that the checksum belongs may be anywhere. */
static void lying_metadata(void)
{
	uint8_t data[20] = { 0 };

	CHECK(frame_finish(data, 20, 0, 18) && frame_finish(data, 20, 18, 0));
	CHECK(!frame_finish(data, 20, 0, 19) && !frame_finish(data, 20, 19, 0));
	CHECK(!frame_finish(data, 20, 21, 0) && !frame_finish(data, 20, 0, 0xffff));
	CHECK(!frame_finish(data, 20, 0xffff, 0xffff) && !frame_finish(data, 0, 0, 0));
}

int main(void)
{
	long_streams();
	many_flows();
	lying_metadata();
	puts("units ok");
	return 0;
}
