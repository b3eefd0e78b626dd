/* SPDX-License-Identifier: Apache-2.0 */
/* What happens to a frame: a chosen rule acts on it, else the random impairment decides, else it goes on as it came. */
#include <string.h>

#include "wirebox.h"

#define MILLION 1000000u

enum { ROLL_LOSS, ROLL_CORRUPT, ROLL_PLACE, ROLL_DUPLICATE, ROLL_REORDER, ROLL_JITTER };

/* splitmix64's finalizer (Steele, Lea, Flood 2014) */
static uint64_t mix(uint64_t x)
{
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ x >> 27) * 0x94d049bb133111ebULL;
	return x ^ x >> 31;
}

/* A number that depends on nothing but these four: the same frames meet the same impairment in every run. */
uint64_t chance_roll(uint64_t seed, int direction, uint64_t frame, int what)
{
	uint64_t x = mix(seed + 0x9e3779b97f4a7c15ULL);

	x = mix(x ^ (frame << 1 | (uint64_t)direction));
	return mix(x + 0x9e3779b97f4a7c15ULL * (uint64_t)(what + 1));
}

static void pass(struct engine *e, int direction, const struct frame *f)
{
	e->send(e->to, direction, f->data, f->len);
}

static void flip(struct frame *f, uint32_t at, uint8_t bit, bool repair)
{
	f->data[f->at + at] ^= (uint8_t)(1u << bit);
	if (repair)
		frame_checksum(f);
}

/* The byte that a rule flips: the one it names, else the one it aims at. False if the frame has no such byte. */
static bool flip_place(const struct rule *rule, const struct aim *aim, const struct place *p,
		       const struct frame *f, uint32_t *at)
{
	int64_t place = rule->at;

	if (!rule->has_at)
		place = (int64_t)(aim->target - p->start);
	else if (place < 0)
		place += f->size;
	*at = (uint32_t)place;
	return place >= 0 && place < f->size;
}

static void wait_for(struct engine *e, struct deed *d, struct frame *f, uint32_t behind)
{
	uint64_t number = e->count[d->direction].tcp;

	e->count[d->direction].delayed++;
	d->action = "delay";
	d->behind = behind;
	say_deed(e, d);
	hold(e, d->direction, f,
	     (struct held){ .chosen = true, .rule = d->rule, .frame = number, .after = number + behind,
			    .due = e->now + HOLD_NS });
}

static void act(struct engine *e, struct deed *d, struct frame *f, const struct rule *rule,
		const struct aim *aim)
{
	struct counts *c = &e->count[d->direction];
	uint32_t at;

	if (rule->action == ACT_DELAY) {
		wait_for(e, d, f, rule->behind);
		return;
	}
	if (rule->action == ACT_DROP) {
		d->action = "drop";
		c->dropped++;
	} else if (rule->action == ACT_DUPLICATE) {
		d->action = "duplicate";
		c->duplicated++;
		pass(e, d->direction, f);
	} else if (rule->action == ACT_MARK) {
		d->action = frame_mark(f) ? "mark" : "none";
		c->marked += d->action[0] == 'm';
	} else if (flip_place(rule, aim, d->place, f, &at)) {
		d->action = "flip";
		d->flip = true;
		d->at = (int32_t)at;
		d->bit = rule->bit;
		d->repair = rule->repair;
		c->flipped++;
		flip(f, at, rule->bit, rule->repair);
	} else {
		d->action = "none"; /* a byte that this frame does not have */
	}
	say_deed(e, d);
	if (rule->action != ACT_DROP)
		pass(e, d->direction, f);
}

static bool happens(const struct impairment *w, const struct deed *d, int what, uint32_t share)
{
	return share && (chance_roll(w->seed, d->direction, d->number, what) >> 32) * MILLION >> 32 < share;
}

static void corrupt(struct engine *e, struct deed *d, struct frame *f, const struct impairment *w)
{
	uint64_t roll = chance_roll(w->seed, d->direction, d->number, ROLL_PLACE);

	d->action = "flip";
	d->flip = true;
	d->at = (int32_t)((roll >> 8) % f->size);
	d->bit = roll & 7;
	d->repair = w->repair;
	e->count[d->direction].flipped++;
	flip(f, (uint32_t)d->at, d->bit, w->repair);
	say_deed(e, d);
	d->flip = false;
}

/* One or more of: lost; a bit flipped; twice; behind others; late. */
static void meet(struct engine *e, struct deed *d, struct frame *f, struct impairment *w)
{
	struct counts *c = &e->count[d->direction];

	d->number = ++w->frames;
	if (happens(w, d, ROLL_LOSS, w->loss)) {
		c->dropped++;
		d->action = "drop";
		say_deed(e, d);
		return;
	}
	if (f->size && happens(w, d, ROLL_CORRUPT, w->corrupt))
		corrupt(e, d, f, w);
	if (happens(w, d, ROLL_DUPLICATE, w->duplicate)) {
		c->duplicated++;
		d->action = "duplicate";
		say_deed(e, d);
		pass(e, d->direction, f);
	}
	if (happens(w, d, ROLL_REORDER, w->reorder)) {
		wait_for(e, d, f, w->depth);
	} else if (w->jitter_us) {
		uint64_t us = chance_roll(w->seed, d->direction, d->number, ROLL_JITTER) % (w->jitter_us + 1u);

		c->jittered++;
		hold(e, d->direction, f, (struct held){ .rule = w->id, .due = e->now + us * 1000 });
	} else {
		pass(e, d->direction, f);
	}
}

/* One frame as it was on the cable. `data` may be altered. */
void engine_take(struct engine *e, int direction, uint8_t *data, uint32_t len)
{
	struct counts *c = &e->count[direction];
	struct impairment *w = &e->rules.impairment[direction];
	const struct rule *rule = NULL;
	struct aim *aim = NULL;
	struct frame f;
	struct place p;
	uint64_t gaps;
	struct deed d = { .direction = direction, .frame = &f, .record = NO_RECORD };

	c->frames++;
	c->bytes += len;
	if (!frame_parse(data, len, &f)) {
		pass(e, direction, &f);
		return;
	}
	c->tcp++;
	gaps = e->flows.gaps;
	if (flow_place(&e->flows, &e->rules, direction, &f, &p)) {
		d.place = &p;
		d.record = p.record;
		rule = flow_match(&e->rules, direction, &p, &aim);
	}
	c->gaps += e->flows.gaps - gaps;
	if (rule) {
		d.rule = rule->id;
		d.record = aim->record;
		d.target = aim->target;
		d.time = aim->fired;
		act(e, &d, &f, rule, aim);
	} else if (w->id && rule_has_port(w->port, &f.src, &f.dst)) {
		d.rule = w->id;
		meet(e, &d, &f, w);
	} else {
		pass(e, direction, &f);
	}
	hold_release(e, direction);
}

/* A frame that TSO or GRO made larger than the cable takes: its segments, each with `size` bytes of payload. */
void engine_cut(struct engine *e, int direction, uint8_t *data, uint32_t len, uint32_t size)
{
	static uint8_t segment[FRAME_MAX];
	struct frame f;
	uint32_t n;

	if (!frame_parse(data, len, &f) || !size || f.size <= size) {
		if (f.family)
			frame_checksum(&f);
		engine_take(e, direction, data, len);
		return;
	}
	e->count[direction].cut++;
	for (uint32_t i = 0; (n = frame_cut(&f, size, i, segment)); i++)
		engine_take(e, direction, segment, n);
}
