/* SPDX-License-Identifier: Apache-2.0 */
/* Where a frame lies in its TCP stream, and where that stream's TLS records begin. Bounded: the oldest flow gives way. */
#include <string.h>

#include "wirebox.h"

#define TLS_HEADER 5
#define TLS_CHANGE_CIPHER_SPEC 20
#define TLS_APPLICATION_DATA 23
#define TLS_MOST 16640 /* RFC 8446, 5.2: 2^14 + 256 */
#define STRANGE (1u << 30) /* more than any window: no segment of this stream */

static uint32_t hash(const struct end *a, const struct end *b)
{
	const uint8_t *parts[] = { a->addr, (const uint8_t *)&a->port, b->addr, (const uint8_t *)&b->port };
	static const uint32_t sizes[] = { sizeof(a->addr), sizeof(a->port), sizeof(b->addr), sizeof(b->port) };
	uint32_t h = 2166136261u; /* FNV-1a */

	for (int i = 0; i < 4; i++)
		for (uint32_t k = 0; k < sizes[i]; k++)
			h = (h ^ parts[i][k]) * 16777619u;
	return h ^ h >> 16;
}

static bool same(const struct end *a, const struct end *b)
{
	return a->port == b->port && !memcmp(a->addr, b->addr, sizeof(a->addr));
}

static struct flow *find(struct flows *fs, const struct end *a, const struct end *b)
{
	struct flow *set = fs->flow[hash(a, b) % FLOW_SETS];

	for (int i = 0; i < FLOW_WAYS; i++)
		if (set[i].used && same(&set[i].a, a) && same(&set[i].b, b)) {
			set[i].touched = ++fs->clock;
			return &set[i];
		}
	return NULL;
}

static struct flow *make(struct flows *fs, const struct end *a, const struct end *b)
{
	struct flow *set = fs->flow[hash(a, b) % FLOW_SETS], *f = find(fs, a, b);

	for (int i = 0; !f && i < FLOW_WAYS; i++)
		if (!set[i].used)
			f = &set[i];
	if (!f) {
		f = &set[0];
		for (int i = 1; i < FLOW_WAYS; i++)
			if (set[i].touched < f->touched)
				f = &set[i];
	}
	memset(f, 0, sizeof(*f));
	f->used = true;
	f->touched = ++fs->clock;
	f->a = *a;
	f->b = *b;
	fs->seen++;
	return f;
}

static void begin(struct track *t, uint32_t base)
{
	t->known = true;
	t->base = base;
	t->ccs = NO_RECORD;
}

/* The flow of a frame; NULL if its SYN was not seen. A SYN with a new sequence number begins it again. */
static struct flow *follow(struct flows *fs, int direction, const struct frame *f)
{
	const struct end *a = direction == A_TO_B ? &f->src : &f->dst;
	const struct end *b = direction == A_TO_B ? &f->dst : &f->src;
	struct flow *flow = find(fs, a, b);
	struct track *t = flow ? &flow->track[direction] : NULL;

	if (!(f->flags & TCP_SYN)) {
		if (fs->join && (!t || !t->known)) {
			flow = flow ? flow : make(fs, a, b);
			begin(&flow->track[direction], f->seq);
			return flow;
		}
		return t && t->known ? flow : NULL;
	}
	if (t && t->known && t->base == f->seq + 1)
		return flow;
	if (!flow || t->known || !(f->flags & TCP_ACK))
		flow = make(fs, a, b);
	begin(&flow->track[direction], f->seq + 1);
	return flow;
}

/* The new keys are in use and proven: ChangeCipherSpec and one record after it (Finished) came before. */
static bool is_protected(const struct track *t)
{
	return t->ccs != NO_RECORD && t->record >= t->ccs + 2;
}

static void end_of_header(struct flow *f, struct rules *r, int direction)
{
	struct track *t = &f->track[direction];
	uint32_t size = (uint32_t)t->head[3] << 8 | t->head[4];

	if (t->head[0] < TLS_CHANGE_CIPHER_SPEC || t->head[0] > TLS_APPLICATION_DATA || t->head[1] != 3 ||
	    size > TLS_MOST) {
		t->not_tls = true;
		return;
	}
	t->record_end = t->record_at + TLS_HEADER + size;
	if (t->head[0] == TLS_CHANGE_CIPHER_SPEC && t->ccs == NO_RECORD)
		t->ccs = t->record;
	aim_record_known(f, r, direction, is_protected(t) ? t->head[0] : 0);
}

static void end_of_record(struct track *t)
{
	t->app += t->head[0] == TLS_APPLICATION_DATA && is_protected(t);
	t->record++;
	t->record_at = t->next;
	t->have = 0;
}

/* Take in bytes that continue the stream. The type counts as 0 as long as nothing is protected. */
static void read_records(struct flow *f, struct rules *r, int direction, const uint8_t *p, uint32_t n)
{
	struct track *t = &f->track[direction];

	while (n && !t->not_tls) {
		uint32_t step = 1;

		if (t->have < TLS_HEADER) {
			t->head[t->have++] = *p;
			if (t->have == 1)
				aim_record_begins(f, r, direction, is_protected(t) ? *p : 0);
			if (t->have == TLS_HEADER)
				end_of_header(f, r, direction);
		} else {
			step = t->record_end - t->next < n ? (uint32_t)(t->record_end - t->next) : n;
		}
		t->next += step;
		p += step;
		n -= step;
		if (t->have == TLS_HEADER && t->next == t->record_end)
			end_of_record(t);
	}
	t->next += n;
}

/* What is new in a frame goes into the record reader, if nothing is missing before it. */
static void feed(struct flows *fs, struct flow *flow, struct rules *r, int direction, const struct frame *f,
		 uint64_t start)
{
	struct track *t = &flow->track[direction];

	if (start > t->next) {
		fs->gaps++;
	} else if (start + f->size > t->next) {
		uint32_t old = (uint32_t)(t->next - start);

		read_records(flow, r, direction, f->data + f->at + old, f->size - old);
	}
}

/* Say where a frame lies, and aim the rules at what it shows; false for one without data, or of an unknown flow. */
bool flow_place(struct flows *fs, struct rules *r, int direction, const struct frame *f, struct place *p)
{
	struct flow *flow = follow(fs, direction, f);
	bool syn = f->flags & TCP_SYN, fin = f->flags & TCP_FIN, fresh;
	struct track *t;
	int64_t start;

	if (!flow) {
		fs->unknown++;
		return false;
	}
	t = &flow->track[direction];
	start = (int64_t)t->next + (int32_t)(f->seq + syn - (uint32_t)(t->base + t->next));
	if ((!f->size && !fin) || start < 0 || start > (int64_t)(t->next + STRANGE))
		return false;
	*p = (struct place){ flow, t, (uint64_t)start, (uint64_t)start + f->size + fin, NO_RECORD };
	if (!t->not_tls && p->start >= t->record_at && p->start <= t->next)
		p->record = t->record;
	fresh = f->size && p->start + f->size > t->top;
	feed(fs, flow, r, direction, f, p->start);
	aim_frame(flow, r, direction, p, fresh, fin);
	if (fresh) {
		t->frames++;
		t->top = p->start + f->size;
	}
	return true;
}
