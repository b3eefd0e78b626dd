/* SPDX-License-Identifier: Apache-2.0 */
/* Which frames are in the file? pcap of either byte order and either clock; pcapng.c has the other format. */
#include <stdlib.h>

#include "capture.h"

enum { PCAP_HEADER = 24, PCAP_FRAME = 16, PCAPNG_HEADER = 12, AHEAD = 4 };

static bool is_pcap(const uint8_t *p, bool *big)
{
	uint32_t magic = be32(p);

	*big = magic == 0xa1b2c3d4 || magic == 0xa1b23c4d;
	return *big || magic == 0xd4c3b2a1 || magic == 0x4d3cb2a1;
}

static bool is_pcapng(const uint8_t *p)
{
	return be32(p) == 0x0a0d0d0a && (be32(p + 8) == 0x1a2b3c4d || be32(p + 8) == 0x4d3c2b1a);
}

/* Look at the beginning of the file: RC_OK, or RC_INPUT if it is no capture. */
int reader_open(struct reader *r, struct bytes file, struct failure *f)
{
	*r = (struct reader){ .pos = file.at, .end = file.at + file.len };
	if (file.len >= PCAP_HEADER && is_pcap(file.at, &r->big)) {
		/* the upper half may tell of a frame check sequence (draft-ietf-opsawg-pcap) */
		r->link = (r->big ? be32(file.at + 20) : le32(file.at + 20)) & 0xffff;
		r->pos += PCAP_HEADER;
		return RC_OK;
	}
	r->ng = file.len >= PCAPNG_HEADER && is_pcapng(file.at);
	if (!r->ng)
		return failed(f, RC_INPUT, "capture: neither pcap nor pcapng (%zu bytes)", file.len);
	return RC_OK;
}

static bool pcap_next(struct reader *r, struct frame *f)
{
	size_t left = (size_t)(r->end - r->pos);

	if (left < PCAP_FRAME) {
		r->damaged = left > 0;
		return false;
	}
	f->cap = r->big ? be32(r->pos + 8) : le32(r->pos + 8);
	f->orig = r->big ? be32(r->pos + 12) : le32(r->pos + 12);
	f->link = r->link;
	if (f->cap > FRAME_MAX || f->cap > left - PCAP_FRAME) {
		r->damaged = true;
		return false;
	}
	f->at = r->pos + PCAP_FRAME;
	r->pos += PCAP_FRAME + f->cap;
	return true;
}

/* The next headers are far from this one: where they are is known if frames have the same size. A guess that is wrong,
 * or beyond the end, does no harm. */
static void prefetch(const struct reader *r, const struct frame *f)
{
	uintptr_t at = (uintptr_t)r->pos + AHEAD * ((uintptr_t)r->pos - (uintptr_t)f->at + PCAP_FRAME);

	__builtin_prefetch(r->pos);
	__builtin_prefetch(r->pos + 64);
	__builtin_prefetch((const void *)at);
	__builtin_prefetch((const void *)(at + 64));
}

/* The next frame; false at the end, or where the file is damaged. */
bool reader_next(struct reader *r, struct frame *f)
{
	if (!(r->ng ? pcapng_next(r, f) : pcap_next(r, f)))
		return false;
	prefetch(r, f);
	f->number = ++r->frames;
	return true;
}

void reader_close(struct reader *r)
{
	free(r->interfaces);
	r->interfaces = NULL;
}
