/* SPDX-License-Identifier: Apache-2.0 */
/* Big-endian fields of a message in memory that a stranger wrote: nothing outside the message is read or written. */
#ifndef CX6_BITS_H
#define CX6_BITS_H

#include <stdint.h>
#include <string.h>

/* A piece of memory and how long it is; an empty one takes writes and gives zeros. */
struct view {
	uint8_t *at;
	uint32_t len;
};

/* Where a field begins, in bits from the start of its structure, and how wide it is; layout.h has them all. */
struct field {
	uint32_t bit, bits;
};

#define F(type, name) ((struct field){ type##__##name })
#define A(type, name) F(type, name) /* an array at the end of its structure */

static inline uint16_t load16(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

static inline uint32_t load24(const uint8_t *p)
{
	return (uint32_t)p[0] << 16 | (uint32_t)p[1] << 8 | p[2];
}

static inline uint32_t load32(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | load24(p + 1);
}

static inline uint64_t load64(const uint8_t *p)
{
	return (uint64_t)load32(p) << 32 | load32(p + 4);
}

static inline void store16(uint8_t *p, uint32_t v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}

static inline void store32(uint8_t *p, uint32_t v)
{
	store16(p, v >> 16);
	store16(p + 2, v);
}

static inline void store64(uint8_t *p, uint64_t v)
{
	store32(p, (uint32_t)(v >> 32));
	store32(p + 4, (uint32_t)v);
}

static inline int view_has(struct view v, uint32_t at, uint32_t len)
{
	return at <= v.len && len <= v.len - at;
}

static inline struct view view_from(struct view v, uint32_t at)
{
	return at <= v.len ? (struct view){ v.at + at, v.len - at } : (struct view){ NULL, 0 };
}

/* The structure that begins at a field, and all that follows it. */
static inline struct view view_at(struct view v, struct field f)
{
	return view_from(v, f.bit / 8);
}

static inline uint32_t field_mask(struct field f)
{
	return f.bits >= 32 ? UINT32_MAX : (1u << f.bits) - 1;
}

static inline uint32_t get(struct view v, struct field f)
{
	uint32_t word = f.bit / 32 * 4;

	if (!view_has(v, word, 4))
		return 0;
	return load32(v.at + word) >> (32 - f.bit % 32 - f.bits) & field_mask(f);
}

static inline uint64_t get64(struct view v, struct field f)
{
	return view_has(v, f.bit / 8, 8) ? load64(v.at + f.bit / 8) : 0;
}

static inline void set(struct view v, struct field f, uint32_t value)
{
	uint32_t word = f.bit / 32 * 4, shift = 32 - f.bit % 32 - f.bits;

	if (!view_has(v, word, 4))
		return;
	store32(v.at + word,
		(load32(v.at + word) & ~(field_mask(f) << shift)) | (value & field_mask(f)) << shift);
}

static inline void set64(struct view v, struct field f, uint64_t value)
{
	if (view_has(v, f.bit / 8, 8))
		store64(v.at + f.bit / 8, value);
}

static inline void copy_in(struct view v, uint32_t at, const void *from, uint32_t len)
{
	if (view_has(v, at, len))
		memcpy(v.at + at, from, len);
}

#endif
