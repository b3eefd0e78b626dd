/* SPDX-License-Identifier: Apache-2.0 */
/* Which byte of a flow's stream does a rule mean? Once it is known, the frame that carries that byte is the one. */
#include <string.h>

#include "wirebox.h"

#define TLS_HEADER 5
#define TLS_TAG 16
#define TLS_ALERT 21
#define TLS_APPLICATION_DATA 23

bool rule_has_port(uint16_t port, const struct end *a, const struct end *b)
{
	return !port || a->port == port || b->port == port;
}

/* The aim of rule `i` in a flow; NULL if the rule is not for this flow or direction. */
static struct aim *aim_of(struct flow *f, struct rules *r, int direction, uint32_t i)
{
	const struct rule *rule = &r->rule[i];
	struct aim *aim = &f->aim[i];

	if (rule->direction != direction || !rule_has_port(rule->port, &f->a, &f->b))
		return NULL;
	if (aim->rule != rule->id)
		*aim = (struct aim){ .rule = rule->id, .record = NO_RECORD };
	return aim;
}

/* The same for a rule about `where` that has no aim yet. */
static struct aim *free_aim(struct flow *f, struct rules *r, int direction, uint32_t i, enum where where)
{
	struct aim *aim = r->rule[i].where == where ? aim_of(f, r, direction, i) : NULL;

	return aim && aim->state == AIM_NONE ? aim : NULL;
}

static void set(struct aim *aim, uint64_t target, uint64_t record)
{
	aim->state = AIM_SET;
	aim->target = target;
	aim->record = record;
}

static bool is_number(const struct rule *rule, const struct track *t, uint8_t type)
{
	if (!rule->app)
		return t->record == rule->number;
	return type == TLS_APPLICATION_DATA && t->app == rule->number;
}

/* The first byte of a record was seen; `type` is 0 before the keys are in use. */
void aim_record_begins(struct flow *f, struct rules *r, int direction, uint8_t type)
{
	const struct track *t = &f->track[direction];

	for (uint32_t i = 0; i < r->count; i++) {
		struct aim *aim;

		if ((aim = free_aim(f, r, direction, i, AT_HEADER)) && is_number(&r->rule[i], t, type))
			set(aim, t->record_at, t->record);
		if ((aim = free_aim(f, r, direction, i, AT_FIRST)) && type == TLS_APPLICATION_DATA && !t->app)
			set(aim, t->record_at, t->record);
		if ((aim = free_aim(f, r, direction, i, AT_LAST)) && type == TLS_ALERT)
			set(aim, t->record_at, t->record);
	}
}

/* It is the record, or that one is over and was too short for a frame inside: then the next will do. */
static bool may_be_inside(const struct rule *rule, const struct aim *aim, const struct track *t, uint8_t type)
{
	if (aim->state == AIM_WINDOW)
		return !rule->app || type == TLS_APPLICATION_DATA;
	return aim->state == AIM_NONE && is_number(rule, t, type);
}

/* The whole header of a record was seen: where it ends is known. */
void aim_record_known(struct flow *f, struct rules *r, int direction, uint8_t type)
{
	const struct track *t = &f->track[direction];

	for (uint32_t i = 0; i < r->count; i++) {
		struct aim *aim;

		if ((aim = free_aim(f, r, direction, i, AT_TAG)) && is_number(&r->rule[i], t, type))
			set(aim, t->record_end - 1, t->record);
		aim = r->rule[i].where == AT_INSIDE ? aim_of(f, r, direction, i) : NULL;
		if (aim && may_be_inside(&r->rule[i], aim, t, type)) {
			aim->state = AIM_WINDOW;
			aim->target = t->record_at + TLS_HEADER;
			aim->end = t->record_end < aim->target + TLS_TAG ? aim->target : t->record_end - TLS_TAG;
			aim->record = t->record;
		}
	}
}

/* A frame with data or FIN came. `fresh`: it has bytes that were never seen. */
void aim_frame(struct flow *f, struct rules *r, int direction, const struct place *p, bool fresh, bool fin)
{
	for (uint32_t i = 0; i < r->count; i++) {
		struct aim *aim;

		if ((aim = free_aim(f, r, direction, i, AT_OFFSET)))
			set(aim, r->rule[i].number, NO_RECORD);
		if ((aim = free_aim(f, r, direction, i, AT_FRAME)) && fresh &&
		    p->track->frames == r->rule[i].number)
			set(aim, p->start, p->record);
		if ((aim = free_aim(f, r, direction, i, AT_LAST)) && fin)
			set(aim, p->end - 1, NO_RECORD);
	}
}

/* The first rule that acts on this frame, its shots counted; NULL if none does. */
const struct rule *flow_match(struct rules *r, int direction, const struct place *p, struct aim **out)
{
	for (uint32_t i = 0; i < r->count; i++) {
		struct aim *aim = aim_of(p->flow, r, direction, i);

		if (!aim)
			continue;
		if (aim->state == AIM_WINDOW && p->start >= aim->target && p->end <= aim->end)
			set(aim, p->start, aim->record);
		if (aim->state != AIM_SET || aim->fired >= r->rule[i].times || aim->target < p->start ||
		    aim->target >= p->end)
			continue;
		aim->fired++;
		if (aim->record == NO_RECORD)
			aim->record = p->record;
		*out = aim;
		return &r->rule[i];
	}
	return NULL;
}
