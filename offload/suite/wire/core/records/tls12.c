/* SPDX-License-Identifier: Apache-2.0 */
/* A protected record of TLS 1.2: is its number used once and in order, and what must be checked of it? */
#include <stdlib.h>

#include <openssl/crypto.h>

#include "core.h"

/* After its own ChangeCipherSpec a direction is protected. */
void protect12(struct wire *w, struct dir *d)
{
	struct conn *c = d->conn;
	struct epoch *e[2] = { epoch_new(c->keys), epoch_new(c->keys) };
	uint8_t master[SECRET_MAX];

	keylog_find(&w->keylog, MASTER_SECRET, c->random[CLIENT], master);
	derive12(c->keys, master, c->random[CLIENT], c->random[SERVER], e[CLIENT], e[SERVER]);
	OPENSSL_cleanse(master, sizeof(master));
	epoch_drop(e[!d->side]);
	new_epoch(d, e[d->side]);
	d->phase = PHASE_DATA;
}

/* Each nonce is the one before plus 1, as OpenSSL and the kernel make them. Up to the first that is not they are one
 * run, so "used before" needs no more than its ends; later ones are not explained. */
static bool nonce_steps(struct dir *d, const uint8_t explicit[8], struct diff *f)
{
	uint64_t nonce = be64(explicit), wanted = d->nonce + 1;
	bool ok = !d->nonces || nonce == wanted;

	if (!d->nonces++ && d->epochs == 1)
		memcpy(d->nonce_first, explicit, 8);
	f->nonce_wanted = wanted;
	f->reused = !ok && nonce - be64(d->nonce_first) < d->nonces - 1;
	d->nonce = nonce;
	return ok;
}

static void submit(struct wire *w, struct dir *d, const struct record *r, const struct diff *f, const uint8_t *explicit)
{
	size_t skip = suite_nonce_len(d->conn->keys);
	struct job *j = job_new(w, d, HEAD + skip, r->len - skip);

	j->diff = *f;
	epoch_keep(j->diff.epoch);
	j->size = (uint32_t)(r->len - suite_overhead(d->conn->keys));
	j->flags = f->kind == DIFF_CONTENT ? 0 : JOB_KNOWN_BAD;
	memcpy(j->explicit, explicit, 8);
	if (r->head[0] == APPLICATION && f->compared) {
		j->flags |= JOB_PAYLOAD;
		j->payload = payload_of(w, d)->at + f->payload;
		canary_job(w, j);
		pages_drop(w, PAGES_CLIENT + d->side, payload_of(w, d)->at, j->payload);
	}
}

static void read_nonce(struct dir *d, const struct record *r, uint8_t out[8])
{
	struct place p = d->place;
	uint64_t off = r->off;

	stream_skip(d, &off, &p, HEAD);
	stream_take(d, off, p, out, 8);
}

/* One record of a protected direction. */
void record12(struct wire *w, struct dir *d, const struct record *r)
{
	struct diff f = diff_here(w, d, r, DIFF_CONTENT);
	uint8_t explicit[8] = { 0 };
	uint32_t size;
	bool app = r->head[0] == APPLICATION;

	if (r->head[0] == CHANGE_CIPHER) {
		problem(&d->problems, RENEGOTIATION, r->off);
		d->ended = true;
		return;
	}
	d->protected++;
	d->seq++;
	if (be16(r->head + 1) != 0x0303)
		f.kind = DIFF_VERSION;
	if (r->len < suite_overhead(d->conn->keys)) {
		f.kind = f.kind == DIFF_VERSION ? DIFF_VERSION : DIFF_MALFORMED;
		differs(w, d, &f);
		return;
	}
	if (suite_nonce_len(d->conn->keys)) {
		read_nonce(d, r, explicit);
		if (!nonce_steps(d, explicit, &f) && f.kind == DIFF_CONTENT)
			f.kind = DIFF_NONCE;
	}
	size = (uint32_t)(r->len - suite_overhead(d->conn->keys));
	if (app)
		count_app(d, size);
	if (app && beyond_payload(w, d, &f, size)) {
		f.kind = f.kind == DIFF_CONTENT ? DIFF_EXCESS : f.kind;
		differs(w, d, &f);
	} else {
		submit(w, d, r, &f, explicit);
	}
}
