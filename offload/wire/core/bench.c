/* SPDX-License-Identifier: Apache-2.0 */
/* Seal and verify in turns, in one process: the ratio says what reading the capture costs beside the cipher. */
#include <inttypes.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#include "bench.h"

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

/* The cost of sealing `bytes` bytes out of the buffer, round and round, one thread. */
static struct spent seal_cost(const uint8_t *buffer, uint64_t bytes)
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
		if (!seal(&o, e, &l, buffer + done % BUFFER, RECORD, -1, opener_scratch(&o), NULL))
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

/* The first pass maps the files' pages and reads what is not cached; later ones find most of it in place. */
struct best {
	struct spent seal, verify;
	double first;
	char outcome[16];
};

static void keep_better(struct spent *best, struct spent one)
{
	if (!best->wall || one.wall < best->wall)
		best->wall = one.wall;
	if (!best->cpu || one.cpu < best->cpu)
		best->cpu = one.cpu;
}

static int one_verify(const struct question *q, struct best *b, uint64_t *app, struct failure *f)
{
	struct text document = { .to = NULL };
	struct spent begin = since((struct spent){ 0, 0 });
	int rc = wire_verify(q, &document, f);

	if (rc == RC_OK) {
		begin = since(begin);
		b->first = b->first ? b->first : begin.wall;
		keep_better(&b->verify, begin);
		*app = total(&document, "\"app_bytes\":");
		sscanf(strstr(document.buf, "\"outcome\":\"") + 11, "%15[a-z]", b->outcome);
	}
	free(document.buf);
	return rc;
}

/* Print the best of `repeat` turns. */
int bench(const struct question *q, int repeat, struct text *out, struct failure *f)
{
	struct best b = { .outcome = "" };
	struct rusage usage;
	uint8_t *buffer = fill(&q->payload);
	uint64_t app = 0;
	int rc = RC_OK;

	for (int i = 0; rc == RC_OK && i < repeat; i++) {
		rc = one_verify(q, &b, &app, f);
		app = (app + RECORD - 1) / RECORD * RECORD;
		if (rc == RC_OK)
			keep_better(&b.seal, seal_cost(buffer, app));
	}
	free(buffer);
	if (rc != RC_OK)
		return rc;
	getrusage(RUSAGE_SELF, &usage);
	text_add(out, "{\"seal_bytes_per_second\":%.0f,\"verify_bytes_per_second\":%.0f,\"seal_cpu_seconds\":%.6f,"
		      "\"verify_cpu_seconds\":%.6f,\"first_verify_bytes_per_second\":%.0f,\"verify_wall_seconds\":%.6f,\"app_bytes\":%" PRIu64
		      ",\"max_rss_kib\":%ld,\"outcome\":\"%s\"}\n",
		 (double)app / b.seal.wall, (double)app / b.verify.wall, b.seal.cpu, b.verify.cpu, (double)app / b.first, b.verify.wall,
		 app, usage.ru_maxrss, b.outcome);
	return RC_OK;
}
