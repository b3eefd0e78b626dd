/* SPDX-License-Identifier: Apache-2.0 */
/* Would a receiver have dropped this packet? The checksums of the IPv4 header and of TCP (RFC 1071). */
#include "capture.h"

static uint64_t sum(const uint8_t *p, size_t len, uint64_t s)
{
	for (; len >= 2; p += 2, len -= 2)
		s += be16(p);
	return len ? s + (uint64_t)(p[0] << 8) : s;
}

static bool comes_out(uint64_t s)
{
	while (s >> 16)
		s = (s & 0xffff) + (s >> 16);
	return s == 0xffff;
}

/* `len` bytes of TCP from l4 on; 0 if not all of it was captured: then it is unknown. */
bool sums_right(const uint8_t *l3, int version, uint32_t header, const uint8_t *l4, size_t len)
{
	uint64_t s = 6 + (uint64_t)(len & 0xffff) + (len >> 16);

	if (version == 4 && !comes_out(sum(l3, header, 0)))
		return false;
	if (!len)
		return true;
	s = version == 4 ? sum(l3 + 12, 8, s) : sum(l3 + 8, 32, s);
	return comes_out(sum(l4, len, s));
}
