/* SPDX-License-Identifier: Apache-2.0 */
/* Is this record what it should be? With a payload it is sealed again and compared, without one its tag is checked. */
#include "core.h"

/* What is sealed, compared and searched at a time stays in the nearest cache: 22 times the 96 bytes that
 * libcrypto does at once. Of 2112 to 8192 bytes, 2112 was best for intel-ipsec-mb, too. */
enum { STEP = 22 * 96, LINE = 64 };

/* Where in the pieces of a record? */
struct cursor {
	const struct piece *piece;
	size_t at;
};

/* The next bytes that lie together, at most `max`; the cursor moves behind them. */
static struct piece part(struct cursor *c, size_t max)
{
	struct piece next;

	if (c->at == c->piece->len) {
		c->piece++;
		c->at = 0;
	}
	next = (struct piece){ c->piece->at + c->at, (uint32_t)smaller(max, c->piece->len - c->at) };
	c->at += next.len;
	return next;
}

/* Fetch from memory what will be compared soon: a comparison that waits for it costs a sixth of the whole. */
static void fetch(struct cursor c, size_t len)
{
	struct piece next;

	for (; len; len -= next.len) {
		uintptr_t line, end;

		next = part(&c, len);
		end = (uintptr_t)next.at + next.len;
		for (line = (uintptr_t)next.at / LINE * LINE; line < end; line += LINE)
			__builtin_prefetch((const void *)line);
	}
}

/* Are these the next bytes? */
static bool same(struct cursor *c, const uint8_t *wanted, size_t len)
{
	struct piece next;

	for (; len; len -= next.len, wanted += next.len) {
		next = part(c, len);
		if (memcmp(next.at, wanted, next.len) != 0)
			return false;
	}
	return true;
}

/* Seal the record's payload, step by step. `inner`: the byte of type that follows it in TLS 1.3. */
static bool is_sealed(struct pool *p, struct opener *o, const struct batch *b, struct job *j,
		      const struct label_of_record *l)
{
	static const uint8_t inner = APPLICATION;
	struct sealing s;
	struct cursor c = { .piece = b->piece + j->piece };
	uint8_t *out = opener_scratch(o);
	bool right = seal_begin(o, j->diff.epoch, l, &s);
	size_t n;

	for (size_t done = 0; done < j->size; done += n) {
		n = smaller(STEP, j->size - done);
		if (right)
			fetch(c, n);
		right = right && seal_text(&s, j->payload + done, n, out) && same(&c, out, n);
		if (j->wanted)
			needles_along(p, j, done, n);
	}
	return right && seal_text(&s, &inner, j->inner, out) && seal_end(&s, out + j->inner) &&
	       same(&c, out, j->inner + TAG);
}

static void gather(const struct batch *b, const struct job *j, uint8_t *out)
{
	for (uint32_t i = 0; i < j->pieces; i++) {
		memcpy(out, b->piece[j->piece + i].at, b->piece[j->piece + i].len);
		out += b->piece[j->piece + i].len;
	}
}

static void check(struct pool *p, struct opener *o, const struct batch *b, struct job *j)
{
	const struct epoch *e = j->diff.epoch;
	const uint8_t *explicit = suite_nonce_len(e->suite) ? j->explicit : NULL;
	size_t len = j->size + j->inner;
	struct label_of_record l;
	uint8_t *scratch;

	record_label(e, j->diff.seq, j->diff.type, len, explicit, &l);
	if (j->flags & JOB_PAYLOAD) {
		j->right = is_sealed(p, o, b, j, &l);
		return;
	}
	scratch = opener_scratch(o);
	gather(b, j, scratch);
	j->right = open_record(o, e, &l, scratch, len, scratch);
	j->close_notify = j->right && j->diff.type == ALERT && j->size == 2 && scratch[0] == 1 && scratch[1] == 0;
}

static void note(struct job *j)
{
	struct dir *d = j->dir;

	if (j->close_notify)
		d->close_notify = true;
	if (j->wanted)
		j->needles->seen += j->seen;
	if (!j->right || j->flags & JOB_KNOWN_BAD) {
		differs_locked(d, &j->diff);
		return;
	}
	d->proven++;
	d->authentic_bytes += j->size;
	d->payload_bytes += j->flags & JOB_PAYLOAD ? j->size : 0;
}

/* Check all records of a batch, look through its span of needles, and empty it. */
void check_batch(struct pool *p, struct opener *o, struct batch *b)
{
	if (b->span.needles)
		needles_span(p, &b->span);
	b->span.needles = NULL;
	for (uint32_t i = 0; i < b->jobs; i++)
		check(p, o, b, &b->job[i]);
	pool_lock(p);
	for (uint32_t i = 0; i < b->jobs; i++)
		note(&b->job[i]);
	pool_unlock(p);
	for (uint32_t i = 0; i < b->jobs; i++)
		epoch_drop(b->job[i].diff.epoch);
	b->jobs = b->pieces = 0;
}
