/* SPDX-License-Identifier: Apache-2.0 */
/* Which version, suite and randoms did both ends agree on? From ClientHello and ServerHello (RFC 8446 section 4.1). */
#include <stdlib.h>

#include "core.h"

enum { CLIENT_HELLO = 1, SERVER_HELLO = 2, SUPPORTED_VERSIONS = 43, MESSAGE_HEAD = 4 };

static const uint8_t retry_random[32] = {
	0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c, 0x02, 0x1e, 0x65, 0xb8, 0x91,
	0xc2, 0xa2, 0x11, 0x16, 0x7a, 0xbb, 0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c,
};

/* From the first to the last, its records are only counted: an earlier answer on one is taken back. */
static void blind(struct conn *c, enum problem_code why)
{
	c->state = BLIND;
	problem(&c->problems, why, 0);
	for (int side = CLIENT; side <= SERVER; side++) {
		problem_drop(&c->dir[side].problems, CLEAR_ALERT);
		problem_drop(&c->dir[side].problems, CLEAR_RECORD);
		problem_drop(&c->dir[side].problems, CHANGE_CIPHER_SPEC);
		if (!c->dir[side].long_hello)
			problem_drop(&c->dir[side].problems, HANDSHAKE_TOO_LONG);
	}
}

/* 12, 13 or 0 for another, from the extensions or, without supported_versions, the legacy version; false if malformed. */
static bool version_of(const uint8_t *at, const uint8_t *end, uint16_t legacy, uint8_t *version)
{
	bool seen = false;

	*version = legacy == 0x0303 ? 12 : 0;
	if (at == end)
		return true;
	if (end - at < 2 || end - at - 2 != be16(at))
		return false;
	for (at += 2; at < end; at += 4 + be16(at + 2)) {
		if (end - at < 4 || end - at - 4 < be16(at + 2))
			return false;
		if (be16(at) == SUPPORTED_VERSIONS && !seen) {
			*version = be16(at + 2) == 2 && be16(at + 4) == 0x0304 ? 13 : 0;
			seen = true;
		}
	}
	return true;
}

/* Body of a ServerHello: true if it is well-formed. */
static bool server_hello(struct conn *c, const uint8_t *at, size_t len)
{
	const uint8_t *end = at + len, *suite;
	uint8_t version;

	if (len < 38 || len - 38 < at[34])
		return false;
	suite = at + 35 + at[34];
	if (!version_of(suite + 3, end, be16(at), &version))
		return false;
	memcpy(c->random[SERVER], at + 2, 32);
	c->suite = be16(suite);
	c->version = version;
	return true;
}

static bool client_hello(struct conn *c, const uint8_t *at, size_t len)
{
	if (len < 34)
		return false;
	memcpy(c->random[CLIENT], at + 2, 32);
	return true;
}

static bool is_retry(const uint8_t *body, size_t len)
{
	return len >= 34 && memcmp(body + 2, retry_random, 32) == 0;
}

/* Look at the messages collected so far. */
static enum hello_state look(struct dir *d)
{
	for (;;) {
		const uint8_t *m = d->message, *body = m + MESSAGE_HEAD;
		uint32_t len;

		if (d->message_len < MESSAGE_HEAD)
			return HELLO_OPEN;
		len = be32(m) & 0xffffff;
		if (len > HANDSHAKE_MAX - MESSAGE_HEAD)
			return HELLO_LONG;
		if (m[0] != (d->side == CLIENT ? CLIENT_HELLO : SERVER_HELLO))
			return HELLO_BAD;
		if (d->message_len - MESSAGE_HEAD < len)
			return HELLO_OPEN;
		if (d->side == CLIENT)
			return client_hello(d->conn, body, len) ? HELLO_DONE : HELLO_BAD;
		if (!is_retry(body, len))
			return server_hello(d->conn, body, len) ? HELLO_DONE : HELLO_BAD;
		d->message_len -= MESSAGE_HEAD + len;
		memmove(d->message, body + len, d->message_len);
	}
}

static bool key_tls13(struct wire *w, struct conn *c)
{
	uint8_t secret[SECRET_MAX];
	bool all = true;

	for (int label = CLIENT_HANDSHAKE; label <= SERVER_TRAFFIC; label++)
		all = all && keylog_find(&w->keylog, (enum label)label, c->random[CLIENT], secret) == c->keys->hash_len;
	OPENSSL_cleanse(secret, sizeof(secret));
	return all;
}

