/* SPDX-License-Identifier: Apache-2.0 */
/* Which bytes did this direction of a connection carry? The first captured byte at an offset is the stream; every later
 * one is compared with it. */
#include <stdlib.h>

#include "core.h"

/* What was captured before, from off on, contiguous or not yet. */
static size_t known_bytes(const struct dir *d, uint64_t off, uint8_t *out, size_t len)
{
	size_t done = stream_copy(d, off, out, len);
	const struct held *h;

	while (done < len && (h = ahead_after(&d->ahead, off + done)) && h->off <= off + done) {
		size_t skip = (size_t)(off + done - h->off), n = smaller(h->len - skip, len - done);

		memcpy(out + done, h->at + skip, n);
		done += n;
	}
	return done;
}

/* Bytes that were captured before, at `old`: the same again? `left`: how many bytes of the segment begin at `at`. */
static void compare(struct dir *d, uint64_t off, const uint8_t *old, const uint8_t *at, size_t len, size_t left,
		    uint64_t frame)
{
	struct retransmission *r = d->resent;

	if (memcmp(old, at, len) == 0 || (r && r->frame != frame))
		return;
	for (size_t i = 0; i < len; i++) {
		if (old[i] == at[i])
			continue;
		if (!r) {
			r = d->resent = grab(sizeof(*r));
			*r = (struct retransmission){ .offset = off + i, .frame = frame, .zeros = true };
			r->len = (uint8_t)smaller(16, left - i);
			memcpy(r->got, at + i, r->len);
			r->len = (uint8_t)known_bytes(d, off + i, r->expected, r->len);
		}
		r->bytes++;
		r->bits += (unsigned int)__builtin_popcount(old[i] ^ at[i]);
		r->zeros = r->zeros && !at[i];
	}
}

/* Compare with what is contiguous; the number of bytes, at most len, that this range had. */
static size_t compare_stream(struct dir *d, uint64_t off, const uint8_t *at, size_t len, size_t left, uint64_t frame)
{
	const uint8_t *old;
	struct place p;
	size_t n;

	if (!ranges_find(d, off, &p)) {
		problem(&d->problems, OLD_RETRANSMISSION, off);
		return len;
	}
	old = ranges_at(d, p, off, &n);
	n = smaller(n, len);
	compare(d, off, old, at, n, left, frame);
	return n;
}

static void extend(struct wire *w, struct dir *d, const uint8_t *at, uint64_t len)
{
	struct held h;

	ranges_append(w, d, d->next, at);
	d->next += len;
	while (ahead_pop(&d->ahead, d->next, &h)) {
		w->held--;
		ranges_append(w, d, d->next, h.at);
		d->next += h.len;
	}
}

/* Bytes that nobody has seen yet. */
static void put(struct wire *w, struct dir *d, uint64_t off, const uint8_t *at, uint64_t len)
{
	struct held h = { off, at, (uint32_t)len };

	if (off == d->next) {
		extend(w, d, at, len);
		return;
	}
	ahead_insert(&d->ahead, &h);
	w->held++;
}

/* Lay a segment's captured bytes into the stream; how many of them were there before. */
static uint64_t lay(struct wire *w, struct dir *d, uint64_t off, const uint8_t *at, size_t left, uint64_t frame)
{
	uint64_t again = 0;

	while (left) {
		const struct held *h = off < d->next ? NULL : ahead_after(&d->ahead, off);
		size_t n = left;

		if (off < d->next) {
			n = compare_stream(d, off, at, (size_t)(d->next - off < n ? d->next - off : n), left, frame);
			again += n;
		} else if (h && h->off <= off) {
			n = smaller(n, (size_t)(h->off + h->len - off));
			compare(d, off, h->at + (off - h->off), at, n, left, frame);
			again += n;
		} else {
			if (h && h->off - off < n)
				n = (size_t)(h->off - off);
			put(w, d, off, at, n);
		}
		off += n, at += n, left -= n;
	}
	return again;
}

/* The offset of a sequence number: the one nearest to the end of what is contiguous. */
static int64_t place_of(const struct dir *d, uint32_t seq)
{
	return (int64_t)d->next + (int32_t)(seq - (uint32_t)(d->base + d->next));
}

