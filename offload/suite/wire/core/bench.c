/* SPDX-License-Identifier: Apache-2.0 */
/* Seal and verify in turns, in one process: the ratio says what reading the capture costs in addition to the cipher. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "bench.h"
#include "limit.h"
#include "secrets/gcm.h"

enum { RECORD = 16384, BUFFER = 32 << 20 };

static double now(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Seconds of the wall and of the processor. */
struct spent {
	double wall, cpu;
};

static struct spent since(struct spent begin)
{
	return (struct spent){ now(CLOCK_MONOTONIC) - begin.wall, now(CLOCK_PROCESS_CPUTIME_ID) - begin.cpu };
}

/* Seal a record by the library that verifying takes. */
static bool seal_own(struct opener *o, const struct epoch *e, const struct label_of_record *l, const uint8_t *plain)
{
	uint8_t *out = opener_scratch(o);
	struct sealing s;

	return seal_begin(o, e, l, &s) && seal_text(&s, plain, RECORD, out) && seal_end(&s, out + RECORD);
}

/* The cost of sealing `bytes` bytes out of the buffer, round and round, one thread: by libcrypto, or by our own choice. */
static struct spent seal_cost(const uint8_t *buffer, uint64_t bytes, bool own)
{
	struct epoch *e = epoch_new(suite_find(0xc030));
	struct opener o = { .scratch = NULL };
	struct label_of_record l;
	uint8_t explicit[8] = { 0 };
	struct spent begin = since((struct spent){ 0, 0 });
	uint64_t done = 0;

	for (; done < bytes; done += RECORD) {
		put_be64(explicit, done);
		record_label(e, done / RECORD, APPLICATION, RECORD, explicit, &l);
		if (own ? !seal_own(&o, e, &l, buffer + done % BUFFER) :
			  !seal(&o, e, &l, buffer + done % BUFFER, RECORD, opener_scratch(&o)))
			break;
	}
	begin = since(begin);
	opener_free(&o);
	epoch_drop(e);
	return begin;
}

static uint8_t *fill(const struct bytes *payload)
{
	uint8_t *buffer = grab(BUFFER);

	for (size_t done = 0; done < BUFFER; done++)
		buffer[done] = payload->len ? payload->at[done % payload->len] : (uint8_t)(done * 131);
	return buffer;
}

/* A number that the document has: there is no need for a parser of JSON. */
static uint64_t total(const struct text *t, const char *name)
{
	uint64_t sum = 0;

	for (const char *at = t->buf; (at = strstr(at, name)); at += strlen(name))
		sum += strtoull(at + strlen(name), NULL, 10);
	return sum;
}

/* Most memory in use so far, in KiB. Not ru_maxrss: that begins with what the parent had before exec. */
static long peak_kib(void)
{
	FILE *status = fopen("/proc/self/status", "re");
	char line[128];
	long kib = 0;

	while (status && !kib && fgets(line, sizeof(line), status))
		sscanf(line, "VmHWM: %ld", &kib);
	if (status)
		fclose(status);
	return kib;
}

/* What one turn cost: sealing by libcrypto and as verifying does it, verifying by one thread and by all, and reading
 * without the keys. `lone` and `apart`: one thread, and each of all threads, verifies its own copy of the files. */
struct turn {
	struct spent seal, own, one, all, read;
	double lone, apart, read_one, read_all; /* seconds, then bytes a second */
};

struct result {
	uint64_t app; /* bytes of application data, up to a whole record */
	char outcome[16];
};

static int verify_cost(const struct question *q, unsigned int threads, struct spent *cost, struct result *r,
		       struct failure *f)
{
	struct question mine = *q;
	struct text document = { .to = NULL };
	struct spent begin = since((struct spent){ 0, 0 });
	int rc;

	mine.threads = threads;
	rc = wire_verify(&mine, &document, f);
	if (rc == RC_OK) {
		*cost = since(begin);
		r->app = (total(&document, "\"app_bytes\":") + RECORD - 1) / RECORD * RECORD;
		sscanf(strstr(document.buf, "\"outcome\":\"") + 11, "%15[a-z]", r->outcome);
	}
	free(document.buf);
	return rc;
}

