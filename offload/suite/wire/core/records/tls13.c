/* SPDX-License-Identifier: Apache-2.0 */
/* A protected record of TLS 1.3: which epoch, which inner type? Application data is left to the workers. */
#include <stdlib.h>

#include <openssl/crypto.h>

#include "core.h"

static size_t secret_of(const struct wire *w, const struct dir *d, enum label client, uint8_t secret[SECRET_MAX])
{
	return keylog_find(&w->keylog, (enum label)(client + d->side), d->conn->random[CLIENT], secret);
}

static void enter(struct dir *d, const uint8_t *secret)
{
	struct epoch *e = epoch_new(d->conn->keys);

	derive13(e, secret);
	new_epoch(d, e);
}

/* Both hellos are known: both directions go on under their handshake secrets. */
void protect13(struct wire *w, struct conn *c)
{
	uint8_t secret[SECRET_MAX];

	for (int side = CLIENT; side <= SERVER; side++) {
		secret_of(w, &c->dir[side], CLIENT_HANDSHAKE, secret);
		enter(&c->dir[side], secret);
		c->dir[side].first.seq = 0; /* of a header that was bad before this was known */
		c->dir[side].phase = PHASE_HANDSHAKE;
	}
	OPENSSL_cleanse(secret, sizeof(secret));
}

static void next_epoch(struct wire *w, struct dir *d)
{
	if (d->phase == PHASE_HANDSHAKE) {
		d->secret = grab(SECRET_MAX);
		secret_of(w, d, CLIENT_TRAFFIC, d->secret);
		d->phase = PHASE_DATA;
	} else {
		next_secret(d->conn->keys, d->secret);
	}
	enter(d, d->secret);
}

/* Application data that is known to be authentic. */
static void authentic_app(struct wire *w, struct dir *d, struct diff *f, const uint8_t *plain, uint32_t size)
{
	bool bad = f->kind != DIFF_CONTENT;

	count_app(d, size);
	if (beyond_payload(w, d, f, size)) {
		f->kind = bad ? f->kind : DIFF_EXCESS;
		differs(w, d, f);
	} else if (bad || (f->compared && memcmp(plain, payload_of(w, d)->at + f->payload, size) != 0)) {
		differs(w, d, f);
	} else {
		count_right(w, d, size, f->compared);
	}
}

/* An authentic record: `len` bytes of inner plaintext with type and padding. */
static void authentic(struct wire *w, struct dir *d, struct diff *f, const uint8_t *plain, uint32_t len)
{
	int saw = 0;

	while (len && !plain[len - 1])
		len--;
	if (!len) {
		f->kind = f->kind == DIFF_CONTENT ? DIFF_MALFORMED : f->kind;
		differs(w, d, f);
		return;
	}
	f->type = plain[--len];
	if (f->type == APPLICATION) {
		authentic_app(w, d, f, plain, len);
		return;
	}
	if (f->type == HANDSHAKE)
		saw = messages_read(&d->messages, plain, len);
	if (f->type == ALERT && len == 2 && plain[0] == 1 && plain[1] == 0)
		d->close_notify = true;
	if (f->kind == DIFF_CONTENT)
		count_right(w, d, len, false);
	else
		differs(w, d, f);
	if (saw & (d->phase == PHASE_HANDSHAKE ? SAW_FINISHED : SAW_KEY_UPDATE))
		next_epoch(w, d);
}

static bool has_early_secret(const struct wire *w, const struct dir *d)
{
	uint8_t secret[SECRET_MAX];
	bool has = d->side == CLIENT && keylog_find(&w->keylog, CLIENT_EARLY, d->conn->random[CLIENT], secret) > 0;

	OPENSSL_cleanse(secret, sizeof(secret));
	return has;
}

/* Decrypt here and now, because the following records may depend on it. */
static void in_series(struct wire *w, struct dir *d, const struct record *r, struct diff *f, uint32_t len,
		      const struct label_of_record *l)
{
	struct place p = d->place;
	uint64_t off = r->off;
	uint8_t *body = opener_scratch(&w->opener);

	stream_skip(d, &off, &p, HEAD);
	stream_take(d, off, p, body, r->len);
	if (open_record(&w->opener, d->epoch, l, body, len, body)) {
		authentic(w, d, f, body, len);
	} else if (d->protected == 1 && has_early_secret(w, d)) {
		problem(&d->problems, EARLY_DATA, r->off);
		d->ended = true;
	} else {
		if (d->phase == PHASE_DATA)
			count_app(d, len - 1);
		f->compared = f->compared && d->phase == PHASE_DATA;
		differs(w, d, f);
	}
}

/* Does it look like application data without padding? Then the order of checking does not matter. */
static bool looks_like_data(struct wire *w, struct dir *d, const struct record *r, uint32_t len,
			    const struct label_of_record *l)
{
	struct place p = d->place;
	uint64_t off = r->off;
	uint8_t last, stream;

	if (d->phase != PHASE_DATA)
		return false;
	stream_skip(d, &off, &p, HEAD + len - 1);
	stream_take(d, off, p, &last, 1);
	return keystream(&w->opener, d->epoch, l->nonce, len - 1, &stream, 1) && (last ^ stream) == APPLICATION;
}

static void submit(struct wire *w, struct dir *d, const struct record *r, struct diff *f, uint32_t size)
{
	struct job *j;

	count_app(d, size);
	if (beyond_payload(w, d, f, size)) {
		f->kind = f->kind == DIFF_CONTENT ? DIFF_EXCESS : f->kind;
		differs(w, d, f);
		return;
	}
	j = job_new(w, d, HEAD, r->len);
	j->diff = *f;
	epoch_keep(j->diff.epoch);
	j->size = size;
	j->inner = true;
	j->flags = f->kind == DIFF_CONTENT ? 0 : JOB_KNOWN_BAD;
	if (f->compared) {
		j->flags |= JOB_PAYLOAD;
		j->payload = payload_of(w, d)->at + f->payload;
		canary_job(w, j);
		pages_drop(w, PAGES_CLIENT + d->side, payload_of(w, d)->at, j->payload);
	}
}

/* One record of type 23 under TLS 1.3. */
void record13(struct wire *w, struct dir *d, const struct record *r)
{
	struct diff f = diff_here(w, d, r, DIFF_CONTENT);
	struct label_of_record l;
	uint32_t len;

	d->protected++;
	d->seq++;
	f.type = APPLICATION;
	if (r->head[0] != APPLICATION)
		f.kind = DIFF_TYPE;
	else if (be16(r->head + 1) != 0x0303)
		f.kind = DIFF_VERSION;
	if (r->len <= TAG) {
		f.kind = f.kind == DIFF_CONTENT ? DIFF_MALFORMED : f.kind;
		differs(w, d, &f);
		return;
	}
	len = r->len - TAG;
	record_label(d->epoch, f.seq, APPLICATION, len, NULL, &l);
	if (looks_like_data(w, d, r, len, &l))
		submit(w, d, r, &f, len - 1);
	else
		in_series(w, d, r, &f, len, &l);
}
