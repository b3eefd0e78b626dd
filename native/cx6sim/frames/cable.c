/* SPDX-License-Identifier: Apache-2.0 */
/* What went over the cable, as the ports at its two ends count it. */
#include "cx6.h"

/* the most bytes of each size that the group of RFC 2819 tells, and NVIDIA's four beyond it */
static const uint32_t most[FRAME_SIZES] = { 64, 127, 255, 511, 1023, 1518, 2047, 4095, 8191, 10239 };

static bool is_broadcast(const uint8_t *mac)
{
	static const uint8_t all[6] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff };

	return !memcmp(mac, all, sizeof(all));
}

static void count_frame(struct moved *m, const uint8_t *data, uint32_t len)
{
	m->frames++;
	m->bytes += len;
	if (is_broadcast(data))
		m->broadcast++;
	else if (data[0] & 1)
		m->multicast++;
}

/* A frame is at least as long as wire_send makes it. */
void cable_count(struct card *from, struct card *to, const uint8_t *data, uint32_t len)
{
	uint32_t size = 0;

	count_frame(&from->cable.sent, data, len);
	count_frame(&to->cable.came, data, len);
	while (size < FRAME_SIZES - 1 && len + FCS > most[size])
		size++;
	to->cable.sizes[size]++;
}
