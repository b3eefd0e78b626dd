/* SPDX-License-Identifier: Apache-2.0 */
/* libFuzzer: changes to single frames of a pcap, whose lengths stay right: else every change would end the reading. */
#include <stdlib.h>
#include <string.h>

#include "bytes.h"

enum { QUESTION = 1, FILE_HEAD = QUESTION + 24, FRAME_HEAD = 16, FRAMES_MAX = 128, ROOM = 8192 };

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned int seed);

/* Frame i of an input lies at [at[i], at[i + 1]), its head included. */
struct frames {
	size_t at[FRAMES_MAX + 1];
	size_t count;
	bool big;
};

static uint32_t get(const struct frames *f, const uint8_t *p)
{
	return f->big ? be32(p) : le32(p);
}

static void put(const struct frames *f, uint8_t *p, uint32_t v)
{
	for (int i = 0; i < 4; i++)
		p[i] = (uint8_t)(v >> (f->big ? 24 - 8 * i : 8 * i));
}

static bool split(struct frames *f, const uint8_t *data, size_t size)
{
	uint32_t magic = size > FILE_HEAD ? be32(data + QUESTION) : 0;

	f->big = magic == 0xa1b2c3d4 || magic == 0xa1b23c4d;
	f->count = 0;
	f->at[0] = FILE_HEAD;
	if (!f->big && magic != 0xd4c3b2a1 && magic != 0x4d3cb2a1)
		return false;
	while (f->count < FRAMES_MAX && size - f->at[f->count] >= FRAME_HEAD) {
		uint32_t len = get(f, data + f->at[f->count] + 8);

		if (len > size - f->at[f->count] - FRAME_HEAD)
			break;
		f->at[f->count + 1] = f->at[f->count] + FRAME_HEAD + len;
		f->count++;
	}
	return f->count > 0;
}

/* Put `len` bytes in the place of [at, at + old); the input as it was if there is no room. */
static size_t splice(uint8_t *data, size_t size, size_t max, size_t at, size_t old, const uint8_t *new, size_t len)
{
	if (size - old + len > max)
		return size;
	memmove(data + at + len, data + at + old, size - at - old);
	memcpy(data + at, new, len);
	return size - old + len;
}

/* Let the length fields of IP (without VLAN tags or with one) say what the frame has. */
static void mend_ip(uint8_t *frame, size_t len)
{
	size_t l3 = len > 18 && be16(frame + 12) == 0x8100 ? 18 : 14;

	if (len >= l3 + 20 && be16(frame + l3 - 2) == 0x0800)
		put_be16(frame + l3 + 2, (uint16_t)(len - l3));
	if (len >= l3 + 40 && be16(frame + l3 - 2) == 0x86dd)
		put_be16(frame + l3 + 4, (uint16_t)(len - l3 - 40));
}

static size_t change_frame(const struct frames *f, uint8_t *data, size_t size, size_t max, size_t i, bool mend)
{
	size_t old = f->at[i + 1] - f->at[i], len = old - FRAME_HEAD, room = max - size + len;
	uint8_t copy[FRAME_HEAD + ROOM];
	uint32_t beyond = get(f, data + f->at[i] + 12) - (uint32_t)len;

	if (len > ROOM || !room)
		return size;
	memcpy(copy, data + f->at[i], old);
	len = LLVMFuzzerMutate(copy + FRAME_HEAD, len, room < ROOM ? room : ROOM);
	if (mend)
		mend_ip(copy + FRAME_HEAD, len);
	put(f, copy + 8, (uint32_t)len);
	put(f, copy + 12, (uint32_t)len + beyond);
	return splice(data, size, max, f->at[i], old, copy, FRAME_HEAD + len);
}

/* Frame i once more before frame j, or moved there, or only gone. */
static size_t move_frame(const struct frames *f, uint8_t *data, size_t size, size_t max, size_t i, size_t j, int how)
{
	size_t len = f->at[i + 1] - f->at[i], to = f->at[j];
	uint8_t copy[FRAME_HEAD + ROOM];

	if (len > sizeof(copy))
		return size;
	memcpy(copy, data + f->at[i], len);
	if (how > 0) {
		size = splice(data, size, max, f->at[i], len, copy, 0);
		to -= to > f->at[i] ? len : 0;
	}
	return how > 1 ? size : splice(data, size, max, to, 0, copy, len);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned int seed)
{
	struct frames f;
	uint64_t r = mix64(seed + 0x9e3779b97f4a7c15u);
	size_t i, j;

	if (r % 4 == 0 || max < size || !split(&f, data, size))
		return LLVMFuzzerMutate(data, size, max);
	i = (r >> 8 & 0xffff) % f.count;
	j = (r >> 24 & 0xffff) % f.count;
	if ((r >> 40) % 4)
		return change_frame(&f, data, size, max, i, r >> 44 & 1);
	return move_frame(&f, data, size, max, i, j, (int)((r >> 48) % 3));
}
