/* SPDX-License-Identifier: Apache-2.0 */
/* What is in a frame: TCP over IP or something else; checksums; and cutting what is larger than the cable takes. */
#include <string.h>

#include "wirebox.h"

#define ETH_HEADER 14
#define PROTO_TCP 6

static uint16_t be16(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

static uint32_t be32(const uint8_t *p)
{
	return (uint32_t)be16(p) << 16 | be16(p + 2);
}

static void put16(uint8_t *p, uint32_t value)
{
	p[0] = (uint8_t)(value >> 8);
	p[1] = (uint8_t)value;
}

static bool parse_tcp(struct frame *f, uint32_t at, uint32_t end)
{
	const uint8_t *tcp = f->data + at;
	uint32_t header;

	if (end - at < 20)
		return false;
	header = (uint32_t)(tcp[12] >> 4) * 4;
	if (header < 20 || header > end - at)
		return false;
	f->l4 = at;
	f->at = at + header;
	f->size = end - f->at;
	f->seq = be32(tcp + 4);
	f->flags = tcp[13];
	f->src.port = be16(tcp);
	f->dst.port = be16(tcp + 2);
	return true;
}

static bool parse_v4(struct frame *f, uint32_t at)
{
	const uint8_t *ip = f->data + at;
	uint32_t header, total, room = f->len - at;

	if (room < 20 || ip[0] >> 4 != 4)
		return false;
	header = (ip[0] & 15u) * 4;
	total = be16(ip + 2);
	if (header < 20 || total < header || total > room || ip[9] != PROTO_TCP)
		return false;
	if (be16(ip + 6) & 0x3fff) /* a fragment: more to come, or an offset */
		return false;
	f->l3 = at;
	memcpy(f->src.addr, ip + 12, 4);
	memcpy(f->dst.addr, ip + 16, 4);
	f->family = parse_tcp(f, at + header, at + total) ? 4 : 0;
	return f->family;
}

static bool parse_v6(struct frame *f, uint32_t at)
{
	const uint8_t *ip = f->data + at;
	uint32_t end, next = at + 40, room = f->len - at;
	uint8_t kind;

	if (room < 40 || ip[0] >> 4 != 6)
		return false;
	end = at + 40 + be16(ip + 4);
	if (end > f->len)
		return false;
	kind = ip[6];
	for (int i = 0; i < 8 && (kind == 0 || kind == 43 || kind == 60); i++) {
		if (end - next < 8)
			return false;
		kind = f->data[next];
		next += (f->data[next + 1] + 1u) * 8;
		if (next > end)
			return false;
	}
	if (kind != PROTO_TCP)
		return false;
	f->l3 = at;
	memcpy(f->src.addr, ip + 8, 16);
	memcpy(f->dst.addr, ip + 24, 16);
	f->family = parse_tcp(f, next, end) ? 6 : 0;
	return f->family;
}

/* Fill in *f; false, with family 0, if it is not whole TCP over IP. */
bool frame_parse(uint8_t *data, uint32_t len, struct frame *f)
{
	uint32_t at = ETH_HEADER;
	uint16_t proto;

	memset(f, 0, sizeof(*f));
	f->data = data;
	f->len = len;
	if (len < ETH_HEADER)
		return false;
	proto = be16(data + 12);
	for (int tags = 0; tags < 2 && (proto == 0x8100 || proto == 0x88a8); tags++) {
		if (len - at < 4)
			return false;
		proto = be16(data + at + 2);
		at += 4;
	}
	if (proto == 0x0800)
		return parse_v4(f, at);
	return proto == 0x86dd && parse_v6(f, at);
}

static uint32_t sum(uint32_t acc, const uint8_t *p, uint32_t n)
{
	uint64_t wide = acc;

	for (; n > 1; n -= 2, p += 2)
		wide += be16(p);
	if (n)
		wide += (uint32_t)p[0] << 8;
	while (wide >> 16)
		wide = (wide & 0xffff) + (wide >> 16);
	return (uint32_t)wide;
}

/* Make the TCP checksum (and that of IPv4) right. */
void frame_checksum(struct frame *f)
{
	uint8_t *ip = f->data + f->l3, *tcp = f->data + f->l4;
	uint32_t size = f->at + f->size - f->l4;
	uint32_t acc;

	put16(tcp + 16, 0);
	if (f->family == 4) {
		put16(ip + 10, 0);
		put16(ip + 10, ~sum(0, ip, (ip[0] & 15u) * 4));
		acc = sum(PROTO_TCP + size, ip + 12, 8);
	} else {
		acc = sum(PROTO_TCP + size, ip + 8, 32);
	}
	put16(tcp + 16, ~sum(acc, tcp, size));
}

/* A congested router marks what says by ECT that its sender listens (RFC 3168); false for a frame that does not. */
bool frame_mark(const struct frame *f)
{
	uint8_t *ip = f->data + f->l3;
	int shift = f->family == 6 ? 4 : 0;

	if (!(ip[1] >> shift & 3))
		return false;
	ip[1] |= (uint8_t)(3 << shift);
	if (f->family == 4) {
		put16(ip + 10, 0);
		put16(ip + 10, ~sum(0, ip, (ip[0] & 15u) * 4));
	}
	return true;
}

/* Complete a checksum that the sender left to its card: the field holds the sum of the pseudo header. */
bool frame_finish(uint8_t *data, uint32_t len, uint32_t start, uint32_t offset)
{
	uint32_t value;

	if (start > len || len - start < 2 || offset > len - start - 2)
		return false;
	value = ~sum(0, data + start, len - start) & 0xffff;
	put16(data + start + offset, value ? value : 0xffff); /* RFC 768: 0 would mean none */
	return true;
}

/*
 * Write segment `i` of a frame that TSO or GRO made larger than the cable takes, each with `size` bytes of payload:
 * as the card cuts it (tcp_gso_segment, net/ipv4/tcp_offload.c). Returns its length; 0 if there is no such segment.
 */
uint32_t frame_cut(const struct frame *f, uint32_t size, uint32_t i, uint8_t *out)
{
	uint64_t from = (uint64_t)i * size;
	uint32_t n, len;
	uint8_t *ip = out + f->l3, *tcp = out + f->l4;
	struct frame cut = *f;

	if (!size || from >= f->size)
		return 0;
	n = f->size - (uint32_t)from < size ? f->size - (uint32_t)from : size;
	len = f->at + n;
	memcpy(out, f->data, f->at);
	memcpy(out + f->at, f->data + f->at + from, n);
	if (f->family == 4) {
		put16(ip + 2, len - f->l3);
		put16(ip + 4, be16(ip + 4) + i);
	} else {
		put16(ip + 4, len - f->l3 - 40);
	}
	put16(tcp + 4, (f->seq + (uint32_t)from) >> 16);
	put16(tcp + 6, f->seq + (uint32_t)from);
	if (from + n < f->size)
		tcp[13] &= (uint8_t) ~(TCP_FIN | TCP_PSH);
	if (i)
		tcp[13] &= (uint8_t)~TCP_CWR;
	cut.data = out;
	cut.size = n;
	frame_checksum(&cut);
	return len;
}