/* Frames, streams and records alone: without a payload, and with the key of another connection. */
static int read_cost(const struct question *q, struct spent *cost, struct failure *f)
{
	struct question mine = *q;
	struct result none;
	char line[256];

	mine.payload = mine.reply = (struct bytes){ .given = false };
	mine.keylog.len = (size_t)snprintf(line, sizeof(line), "CLIENT_RANDOM %064d %096d\n", 0, 0);
	mine.keylog.at = (const uint8_t *)line;
	return verify_cost(&mine, 1, cost, &none, f);
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* The median of n figures; it sorts them. */
static double median(double *v, int n)
{
	qsort(v, (size_t)n, sizeof(*v), compare);
	return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

/* Every figure is the median of its turns, the ratios too: each compares what ran within a fraction of a second. */
static void tell(struct turn *t, int n, unsigned int threads, const struct result *r, struct text *out)
{
	static const char *const names[] = { "seal_cpu_seconds", "verify_cpu_seconds", "verify_to_seal", "threads_to_one",
					     "read_to_verify", "own_to_verify", "threads_cpu", "apart_to_one",
					     "read_one", "read_all", "threads_to_apart" };
	enum { FIGURES = sizeof(names) / sizeof(*names) };
	double *v[FIGURES], first = t[0].one.wall;

	for (int k = 0; k < FIGURES; k++)
		v[k] = grab((size_t)n * sizeof(double));
	for (int i = 0; i < n; i++) {
		v[0][i] = t[i].seal.cpu;
		v[1][i] = t[i].one.cpu;
		v[2][i] = t[i].seal.cpu / t[i].one.cpu;
		v[3][i] = t[i].one.wall / t[i].all.wall;
		v[4][i] = t[i].read.cpu / t[i].one.cpu;
		v[5][i] = t[i].own.cpu / t[i].one.cpu;
		v[6][i] = t[i].all.cpu / t[i].one.cpu;
		v[7][i] = threads * t[i].lone / t[i].apart;
		v[8][i] = t[i].read_one;
		v[9][i] = t[i].read_all;
		v[10][i] = v[3][i] / v[7][i];
	}
	text_add(out, "{");
	for (int k = 0; k < FIGURES; k++)
		text_add(out, "\"%s\":%.6f,", names[k], median(v[k], n));
	text_add(out, "\"sealed_by\":\"%s\",", gcm_name() ? gcm_name() : "libcrypto");
	text_add(out, "\"first_verify_seconds\":%.6f,\"app_bytes\":%" PRIu64 ",\"max_rss_kib\":%ld,\"outcome\":\"%s\"}\n", first,
		 r->app, peak_kib(), r->outcome);
	for (int k = 0; k < FIGURES; k++)
		free(v[k]);
}

/* What threads without anything in common cost on this machine. */
static int limit_cost(struct limit *l, unsigned int threads, struct turn *t, struct failure *f)
{
	t->lone = limit_verify(l, 1);
	t->apart = limit_verify(l, threads);
	t->read_one = limit_read(l, 1);
	t->read_all = limit_read(l, threads);
	return t->lone < 0 || t->apart < 0 ? failed(f, RC_INPUT, "bench: the capture does not match its payload") : RC_OK;
}

/* Print the medians of `repeat` turns. The first pass maps the files' pages; later ones find most of them in place. */
int bench(const struct question *q, int repeat, struct text *out, struct failure *f)
{
	struct turn *turn = grab((size_t)repeat * sizeof(*turn));
	struct result r = { .outcome = "" };
	uint8_t *buffer = fill(&q->payload);
	struct limit *limit = limit_new(q, f);
	int rc = limit ? RC_OK : RC_INTERNAL;

	for (int i = 0; rc == RC_OK && i < repeat; i++) {
		rc = verify_cost(q, 1, &turn[i].one, &r, f);
		turn[i].all = turn[i].one;
		if (rc == RC_OK && q->threads > 1)
			rc = verify_cost(q, q->threads, &turn[i].all, &r, f);
		if (rc == RC_OK)
			rc = read_cost(q, &turn[i].read, f);
		if (rc == RC_OK) {
			turn[i].seal = seal_cost(buffer, r.app, false);
			turn[i].own = seal_cost(buffer, r.app, true);
			rc = limit_cost(limit, q->threads, &turn[i], f);
		}
	}
	if (rc == RC_OK)
		tell(turn, repeat, q->threads, &r, out);
	if (limit)
		limit_free(limit);
	free(buffer);
	free(turn);
	return rc;
}
