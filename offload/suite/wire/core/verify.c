/* SPDX-License-Identifier: Apache-2.0 */
/* From a question on bytes in memory to the answer: the whole verifier, without files. */
#include <sys/random.h>

#include "core.h"

static bool starts_like_tls(const struct dir *d)
{
	uint8_t two[2];

	return d->next >= 2 && stream_copy(d, 0, two, 2) == 2 && two[0] >= CHANGE_CIPHER && two[0] <= APPLICATION &&
	       two[1] == 3;
}

/* Is it TLS? Known when one direction begins so, or when neither does. */
static void judge(struct wire *w, struct conn *c, const struct dir *d)
{
	if (c->listed || c->hopeless || d->next < 2)
		return;
	if (starts_like_tls(d)) {
		c->listed = true;
		w->restart = ++w->listed > 1 && w->use_payload && (w->q->payload.given || w->q->reply.given);
	} else {
		c->hopeless = peer_of(d)->next >= 2 && !starts_like_tls(peer_of(d));
	}
}

/* New bytes in a direction: read the records that are complete; the other one may have waited for this. */
static void progress(struct wire *w, struct dir *d)
{
	struct conn *c = d->conn;
	uint8_t before = c->state;
	bool listed = c->listed;

	judge(w, c, d);
	if (!c->listed || w->restart)
		return;
	records_run(w, d);
	if (c->state != before || !listed)
		records_run(w, peer_of(d));
	if (c->state != before)
		records_run(w, d);
}

static void segment(struct wire *w, const struct frame *f, const struct segment *s)
{
	struct dir *d;
	uint64_t before;
	bool laid = false;

	if (!conns_selects(w, s)) {
		canary_frame(w, f);
		return;
	}
	d = conns_find(w, s, f->number);
	before = d ? d->next : 0;

	if (d)
		laid = stream_add(w, d, s, f);
	if (d && d->next != before)
		progress(w, d);
	if (!laid || !d->conn->listed || !s->plain || s->at + s->cap != f->cap || canary_early(s, d))
		canary_segment(w, f, s, d, laid);
}

static int one_frame(struct wire *w, const struct frame *f, struct failure *why)
{
	struct segment s;

	w->truncated += f->cap < f->orig;
	switch (net_parse(f, w->q->checksums, &s)) {
	case KIND_LINK:
		return failed(why, RC_INPUT, "capture: frame %llu has link type %u, which is not supported",
			      (unsigned long long)f->number, f->link);
	case KIND_TCP:
		w->tcp++;
		segment(w, f, &s);
		return RC_OK;
	case KIND_OTHER:
		w->other++;
		unread_frame(w, f);
		break;
	case KIND_FRAGMENT:
		w->fragments++;
		unread_frame(w, f);
		break;
	case KIND_BAD_SUM:
		w->bad_sums++;
		break;
	}
	canary_frame(w, f);
	return RC_OK;
}

static int read_capture(struct wire *w, struct failure *why)
{
	struct frame f;
	int rc = reader_open(&w->reader, w->q->capture, why);

	while (rc == RC_OK && !w->restart && reader_next(&w->reader, &f)) {
		rc = one_frame(w, &f, why);
		pages_drop(w, PAGES_CAPTURE, w->q->capture.at, f.at);
	}
	if (rc == RC_OK && !w->restart) {
		if (w->reader.damaged)
			problem(&w->problems, CAPTURE_DAMAGED, w->reader.frames + 1);
		finish_connections(w);
	}
	return rc;
}

static void wire_free(struct wire *w)
{
	pool_free(w->pool);
	conns_free(w);
	problems_free(&w->problems);
	reader_close(&w->reader);
	canary_free(&w->canary);
	for (int of = PAYLOAD; of < SOURCES; of++)
		needles_free(&w->needles[of]);
	unread_free(&w->unread);
	opener_free(&w->opener);
	keylog_free(&w->keylog);
}

/* One pass over the capture; *again if a second TLS connection made the payload ambiguous. */
static int pass(const struct question *q, bool use_payload, bool *again, struct text *out, struct failure *f)
{
	struct wire w = { .q = q, .use_payload = use_payload };
	int rc = RC_OK;

	if (getrandom(&w.seed, sizeof(w.seed), 0) != sizeof(w.seed))
		w.seed = 0;
	w.pool = pool_new(q->threads, check_batch);
	keylog_parse(&w.keylog, q->keylog, w.seed);
	if (!w.keylog.keys)
		rc = failed(f, RC_INPUT, "keylog: it has no valid line (%llu invalid ones)", (unsigned long long)w.keylog.bad);
	if (!use_payload)
		problem(&w.problems, AMBIGUOUS_PAYLOAD, 0);
	if (rc == RC_OK) {
		needles_measure(&w);
		w.canary.on = use_payload && (w.needles[PAYLOAD].count || w.needles[REPLY].count);
		rc = read_capture(&w, f);
	}
	*again = w.restart;
	if (rc == RC_OK && !w.restart)
		report(&w, out);
	wire_free(&w);
	return rc;
}

/* Answer a question: RC_OK and a document, or RC_INPUT and a sentence in *f. */
int wire_verify(const struct question *q, struct text *out, struct failure *f)
{
	bool again;
	int rc;

	crypt_start();
	rc = pass(q, true, &again, out, f);
	return again ? pass(q, false, &again, out, f) : rc;
}
