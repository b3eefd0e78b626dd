/* SPDX-License-Identifier: Apache-2.0 */
/* Which TCP segment is in this frame, if any? IPv4 and IPv6; every length is checked against the frame. */
#include "capture.h"

enum { STAMPS = 0x0101080a, STAMPS_LEN = 12 }; /* how options begin that are time stamps alone */
enum { PROTO_HOP = 0, PROTO_TCP = 6, PROTO_ROUTING = 43, PROTO_FRAGMENT = 44, PROTO_OPTIONS = 60, EXTENSIONS_MAX = 8 };

/* The IP packet: from l3 to end (offsets in the frame, as it was on the wire), TCP from l4 on. */
struct packet {
	int version;
	uint32_t l3, l4;
	uint64_t end;
};

/* Length 0 means "up to the end of the frame": bigger than the field can say (BIG TCP). */
static bool packet_end(const struct frame *f, struct packet *p, uint32_t claimed, bool unknown)
{
	p->end = unknown ? f->orig : (uint64_t)p->l3 + claimed;
	return p->end <= f->orig && p->end >= p->l4;
}

static enum kind parse_v4(const struct frame *f, struct packet *p, struct segment *s)
{
	const uint8_t *ip = f->at + p->l3;
	uint32_t header;

	if (f->cap < p->l3 + 20 || ip[0] >> 4 != 4)
		return KIND_OTHER;
	header = (ip[0] & 15u) * 4;
	p->l4 = p->l3 + header;
	if (header < 20 || f->cap < p->l4 || !packet_end(f, p, be16(ip + 2), be16(ip + 2) == 0))
		return KIND_OTHER;
	if (be16(ip + 6) & 0x3fff)
		return KIND_FRAGMENT;
	s->src = ip + 12;
	s->dst = ip + 16;
	s->alen = 4;
	return ip[9] == PROTO_TCP ? KIND_TCP : KIND_OTHER;
}

/* Walk the extension headers; p->l4 moves behind them. */
static enum kind extensions(const struct frame *f, struct packet *p, uint8_t next)
{
	for (int n = 0; next != PROTO_TCP; n++) {
		const uint8_t *e = f->at + p->l4;
		uint32_t len = 8;

		if (next != PROTO_HOP && next != PROTO_ROUTING && next != PROTO_OPTIONS && next != PROTO_FRAGMENT)
			return KIND_OTHER;
		if (n == EXTENSIONS_MAX || f->cap < p->l4 + 8 || p->end < p->l4 + 8)
			return KIND_OTHER;
		if (next == PROTO_FRAGMENT && be16(e + 2) & 0xfff9)
			return KIND_FRAGMENT;
		if (next != PROTO_FRAGMENT)
			len = (e[1] + 1u) * 8;
		next = e[0];
		p->l4 += len;
		if (f->cap < p->l4 || p->end < p->l4)
			return KIND_OTHER;
	}
	return KIND_TCP;
}

static enum kind parse_v6(const struct frame *f, struct packet *p, struct segment *s)
{
	const uint8_t *ip = f->at + p->l3;

	if (f->cap < p->l3 + 40 || ip[0] >> 4 != 6)
		return KIND_OTHER;
	p->l4 = p->l3 + 40;
	if (!packet_end(f, p, 40u + be16(ip + 4), be16(ip + 4) == 0))
		return KIND_OTHER;
	s->src = ip + 8;
	s->dst = ip + 24;
	s->alen = 16;
	return extensions(f, p, ip[6]);
}

/* IP and TCP headers without anything but time stamps or zeros, whose fields leave no room for a needle. */
static bool is_plain(const struct frame *f, const struct packet *p, uint32_t header)
{
	const uint8_t *options = f->at + p->l4 + 20;

	if (!link_is_tight(f) || p->l4 != p->l3 + (p->version == 4 ? 20u : 40u))
		return false;
	if (header == 20 + STAMPS_LEN && be32(options) == STAMPS)
		return true;
	for (; header > 20; header -= 4, options += 4)
		if (be32(options))
			return false;
	return true;
}

static enum kind parse_tcp(const struct frame *f, const struct packet *p, bool checksums, struct segment *s)
{
	const uint8_t *tcp = f->at + p->l4;
	uint32_t header;
	uint64_t captured;

	if (f->cap < p->l4 + 20 || p->end < p->l4 + 20)
		return KIND_OTHER;
	header = (tcp[12] >> 4) * 4u;
	if (header < 20 || f->cap < p->l4 + header || p->end < p->l4 + header)
		return KIND_OTHER;
	s->sport = be16(tcp);
	s->dport = be16(tcp + 2);
	s->seq = be32(tcp + 4);
	s->ack = be32(tcp + 8);
	s->plain = is_plain(f, p, header);
	s->flags = tcp[13];
	s->at = p->l4 + header;
	s->plen = p->end - s->at;
	captured = f->cap < p->end ? f->cap : p->end;
	s->cap = (uint32_t)(captured - s->at);
	if (checksums && !sums_right(f->at + p->l3, p->version, p->l4 - p->l3, tcp,
				     f->cap < p->end ? 0 : (size_t)(p->end - p->l4)))
		return KIND_BAD_SUM;
	return KIND_TCP;
}

/* May it be TCP, though it cannot be read as a segment? Then *s has its addresses. */
bool net_may_be_tcp(const struct frame *f, struct segment *s)
{
	const uint8_t *ip;
	uint32_t l3;
	int version;

	if (link_strip(f, &l3, &version) != KIND_TCP)
		return false;
	ip = f->at + l3;
	if (f->cap < l3 + (version == 4 ? 20 : 40) || ip[0] >> 4 != version)
		return false;
	s->alen = version == 4 ? 4 : 16;
	s->src = ip + (version == 4 ? 12 : 8);
	s->dst = s->src + s->alen;
	if (version == 4)
		return ip[9] == PROTO_TCP;
	return ip[6] == PROTO_TCP || ip[6] == PROTO_HOP || ip[6] == PROTO_ROUTING || ip[6] == PROTO_FRAGMENT ||
	       ip[6] == PROTO_OPTIONS;
}

/* Take a frame apart; *s is filled for KIND_TCP only. */
enum kind net_parse(const struct frame *f, bool checksums, struct segment *s)
{
	struct packet p = { 0 };
	enum kind kind = link_strip(f, &p.l3, &p.version);

	if (kind == KIND_TCP)
		kind = p.version == 4 ? parse_v4(f, &p, s) : parse_v6(f, &p, s);
	if (kind == KIND_TCP)
		kind = parse_tcp(f, &p, checksums, s);
	return kind;
}
