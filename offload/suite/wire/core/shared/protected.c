/* SPDX-License-Identifier: Apache-2.0 */
/* What is counted of protected records, and which of them is the first that differs. */
#include "core.h"

/* What a difference of this record would be. The epoch is borrowed. */
struct diff diff_here(const struct wire *w, const struct dir *d, const struct record *r, enum diff_kind kind)
{
	return (struct diff){ .record = r->number, .seq = d->seq, .off = r->off, .payload = d->app_bytes,
			      .epoch = d->epoch, .epoch_number = d->epochs ? d->epochs - 1 : 0, .len = r->len,
			      .kind = (uint8_t)kind, .type = r->head[0],
			      .compared = compared(w, d) && d->conn->state == KEYED };
}

/* Is there less payload left than the record has? */
bool beyond_payload(const struct wire *w, const struct dir *d, const struct diff *f,
		    uint32_t size)
{
	const struct bytes *payload = payload_of(w, d);

	return f->compared && (f->payload > payload->len || size > payload->len - f->payload);
}

/* Count a record that differs; the pool's lock is held. */
void differs_locked(struct dir *d, const struct diff *f)
{
	if (!d->different++ || f->record < d->first.record) {
		epoch_drop(d->first.epoch);
		d->first = *f;
		epoch_keep(f->epoch);
	}
}

void differs(struct wire *w, struct dir *d, const struct diff *f)
{
	pool_lock(w->pool);
	differs_locked(d, f);
	pool_unlock(w->pool);
}

/* Count a protected record that is as it should be. */
void count_right(struct wire *w, struct dir *d, uint32_t size, bool by_payload)
{
	pool_lock(w->pool);
	d->proven++;
	d->authentic_bytes += size;
	d->payload_bytes += by_payload ? size : 0;
	pool_unlock(w->pool);
}

/* The place of a size in the sorted list, where it is or would be. */
static uint32_t size_place(const struct dir *d, uint32_t size)
{
	uint32_t low = 0, high = d->size_kinds;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (d->sizes[middle].size < size)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Count an application record, whatever its proof. */
void count_app(struct dir *d, uint32_t size)
{
	uint32_t i = d->size_last;

	d->app_records++;
	d->app_bytes += size;
	if (i >= d->size_kinds || d->sizes[i].size != size)
		i = size_place(d, size);
	if (i == d->size_kinds || d->sizes[i].size != size) {
		if ((d->size_kinds & (d->size_kinds - 1)) == 0)
			d->sizes = regrab(d->sizes, (d->size_kinds * 2 + 1) * sizeof(*d->sizes));
		memmove(d->sizes + i + 1, d->sizes + i, (d->size_kinds - i) * sizeof(*d->sizes));
		d->sizes[i] = (struct size_count){ .size = size };
		d->size_kinds++;
	}
	d->sizes[i].count++;
	d->size_last = i;
}

/* From here on the direction's records are under these keys; it owns them. */
void new_epoch(struct dir *d, struct epoch *e)
{
	epoch_drop(d->epoch);
	d->epoch = e;
	d->epochs++;
	d->seq = 0;
	d->nonces = 0;
}
