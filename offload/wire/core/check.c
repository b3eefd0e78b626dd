/* SPDX-License-Identifier: Apache-2.0 */
/* Is this record what it should be? With a payload it is sealed anew and compared, without one its tag is checked. */
#include "core.h"

static bool same(const struct batch *b, const struct job *j, const uint8_t *wanted)
{
	for (uint32_t i = 0; i < j->pieces; i++) {
		const struct piece *p = &b->piece[j->piece + i];

		if (memcmp(wanted, p->at, p->len) != 0)
			return false;
		wanted += p->len;
	}
	return true;
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
	uint8_t *scratch = opener_scratch(o);
	size_t len = j->size + j->inner;
	struct label_of_record l;

	record_label(e, j->diff.seq, j->diff.type, len, explicit, &l);
	if (j->flags & JOB_PAYLOAD) {
		j->right = seal(o, e, &l, j->payload, j->size, j->inner ? APPLICATION : -1, scratch,
				b->piece[j->piece].at) &&
			   same(b, j, scratch);
		if (j->wanted)
			needles_along(p, j);
		return;
	}
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

/* Check all records of a batch and empty it. */
void check_batch(struct pool *p, struct opener *o, struct batch *b)
{
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