static bool key_tls12(struct wire *w, struct conn *c)
{
	uint8_t secret[SECRET_MAX];
	bool found = keylog_find(&w->keylog, MASTER_SECRET, c->random[CLIENT], secret) > 0;

	OPENSSL_cleanse(secret, sizeof(secret));
	return found;
}

/* In TLS 1.3 only hellos are in plaintext. */
static void note_odd(struct dir *d)
{
	if (d->clear_messages.odd && d->conn->state == KEYED && d->conn->version == 13)
		problem_lower(&d->problems, CLEAR_RECORD, d->odd_at);
}

/* Both hellos are there: can the records be read? */
static void agree(struct wire *w, struct conn *c)
{
	c->keys = suite_find(c->suite);
	if (c->version == 12 && (c->dir[CLIENT].late_hello || c->dir[SERVER].late_hello)) {
		blind(c, NO_HELLO);
	} else if (!c->version) {
		blind(c, BAD_VERSION);
	} else if (!c->keys || c->keys->tls != c->version) {
		c->keys = NULL;
		blind(c, BAD_CIPHER);
	} else if (!(c->version == 12 ? key_tls12(w, c) : key_tls13(w, c))) {
		blind(c, NO_KEY);
	} else {
		c->state = KEYED;
		if (c->version == 13)
			protect13(w, c);
		for (int side = CLIENT; side <= SERVER; side++) {
			note_odd(&c->dir[side]);
			canary_so_far(w, &c->dir[side]);
		}
	}
}

/* Decide how the connection's records are to be read, as soon as that is known, or at the end. */
void hello_decide(struct wire *w, struct conn *c, bool at_end)
{
	uint8_t client = c->dir[CLIENT].hello, server = c->dir[SERVER].hello;

	if (c->state != UNDECIDED)
		return;
	if (client == HELLO_BAD || server == HELLO_BAD || (at_end && (client != HELLO_DONE || server != HELLO_DONE)))
		blind(c, NO_HELLO);
	else if (client == HELLO_DONE && server == HELLO_DONE)
		agree(w, c);
}

static void stop_collecting(struct wire *w, struct dir *d, enum hello_state state, uint64_t at)
{
	w->hello_bytes -= d->message_len;
	free(d->message);
	d->message = NULL;
	d->message_len = 0;
	d->hello = (uint8_t)state;
	d->long_hello = state == HELLO_LONG;
	if (d->long_hello)
		problem(&d->problems, HANDSHAKE_TOO_LONG, at);
	hello_decide(w, d->conn, false);
}

/* Keep the bytes of a handshake record, from (off, p) on, until the hello is complete. */
static void collect(struct wire *w, struct dir *d, const struct record *r, uint64_t off, struct place p)
{
	uint32_t before = d->message_len;
	enum hello_state state;

	if (d->message_room < d->message_len + r->len) {
		d->message_room = (d->message_len + r->len) * 2;
		d->message = regrab(d->message, d->message_room);
	}
	stream_take(d, off, p, d->message + d->message_len, r->len);
	d->message_len += r->len;
	state = look(d);
	w->hello_bytes = w->hello_bytes + d->message_len - before; /* a HelloRetryRequest makes it less */
	if (state == HELLO_OPEN && w->hello_bytes > HELLO_BYTES_MAX)
		state = HELLO_LONG;
	if (state != HELLO_OPEN)
		stop_collecting(w, d, state, r->off);
}

/* A handshake record before protection. */
void hello_feed(struct wire *w, struct dir *d, const struct record *r)
{
	struct place p = d->place;
	uint64_t off = r->off;
	bool too_long, odd = d->clear_messages.odd;

	if (!r->len || has_problem(&d->problems, HANDSHAKE_TOO_LONG))
		return;
	stream_skip(d, &off, &p, HEAD);
	stream_take(d, off, p, opener_scratch(&w->opener), r->len);
	d->clear_messages.hello = d->side == CLIENT ? CLIENT_HELLO : SERVER_HELLO;
	messages_read(&d->clear_messages, opener_scratch(&w->opener), r->len);
	if (!odd)
		d->odd_at = r->off;
	note_odd(d);
	too_long = d->clear_messages.longest > HANDSHAKE_MAX - MESSAGE_HEAD;
	if (d->hello == HELLO_OPEN)
		collect(w, d, r, off, p);
	if (too_long && d->conn->state != BLIND)
		problem(&d->problems, HANDSHAKE_TOO_LONG, r->off);
}
