/* SPDX-License-Identifier: Apache-2.0 */
/* Rule 3: does another key of the same connection open the record? Epochs are derived again, not kept: a sender may
 * have gone through any number of them. */
#include <openssl/crypto.h>

#include "scene.h"

enum { EPOCHS_TRIED = 65536 };

static struct epoch *first12(struct wire *w, const struct dir *d)
{
	const struct conn *c = d->conn;
	struct epoch *e[2] = { epoch_new(c->keys), epoch_new(c->keys) };
	uint8_t master[SECRET_MAX];

	keylog_find(&w->keylog, MASTER_SECRET, c->random[CLIENT], master);
	derive12(c->keys, master, c->random[CLIENT], c->random[SERVER], e[CLIENT], e[SERVER]);
	OPENSSL_cleanse(master, sizeof(master));
	epoch_drop(e[!d->side]);
	return e[d->side];
}

/* Epoch n; `secret` carries over from the call for the one before. */
static struct epoch *epoch_of(struct wire *w, const struct dir *d, uint32_t n, uint8_t secret[SECRET_MAX])
{
	struct epoch *e;

	if (d->conn->version == 12)
		return first12(w, d);
	if (n < 2)
		keylog_find(&w->keylog, (enum label)((n ? CLIENT_TRAFFIC : CLIENT_HANDSHAKE) + d->side),
			    d->conn->random[CLIENT], secret);
	else
		next_secret(d->conn->keys, secret);
	e = epoch_new(d->conn->keys);
	derive13(e, secret);
	return e;
}

/* How many epochs are there? The keylog has the first ones also of a direction that never came to use them. */
static uint32_t epochs_of(const struct dir *d)
{
	uint32_t least = d->conn->version == 12 ? 1 : 2;
	uint32_t n = d->epochs > least ? d->epochs : least;

	return n < EPOCHS_TRIED ? n : EPOCHS_TRIED;
}

/* The first epoch of this direction that opens the record, but `except`; -1 if there is none. */
static int64_t opened_by(struct scene *s, const struct dir *d, int64_t except)
{
	uint8_t secret[SECRET_MAX];
	int64_t found = -1;

	for (uint32_t n = 0; found < 0 && n < epochs_of(d); n++) {
		struct epoch *e = epoch_of(s->w, d, n, secret);

		if (n != except && scene_open(s, e, s->diff->seq, s->diff->type, s->diff->len))
			found = n;
		epoch_drop(e);
	}
	OPENSSL_cleanse(secret, sizeof(secret));
	return found;
}

bool wrong_key(struct scene *s, struct finding *f)
{
	int64_t n = opened_by(s, peer_of(s->dir), -1);

	if (n < 0)
		n = opened_by(s, s->dir, s->diff->epoch_number);
	else
		snprintf(f->detail, sizeof(f->detail), "other direction");
	if (n < 0)
		return false;
	if (!f->detail[0])
		snprintf(f->detail, sizeof(f->detail), "epoch %lld", (long long)n);
	f->class = "wrong key";
	return true;
}
