/* SPDX-License-Identifier: Apache-2.0 */
/* The headers of a frame, and its checksums; a length that a header claims is held against the frame's own. */
#include "cx6.h"

enum { ETH = 14, VLAN_TAG = 4, TCP = 6, UDP = 17, DESTINATION = 60 };
enum { TYPE_VLAN = 0x8100, TYPE_IP4 = 0x0800, TYPE_IP6 = 0x86dd };

uint32_t sum_add(const uint8_t *p, uint32_t len, uint32_t sum)
{
	uint64_t total = sum;

	for (uint32_t i = 0; i + 1 < len; i += 2)
		total += load16(p + i);
	if (len & 1)
		total += (uint32_t)p[len - 1] << 8;
	while (total >> 32)
		total = (total & UINT32_MAX) + (total >> 32);
	return (uint32_t)total;
}

uint16_t sum_fold(uint32_t sum)
{
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)sum;
}

/* TCP or UDP, if the packet has all of its header. */
static void parse_l4(struct frame *f, uint32_t at, uint8_t protocol)
{
	uint32_t room = f->end > at ? f->end - at : 0, head = 8;

	if (protocol == TCP && room >= 20)
		head = (uint32_t)(f->data[at + 12] >> 4) * 4;
	else if (protocol != UDP)
		return;
	if (head > room || (protocol == TCP && head < 20))
		return;
	f->protocol = protocol;
	f->l4 = at;
	f->payload = at + head;
}

static void parse_ip4(struct frame *f)
{
	const uint8_t *p = f->data + f->l3;
	uint32_t room = f->len - f->l3, head, total;

	if (room < 20 || p[0] >> 4 != 4)
		return;
	head = (p[0] & 15u) * 4;
	total = load16(p + 2);
	if (head < 20 || total < head || total > room)
		return;
	f->version = 4;
	f->end = f->l3 + total;
	f->fragment = (load16(p + 6) & 0x3fff) != 0;
	if (!f->fragment)
		parse_l4(f, f->l3 + head, p[9]);
}

static void parse_ip6(struct frame *f)
{
	const uint8_t *p = f->data + f->l3;
	uint32_t room = f->len - f->l3, total;

	if (room < 40 || p[0] >> 4 != 6)
		return;
	total = 40 + (uint32_t)load16(p + 4);
	if (total > room)
		return;
	f->version = 6;
	f->end = f->l3 + total;
	parse_l4(f, f->l3 + 40, p[6]);
}

/* Options for the destination may be before TCP: the driver counts them with the headers. */
void frame_skip_options(struct frame *f)
{
	uint32_t at = f->l3 + 40;

	if (f->version == 6 && !f->l4 && f->data[f->l3 + 6] == DESTINATION && f->end >= at + 8)
		parse_l4(f, at + (f->data[at + 1] + 1u) * 8, f->data[at]);
}

void frame_parse(struct frame *f, uint8_t *data, uint32_t len)
{
	*f = (struct frame){ .data = data, .len = len, .end = len };
	if (len < ETH)
		return;
	f->ethertype = load16(data + 12);
	f->l3 = ETH;
	if (f->ethertype == TYPE_VLAN && len >= ETH + VLAN_TAG) {
		f->tagged = true;
		f->vlan = load16(data + 14);
		f->ethertype = load16(data + 16);
		f->l3 += VLAN_TAG;
	}
	if (f->ethertype == TYPE_IP4)
		parse_ip4(f);
	else if (f->ethertype == TYPE_IP6)
		parse_ip6(f);
}

static uint32_t pseudo_sum(const struct frame *f)
{
	uint32_t sum = f->protocol + (f->end - f->l4);

	return f->version == 4 ? sum_add(f->data + f->l3 + 12, 8, sum) : sum_add(f->data + f->l3 + 8, 32, sum);
}

/* Whether the TCP or UDP checksum is right; a datagram may have none. */
bool frame_l4_right(const struct frame *f)
{
	if (f->protocol == UDP && !load16(f->data + f->l4 + 6))
		return true;
	return sum_fold(sum_add(f->data + f->l4, f->end - f->l4, pseudo_sum(f))) == 0xffff;
}

static void fill_l3(const struct frame *f)
{
	uint8_t *p = f->data + f->l3;

	store16(p + 10, 0);
	store16(p + 10, (uint16_t)~sum_fold(sum_add(p, (p[0] & 15u) * 4, 0)));
}

static void fill_l4(const struct frame *f)
{
	uint8_t *at = f->data + f->l4 + (f->protocol == TCP ? 16 : 6);
	uint16_t sum;

	store16(at, 0);
	sum = (uint16_t)~sum_fold(sum_add(f->data + f->l4, f->end - f->l4, pseudo_sum(f)));
	store16(at, f->protocol == UDP && !sum ? 0xffff : sum);
}

void frame_fill_sums(const struct frame *f, bool l3, bool l4)
{
	if (l3 && f->version == 4)
		fill_l3(f);
	if (l4 && f->l4)
		fill_l4(f);
}
