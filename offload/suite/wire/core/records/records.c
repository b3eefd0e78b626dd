/* SPDX-License-Identifier: Apache-2.0 */
/* Which records does the stream of a direction consist of? They are split as soon as they are complete. */
#include "core.h"

static bool plausible(const uint8_t head[HEAD])
{
	return head[0] >= CHANGE_CIPHER && head[0] <= APPLICATION && head[1] == 3 && head[2] <= 4 &&
	       be16(head + 3) <= RECORD_MAX;
}

/* There is no answer on a record that protection may depend on before both hellos are known. */
static bool has_to_wait(const struct dir *d, const struct record *r)
{
	return d->conn->state == UNDECIDED && d->hello == HELLO_DONE &&
	       (r->head[0] == CHANGE_CIPHER || r->head[0] == APPLICATION);
}

/* One byte of value 1; in TLS 1.3 during the handshake only. */
static void change_cipher(struct dir *d, const struct record *r)
{
	struct place p = d->place;
	uint64_t off = r->off;
	uint8_t one = 0;

	if (r->len == 1) {
		stream_skip(d, &off, &p, HEAD);
		stream_take(d, off, p, &one, 1);
	}
	if (one != 1 || (d->conn->state == KEYED && d->conn->version == 13 && d->phase == PHASE_DATA))
		problem(&d->problems, CHANGE_CIPHER_SPEC, r->off);
}

static void clear_record(struct wire *w, struct dir *d, const struct record *r)
{
	d->seq += d->phase == PHASE_CLEAR;
	if (r->head[0] == CHANGE_CIPHER && d->hello == HELLO_OPEN)
		d->late_hello = true; /* in TLS 1.2 protection has begun: what follows is no hello */
	if (r->head[0] == CHANGE_CIPHER)
		change_cipher(d, r);
	if (r->head[0] == ALERT)
		problem(&d->problems, CLEAR_ALERT, r->off);
	if (r->head[0] == APPLICATION || (r->head[0] == HANDSHAKE && r->off >= CLEAR_MAX))
		problem(&d->problems, CLEAR_RECORD, r->off);
	if (r->head[0] == HANDSHAKE)
		hello_feed(w, d, r);
	if (d->conn->state == KEYED)
		canary_record(w, d, r, r->off + HEAD, r->head[0] == HANDSHAKE);
}

/* Only counted; but a first message that is too long is named even if the peer's was none. */
static void blind_record(struct wire *w, struct dir *d, const struct record *r)
{
	d->seq++;
	if (r->head[0] == HANDSHAKE && d->hello == HELLO_OPEN)
		hello_feed(w, d, r);
}

/* After the first protected record, whatever is not type 23 has a wrong type; type 20 may be anywhere. */
static bool is_protected13(const struct dir *d, uint8_t type)
{
	return type == APPLICATION || (d->protected && type != CHANGE_CIPHER);
}

/* Protection begins behind a whole message only (RFC 8446 section 5.1). */
static void whole_message(struct dir *d, const struct record *r)
{
	if (!d->protected && d->clear_messages.have && !has_problem(&d->problems, HANDSHAKE_TOO_LONG))
		problem(&d->problems, CLEAR_RECORD, r->off);
}

/* TLS 1.2: the record that begins protection. */
static void first_change(struct wire *w, struct dir *d, const struct record *r)
{
	whole_message(d, r);
	change_cipher(d, r);
	canary_record(w, d, r, r->off + HEAD, false);
	protect12(w, d);
}

static void first_or_next13(struct wire *w, struct dir *d, const struct record *r)
{
	whole_message(d, r);
	record13(w, d, r);
}

static void take(struct wire *w, struct dir *d, const struct record *r)
{
	const struct conn *c = d->conn;

	d->records++;
	if (c->state == KEYED && c->version == 12 && d->phase != PHASE_CLEAR)
		record12(w, d, r);
	else if (c->state == KEYED && c->version == 12 && r->head[0] == CHANGE_CIPHER)
		first_change(w, d, r);
	else if (c->state == KEYED && c->version == 13 && is_protected13(d, r->head[0]))
		first_or_next13(w, d, r);
	else if (c->state == BLIND)
		blind_record(w, d, r);
	else
		clear_record(w, d, r);
}

/* The next complete record; false if there is none (yet). */
static bool next_record(struct wire *w, struct dir *d, struct record *r)
{
	struct diff diff;

	if (d->next - d->pos < HEAD)
		return false;
	stream_take(d, d->pos, d->place, r->head, HEAD);
	*r = (struct record){ .head = { r->head[0], r->head[1], r->head[2], r->head[3], r->head[4] },
			      .len = be16(r->head + 3), .off = d->pos, .number = d->records };
	if (!plausible(r->head)) {
		d->ended = true;
		diff = diff_here(w, d, r, DIFF_HEADER);
		differs(w, d, &diff);
		return false;
	}
	d->whole = d->pos + HEAD + r->len;
	return d->next >= d->whole && !has_to_wait(d, r);
}

/* Take all complete records of a direction. */
void records_run(struct wire *w, struct dir *d)
{
	struct record r;

	while (!d->ended && d->next >= d->whole && next_record(w, d, &r)) {
		take(w, d, &r);
		stream_skip(d, &d->pos, &d->place, HEAD + r.len);
	}
}
