/* SPDX-License-Identifier: Apache-2.0 */
/* A frame of a WQE: its inline start and its pieces in guest memory; sealed, cut into segments, and sent. */
#include "cx6.h"

/* mlx5_wqe_eth_seg begins at 16 */
enum { SUMS = 20, MSS = 22, INLINE_LEN = 28, INLINE = 30, DATA = 32, DUMP_DATA = 16 };
enum { SUM_L3 = 0x40, SUM_L4 = 0x80, INSERT_VLAN = 0x8000 };
enum { TCP_FIN_PSH = 0x09, TCP_CWR = 0x80 };

/* The pieces that data segments name, behind the first `len` bytes. The new length, or 0 if one is not there. */
static uint32_t gather(struct card *c, const struct wqe *w, uint32_t at, uint8_t *to, uint32_t len)
{
	for (; at + 16 <= w->len; at += 16) {
		uint32_t part = load32(w->byte + at) & 0x7fffffff;
		const uint8_t *from = guest_at(&c->guest, load64(w->byte + at + 8), part);

		if (!part)
			continue;
		if (!from || part > FRAME_MAX - len)
			return 0;
		memcpy(to + len, from, part);
		len += part;
	}
	return len;
}

static uint32_t insert_vlan(uint8_t *frame, uint32_t len, const uint8_t *tag)
{
	if (len < 14 || len > FRAME_MAX - 4)
		return 0;
	memmove(frame + 16, frame + 12, len - 12);
	store16(frame + 12, 0x8100);
	memcpy(frame + 14, tag, 2);
	return len + 4;
}

static uint32_t build(struct card *c, const struct wqe *w, uint8_t *frame)
{
	uint32_t begin = load16(w->byte + INLINE_LEN), at = DATA, len = 0;

	if (w->len < DATA)
		return 0;
	if (begin & INSERT_VLAN)
		return insert_vlan(frame, gather(c, w, DATA, frame, 0), w->byte + INLINE);
	if (begin > w->len - INLINE)
		return 0;
	if (begin) {
		memcpy(frame, w->byte + INLINE, begin);
		len = begin;
		at = (INLINE + begin + 15) & ~15u;
	}
	return gather(c, w, at, frame, len);
}

static void set_length(struct frame *f, uint32_t payload)
{
	uint32_t size = f->payload - f->l3 + payload;

	if (f->version == 4)
		store16(f->data + f->l3 + 2, size);
	else
		store16(f->data + f->l3 + 4, size - 40);
	f->end = f->len = f->payload + payload;
}

/* The bad card's checksum of TCP is one bit off. */
static void fill_sums(struct card *c, const struct frame *f, bool l3, bool l4)
{
	frame_fill_sums(f, l3, l4);
	if (l4 && f->protocol == 6 && fault_hit(c, FAULT_TX_SUM))
		f->data[f->l4 + 16] ^= 1;
}

/* One segment of a long frame: flags that belong to the first or the last one are only there. */
static void send_segment(struct card *c, const struct frame *whole, uint32_t at, uint32_t size)
{
	static uint8_t data[FRAME_MAX];
	struct frame f = *whole;
	uint32_t number = at / (size ? size : 1), left = whole->end - whole->payload - at, part = left < size ? left : size;
	uint8_t *tcp = data + f.l4;

	f.data = data;
	memcpy(data, whole->data, f.payload);
	memcpy(data + f.payload, whole->data + f.payload + at, part);
	set_length(&f, part);
	store32(tcp + 4, load32(tcp + 4) + at);
	if (part < left)
		tcp[13] &= (uint8_t)~TCP_FIN_PSH;
	if (at)
		tcp[13] &= (uint8_t)~TCP_CWR;
	if (f.version == 4)
		store16(data + f.l3 + 4, load16(data + f.l3 + 4) + number);
	fill_sums(c, &f, true, true);
	wire_send(c, data, f.len);
}

static void parse_sent(struct frame *f, uint8_t *data, uint32_t len)
{
	frame_parse(f, data, len);
	frame_skip_options(f);
}

/* The IP header of a TSO frame may say nothing of its length: the frame's own counts. */
static bool parse_long(struct frame *f, uint8_t *data, uint32_t len)
{
	parse_sent(f, data, len);
	if (f->l3 && len > f->l3 + 40 && !f->l4) {
		uint32_t size = len - f->l3;

		if (data[f->l3] >> 4 == 4)
			store16(data + f->l3 + 2, size);
		else
			store16(data + f->l3 + 4, size - 40);
		parse_sent(f, data, len);
	}
	return f->protocol == 6 && f->end == len;
}

bool send_frame(struct card *c, const struct wqe *w, bool tso)
{
	static uint8_t data[FRAME_MAX];
	uint32_t len = build(c, w, data), mss = tso ? load16(w->byte + MSS) : 0;
	struct frame f;

	if (len < 14)
		return false;
	if (!mss)
		parse_sent(&f, data, len);
	else if (!parse_long(&f, data, len))
		return false;
	if (w->target && !tls_tx(c, w->target, &f, mss))
		return true;
	if (!mss) {
		fill_sums(c, &f, w->byte[SUMS] & SUM_L3, w->byte[SUMS] & SUM_L4);
		wire_send(c, data, len);
		return true;
	}
	for (uint32_t at = 0; at < f.end - f.payload; at += mss)
		send_segment(c, &f, at, mss);
	return true;
}

/* How many bytes of the first piece lie in the page that it begins in. */
static uint32_t in_page(const struct wqe *w)
{
	return 4096 - (load64(w->byte + DUMP_DATA + 8) & 4095);
}

bool send_dump(struct card *c, const struct wqe *w)
{
	static uint8_t data[FRAME_MAX];
	uint32_t len = gather(c, w, DUMP_DATA, data, 0);

	if (len)
		tls_dump(c, w->target, data, len, in_page(w));
	return len > 0;
}
