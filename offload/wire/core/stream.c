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

/* The offset in the stream, or -1 for a strange one. */
static int64_t offset_of(struct dir *d, const struct segment *s)
{
	bool syn = s->flags & TCP_SYN;
	uint32_t seq = s->seq + syn;
	int64_t off;

	if (!d->based) {
		d->based = true;
		d->base = seq;
		if (!syn)
			problem(&d->problems, NO_SYN, 0);
	}
	off = (int64_t)d->next + (int32_t)(seq - (uint32_t)(d->base + d->next));
	return off < 0 || off > (int64_t)d->next + STRANGE ? -1 : off;
}

static void note_flags(struct dir *d, const struct segment *s, uint64_t off)
{
	if (s->flags & TCP_RST)
		d->rst = true;
	if (s->flags & TCP_FIN && !d->fin) {
		d->fin = true;
		d->fin_at = off + s->plen;
	}
	if (s->plen) {
		d->conn->has_payload = true;
		d->data_end = d->data_end > off + s->plen ? d->data_end : off + s->plen;
		d->cut += s->plen - s->cap;
	}
}

/* Add one segment to its direction. */
void stream_add(struct wire *w, struct dir *d, const struct segment *s, const struct frame *f)
{
	int64_t off = offset_of(d, s);
	uint64_t again;

	if (off < 0) {
		d->strange++;
		return;
	}
	if (s->cap && (uint64_t)off > d->next) {
		if (d->ahead.ranges >= AHEAD_MAX || w->held >= REMEMBERED_MAX) {
			problem(&d->problems, TOO_MUCH_REORDER, (uint64_t)off);
			return;
		}
		d->out_of_order++;
	}
	note_flags(d, s, (uint64_t)off);
	if (!s->cap || d->conn->hopeless)
		return;
	again = lay(w, d, (uint64_t)off, f->at + s->at, s->cap, f->number);
	d->retransmitted += again;
	d->retransmissions += again > 0;
}
