/* SPDX-License-Identifier: Apache-2.0 */
/* The streams have ended: what is missing, and what does it come to? */
#include "core.h"

/* Is there a hole in what was captured? */
bool dir_gap(const struct dir *d)
{
	return d->ahead.ranges || (d->fin && d->fin_at > d->next);
}

static bool payload_proven(const struct wire *w, const struct dir *d)
{
	return compared(w, d) && d->conn->state == KEYED && d->proven &&
	       d->app_bytes == payload_of(w, d)->len && d->payload_bytes == d->app_bytes;
}

static void difference_at_end(struct wire *w, struct dir *d, enum diff_kind kind)
{
	struct record r = { .off = d->pos, .number = d->records };
	struct diff f;

	if (d->next - d->pos >= HEAD) {
		stream_take(d, d->pos, d->place, r.head, HEAD);
		r.len = be16(r.head + 3);
	}
	f = diff_here(w, d, &r, kind);
	differs(w, d, &f);
}

/* Was all of the payload sent, and was it all? Only a stream that was seen to its end can tell. */
static void end_of_payload(struct wire *w, struct dir *d, bool complete)
{
	if (!compared(w, d) || d->app_bytes >= payload_of(w, d)->len)
		return;
	if (complete && !d->ended && d->conn->state == KEYED)
		difference_at_end(w, d, DIFF_SHORT);
	else
		problem(&d->problems, PAYLOAD_NOT_COVERED, 0);
}

static void finish_dir(struct wire *w, struct dir *d)
{
	bool gap = dir_gap(d), complete = d->fin && !gap;

	if (!d->based || !d->data_end) {
		if (compared(w, d) && payload_of(w, d)->len)
			problem(&d->problems, PAYLOAD_NOT_COVERED, 0);
		return;
	}
	if (gap)
		problem(&d->problems, GAP, d->next);
	if (!d->fin && !payload_proven(w, d))
		problem(&d->problems, d->rst ? RESET : NO_CLOSE, 0);
	if (d->fin && d->data_end > d->fin_at)
		problem(&d->problems, DATA_AFTER_FIN, d->fin_at);
	if (complete && !d->ended && d->pos < (d->next < d->fin_at ? d->next : d->fin_at))
		difference_at_end(w, d, DIFF_TRUNCATED);
	end_of_payload(w, d, complete);
}

/* Bytes behind the last record of a stream whose end nobody saw. */
static void note_tail(struct wire *w, struct dir *d)
{
	struct record r = { .off = d->pos, .number = d->records };

	if (d->fin || dir_gap(d) || d->ended || d->pos == d->next)
		return;
	problem(&d->problems, TAIL, d->pos);
	r.len = (uint32_t)(d->next - d->pos);
	if (d->conn->state == KEYED)
		canary_record(w, d, &r, d->pos, false);
}

static void finish_conn(struct wire *w, struct conn *c)
{
	hello_decide(w, c, true);
	records_run(w, &c->dir[CLIENT]);
	records_run(w, &c->dir[SERVER]);
	note_tail(w, &c->dir[CLIENT]);
	note_tail(w, &c->dir[SERVER]);
}

/* Read what had to wait, let the checks end, and look at the ends of all streams. */
void finish_connections(struct wire *w)
{
	for (uint32_t i = 0; i < w->conn_count; i++) {
		if (w->conns[i]->listed)
			finish_conn(w, w->conns[i]);
		w->not_tls += !w->conns[i]->listed && w->conns[i]->has_payload;
	}
	pool_wait(w);
	canary_finish(w);
	for (uint32_t i = 0; i < w->conn_count; i++) {
		if (!w->conns[i]->listed)
			continue;
		finish_dir(w, &w->conns[i]->dir[CLIENT]);
		finish_dir(w, &w->conns[i]->dir[SERVER]);
	}
	unread_finish(w);
	if (!w->listed)
		problem(&w->problems, NO_TLS, 0);
}

enum outcome conn_outcome(const struct conn *c)
{
	const struct dir *a = &c->dir[CLIENT], *b = &c->dir[SERVER];

	if (a->different || b->different || a->resent || b->resent)
		return OUT_DIFFERENT;
	if (c->problems.mask || a->problems.mask || b->problems.mask)
		return OUT_INCONCLUSIVE;
	return a->proven || b->proven ? OUT_EQUAL : OUT_INCONCLUSIVE;
}

enum outcome capture_outcome(const struct wire *w)
{
	enum outcome all = w->problems.mask ? OUT_INCONCLUSIVE : OUT_EQUAL;

	if (w->leak.frame)
		return OUT_DIFFERENT;
	for (uint32_t i = 0; i < w->conn_count; i++) {
		enum outcome one = w->conns[i]->listed ? conn_outcome(w->conns[i]) : OUT_EQUAL;

		if (one == OUT_DIFFERENT)
			return one;
		all = one == OUT_INCONCLUSIVE ? one : all;
	}
	return all;
}
