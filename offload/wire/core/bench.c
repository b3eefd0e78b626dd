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

/* Bytes per second of sealing `bytes` bytes out of the buffer, round and round, one thread. */
static double seal_rate(const uint8_t *buffer, uint64_t bytes)
{
	struct epoch *e = epoch_new(suite_find(0xc030));
	struct opener o = { .scratch = NULL };
	struct label_of_record l;
	uint8_t explicit[8] = { 0 };
	double begin = now(CLOCK_MONOTONIC);
	uint64_t done = 0;

	for (; done < bytes; done += RECORD) {
		put_be64(explicit, done);
		record_label(e, done / RECORD, APPLICATION, RECORD, explicit, &l);
		if (!seal(&o, e, &l, buffer + done % BUFFER, RECORD, -1, opener_scratch(&o)))
			break;
	}
	begin = now(CLOCK_MONOTONIC) - begin;
	opener_free(&o);
	epoch_drop(e);
	return (double)done / begin;
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

struct best {
	double seal, verify, cpu, wall;
	char outcome[16];
};

static int one_verify(const struct question *q, struct best *b, uint64_t *app, struct failure *f)
{
	struct text document = { .to = NULL };
	double wall = now(CLOCK_MONOTONIC), cpu = now(CLOCK_PROCESS_CPUTIME_ID);
	int rc = wire_verify(q, &document, f);

	wall = now(CLOCK_MONOTONIC) - wall;
	cpu = now(CLOCK_PROCESS_CPUTIME_ID) - cpu;
	if (rc == RC_OK) {
		*app = total(&document, "\"app_bytes\":");
		sscanf(strstr(document.buf, "\"outcome\":\"") + 11, "%15[a-z]", b->outcome);
		if (!b->wall || wall < b->wall)
			b->wall = wall;
		if (!b->cpu || cpu < b->cpu)
			b->cpu = cpu;
	}
	free(document.buf);
	return rc;
}

/* Print the best of `repeat` turns. */
int bench(const struct question *q, int repeat, struct text *out, struct failure *f)
{
	struct best b = { .seal = 0 };
	struct rusage usage;
	uint8_t *buffer = fill(&q->payload);
	uint64_t app = 0;
	int rc = RC_OK;

	for (int i = 0; rc == RC_OK && i < repeat; i++) {
		double rate;

		rc = one_verify(q, &b, &app, f);
		rate = rc == RC_OK ? seal_rate(buffer, app > BUFFER ? app : BUFFER) : 0;
		b.seal = rate > b.seal ? rate : b.seal;
	}
	free(buffer);
	if (rc != RC_OK)
		return rc;
	getrusage(RUSAGE_SELF, &usage);
	b.verify = (double)app / b.wall;
	text_add(out, "{\"seal_bytes_per_second\":%.0f,\"verify_bytes_per_second\":%.0f,\"verify_cpu_seconds\":%.6f,"
		      "\"verify_wall_seconds\":%.6f,\"app_bytes\":%" PRIu64 ",\"max_rss_kib\":%ld,\"outcome\":\"%s\"}\n",
		 b.seal, b.verify, b.cpu, b.wall, app, usage.ru_maxrss, b.outcome);
	return RC_OK;
}
