/* SPDX-License-Identifier: Apache-2.0 */
/* What a receive completion says of its frame: headers, checksums, hash, VLAN, and what TLS made of it. */
#include "cx6.h"

enum { CQE_RX = 2 };
enum { L3_NONE, L3_IP6, L3_IP4 };
enum { L4_NONE, L4_TCP, L4_UDP, L4_TCP_EMPTY, L4_TCP_ACK };
enum { HASH_L3_BOTH = 3 << 6, HASH_L4_BOTH = 3 << 2 };

/* cqe->l4_l3_hdr_type of mlx5_cqe64 */
static uint8_t header_types(const struct frame *f, bool l4_right, bool stripped)
{
	uint8_t l3 = f->version == 4 ? L3_IP4 : f->version == 6 ? L3_IP6 : L3_NONE, l4 = L4_NONE;

	if (l4_right && f->protocol == 6)
		l4 = f->payload < f->end ? L4_TCP_ACK : L4_TCP_EMPTY;
	else if (l4_right)
		l4 = L4_UDP;
	return (uint8_t)(l4 << 4 | l3 << 2 | stripped);
}

/* The sum of the IP packet, which the driver takes for CHECKSUM_COMPLETE: neither MAC header nor VLAN tag is in it. */
static void put_sums(uint8_t *e, const struct arrival *a)
{
	const struct frame *f = a->frame;

	if (f->version)
		store16(e + 20, sum_fold(sum_add(f->data + f->l3, f->end - f->l3, 0)));
	e[28] = (uint8_t)(1 | (f->version ? 2 : 0) | (a->sums_right ? 4 : 0));
}

/* The completion of a frame; a filler of a striding queue has none. */
void rx_complete(struct card *c, struct rq *q, const struct arrival *a, uint32_t bytes, uint16_t id, uint16_t counter)
{
	uint8_t e[64] = { 0 };

	store16(e + 2, id);
	store32(e + 24, q->number);
	store32(e + 44, bytes);
	store16(e + 60, counter);
	if (a) {
		bool stripped = q->strips_vlan && a->frame->tagged;

		e[0] = (uint8_t)(a->mark << 3);
		c->truth.rx_tls_frames += a->mark == MARK_DECRYPTED;
		c->truth.rx_tls_bytes += a->mark == MARK_DECRYPTED ? a->frame->len : 0;
		store32(e + 12, a->hash);
		e[16] = a->hash ? HASH_L3_BOTH | HASH_L4_BOTH : 0;
		put_sums(e, a);
		e[29] = header_types(a->frame, a->sums_right, stripped);
		store16(e + 30, stripped ? a->frame->vlan : 0);
		store32(e + 56, a->tag);
	}
	completion(c, q->cq, e, CQE_RX);
}
