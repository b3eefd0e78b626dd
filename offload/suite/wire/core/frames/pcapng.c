/* SPDX-License-Identifier: Apache-2.0 */
/* pcapng: which frame is in the next block that has one? (draft-ietf-opsawg-pcapng, sections 3 and 4, appendix A) */
#include "capture.h"

enum {
	BLOCK_SECTION = 0x0a0d0d0a, BLOCK_INTERFACE = 1, BLOCK_OLD_PACKET = 2, BLOCK_SIMPLE = 3, BLOCK_PACKET = 6,
	BLOCK_MIN = 12, INTERFACES_MAX = 1 << 20,
};

struct block {
	uint32_t type;
	const uint8_t *body;
	size_t len;
};

static uint32_t u32(const struct reader *r, const uint8_t *p)
{
	return r->big ? be32(p) : le32(p);
}

static uint16_t u16(const struct reader *r, const uint8_t *p)
{
	return r->big ? be16(p) : le16(p);
}

/* A section says its byte order in its body; it forgets the interfaces of the one before. */
static bool new_section(struct reader *r)
{
	uint32_t magic = be32(r->pos + 8);

	r->big = magic == 0x1a2b3c4d;
	r->count = 0;
	return r->big || magic == 0x4d3c2b1a;
}

static bool next_block(struct reader *r, struct block *b)
{
	size_t left = (size_t)(r->end - r->pos);
	uint32_t total;

	if (left < BLOCK_MIN)
		return false;
	b->type = u32(r, r->pos);
	if (b->type == BLOCK_SECTION && !new_section(r))
		return false;
	total = u32(r, r->pos + 4);
	if (total < BLOCK_MIN || total % 4 || total > left)
		return false;
	b->body = r->pos + 8;
	b->len = total - BLOCK_MIN;
	r->pos += total;
	return true;
}

static bool add_interface(struct reader *r, const struct block *b)
{
	if (b->len < 8 || r->count == INTERFACES_MAX)
		return false;
	if (r->count == r->room) {
		r->room = r->room ? r->room * 2 : 4;
		r->interfaces = regrab(r->interfaces, r->room * sizeof(*r->interfaces));
	}
	r->interfaces[r->count++] = (struct interface){ u16(r, b->body), u32(r, b->body + 4) };
	return true;
}

static bool packet(const struct reader *r, const struct block *b, uint32_t interface, struct frame *f)
{
	if (b->len < 20 || interface >= r->count)
		return false;
	f->link = r->interfaces[interface].link;
	f->cap = u32(r, b->body + 12);
	f->orig = u32(r, b->body + 16);
	f->at = b->body + 20;
	return f->cap <= FRAME_MAX && f->cap <= b->len - 20;
}

/* A simple packet tells only the original length; the interface's limit tells what was kept of it. */
static bool simple(const struct reader *r, const struct block *b, struct frame *f)
{
	uint32_t snap;

	if (b->len < 4 || !r->count)
		return false;
	snap = r->interfaces[0].snap;
	f->link = r->interfaces[0].link;
	f->orig = u32(r, b->body);
	f->cap = snap && snap < f->orig ? snap : f->orig;
	f->at = b->body + 4;
	return f->cap <= FRAME_MAX && f->cap <= b->len - 4;
}

/* The next frame; false at the end (`damaged` unless the file ends with a block). */
bool pcapng_next(struct reader *r, struct frame *f)
{
	struct block b;

	while (r->pos < r->end) {
		bool ok = next_block(r, &b);

		if (ok && b.type == BLOCK_PACKET)
			ok = b.len >= 4 && packet(r, &b, u32(r, b.body), f);
		else if (ok && b.type == BLOCK_OLD_PACKET)
			ok = b.len >= 4 && packet(r, &b, u16(r, b.body), f);
		else if (ok && b.type == BLOCK_SIMPLE)
			ok = simple(r, &b, f);
		else if (ok && b.type == BLOCK_INTERFACE && add_interface(r, &b))
			continue;
		else if (ok && b.type != BLOCK_INTERFACE)
			continue;
		else
			ok = false;
		r->damaged = !ok;
		return ok;
	}
	return false;
}