static int64_t offset_of(struct dir *d, const struct segment *s)
{
	bool syn = s->flags & TCP_SYN;
	uint32_t seq = s->seq + syn;

	if (!d->based) {
		d->based = true;
		d->base = seq;
		if (!syn)
			problem(&d->problems, NO_SYN, 0);
	}
	return place_of(d, seq);
}

/* The other side has this much of the direction; more than was sent counts for nothing. */
static void acknowledge(struct dir *d, uint32_t ack)
{
	uint64_t end = d->fin && d->fin_at + 1 > d->data_end ? d->fin_at + 1 : d->data_end;
	int64_t off = d->based ? place_of(d, ack) : -1;

	if (off >= 0 && (uint64_t)off <= end && (uint64_t)off >= d->acked)
		d->acked = (uint64_t)off + 1;
}

/* The one byte before what is acknowledged, which may be any (RFC 1122 section 4.2.3.6). */
static bool keeps_alive(const struct dir *d, const struct segment *s, int64_t off)
{
	return s->plen == 1 && !(s->flags & (TCP_SYN | TCP_FIN | TCP_RST)) && d->acked && off + 2 == (int64_t)d->acked &&
	       off < (int64_t)d->next;
}

static bool too_much(const struct wire *w, const struct dir *d, const struct segment *s, int64_t off)
{
	return s->cap && off > (int64_t)d->next && (d->ahead.ranges >= AHEAD_MAX || w->held >= REMEMBERED_MAX);
}

/* Has it no place in the stream? Then nothing compares its payload. */
static bool left_out(struct wire *w, struct dir *d, const struct segment *s, int64_t off, uint64_t frame)
{
	if (s->flags & TCP_SYN && off) {
		problem(&d->problems, SECOND_SYN, frame);
	} else if (keeps_alive(d, s, off)) {
		return true;
	} else if (off < 0 || off > (int64_t)d->next + STRANGE) {
		d->strange++;
		if (s->plen)
			problem(&d->problems, STRAY_DATA, frame);
	} else if (s->flags & TCP_RST && s->plen) {
		d->rst = true;
		problem(&d->problems, STRAY_DATA, frame);
	} else if (too_much(w, d, s, off)) {
		problem(&d->problems, TOO_MUCH_REORDER, (uint64_t)off);
	} else {
		return false;
	}
	return true;
}

/* The first FIN sets the end, and every other must be there too. */
static void note_fin(struct dir *d, uint64_t end)
{
	if (!d->fin)
		d->fin_at = end;
	d->fin = true;
	if (d->fin_at != end)
		problem(&d->problems, SECOND_FIN, end);
}

static void note_flags(struct dir *d, const struct segment *s, uint64_t off)
{
	if (s->flags & TCP_RST)
		d->rst = true;
	if (s->flags & TCP_URG)
		problem(&d->problems, URGENT, off);
	if (s->flags & TCP_FIN)
		note_fin(d, off + s->plen);
	if (s->plen) {
		d->conn->has_payload = true;
		d->data_end = d->data_end > off + s->plen ? d->data_end : off + s->plen;
		d->cut += s->plen - s->cap;
		if (s->cap < s->plen)
			problem(&d->problems, CUT_SEGMENT, off + s->cap);
	}
}

/* Add one segment to its direction; false if it was left out. */
bool stream_add(struct wire *w, struct dir *d, const struct segment *s, const struct frame *f)
{
	int64_t off = offset_of(d, s);
	uint64_t again;

	if (s->flags & TCP_ACK)
		acknowledge(peer_of(d), s->ack);
	if (left_out(w, d, s, off, f->number))
		return false;
	d->out_of_order += s->cap && (uint64_t)off > d->next;
	note_flags(d, s, (uint64_t)off);
	if (!s->cap || d->conn->hopeless)
		return true;
	again = lay(w, d, (uint64_t)off, f->at + s->at, s->cap, f->number);
	d->retransmitted += again;
	d->retransmissions += again > 0;
	return true;
}
