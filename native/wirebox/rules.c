/* SPDX-License-Identifier: Apache-2.0 */
/* What does a line ask for? Pure: no input, no output; the fuzzer calls it as main does. Grammar: README.md. */
#include <stdio.h>
#include <string.h>

#include "wirebox.h"

static const char *const places[] = { "header", "inside", "tag", "first", "last", "offset", "frame" };
static const char *const actions[] = { "drop", "delay", "duplicate", "flip", "mark" };

#define PERCENT "a share from 0% to 100%, such as 0.5%"

static bool missing(struct words *w, const char *what)
{
	snprintf(w->error, ERROR_MAX, "the line ends where %s is expected", what);
	return false;
}

static int find(const char *word, const char *const names[], size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (!strcmp(word, names[i]))
			return (int)i;
	return -1;
}

static bool parse_direction(struct words *w, bool to[static DIRECTIONS], bool both)
{
	const char *wanted = both ? "a direction: a>b, b>a or both" : "a direction: a>b or b>a";
	const char *word = words_take(w);

	if (!word)
		return missing(w, wanted);
	to[A_TO_B] = !strcmp(word, "a>b") || (both && !strcmp(word, "both"));
	to[B_TO_A] = !strcmp(word, "b>a") || (both && !strcmp(word, "both"));
	return to[A_TO_B] || to[B_TO_A] || words_wrong(w, wanted);
}

static bool parse_port(struct words *w, uint16_t *port)
{
	uint64_t n;

	if (!words_if(w, "port"))
		return true;
	if (!words_number(w, "a TCP port", 1, 65535, &n))
		return false;
	*port = (uint16_t)n;
	return true;
}

/* "7": of all records; "+7": of those with application data. Both from 0. */
static bool parse_record(struct words *w, struct rule *r)
{
	if (w->next < w->count && w->word[w->next][0] == '+') {
		r->app = true;
		w->word[w->next]++;
	}
	return words_number(w, "the number of a record", 0, 1ULL << 40, &r->number);
}

static bool parse_where(struct words *w, struct rule *r)
{
	static const char wanted[] = "a place: header, inside, tag, first, last, offset or frame";
	const char *word = words_take(w);
	int place;

	if (!word)
		return missing(w, wanted);
	place = find(word, places, sizeof(places) / sizeof(places[0]));
	if (place < 0)
		return words_wrong(w, wanted);
	r->where = (enum where)place;
	switch (r->where) {
	case AT_HEADER:
	case AT_INSIDE:
	case AT_TAG:
		return parse_record(w, r);
	case AT_OFFSET:
		return words_number(w, "an offset in the stream", 0, 1ULL << 48, &r->number);
	case AT_FRAME:
		return words_number(w, "the number of a data frame", 0, 1ULL << 40, &r->number);
	case AT_FIRST:
	case AT_LAST:
		break;
	}
	return true;
}

static bool parse_checksum(struct words *w, bool *repair)
{
	static const char wanted[] = "the checksum: 'repaired' (an attacker) or 'noise'";
	const char *word = words_take(w);

	if (!word)
		return missing(w, wanted);
	*repair = !strcmp(word, "repaired");
	return *repair || !strcmp(word, "noise") || words_wrong(w, wanted);
}

static bool parse_flip(struct words *w, struct rule *r)
{
	uint64_t n;

	if (words_if(w, "at")) {
		r->has_at = true;
		if (!words_signed(w, "a byte of the TCP payload (-1: the last)", 65535, &r->at))
			return false;
	}
	if (words_if(w, "bit")) {
		if (!words_number(w, "a bit", 0, 7, &n))
			return false;
		r->bit = (uint8_t)n;
	}
	return parse_checksum(w, &r->repair);
}

static bool parse_action(struct words *w, struct rule *r)
{
	static const char wanted[] = "an action: drop, delay, duplicate, flip or mark";
	const char *word = words_take(w);
	uint64_t n;
	int action;

	if (!word)
		return missing(w, wanted);
	action = find(word, actions, sizeof(actions) / sizeof(actions[0]));
	if (action < 0)
		return words_wrong(w, wanted);
	r->action = (enum action)action;
	if (r->action == ACT_FLIP)
		return parse_flip(w, r);
	if (r->action != ACT_DELAY)
		return true;
	if (!words_number(w, "frames that go first", 1, 1000, &n))
		return false;
	r->behind = (uint32_t)n;
	return true;
}

static bool parse_rule(struct words *w, struct command *c)
{
	struct rule *r = &c->rule;
	uint64_t n = 1;

	c->kind = CMD_RULE;
	if (!parse_direction(w, c->to, false) || !parse_port(w, &r->port) || !parse_where(w, r) ||
	    !parse_action(w, r))
		return false;
	if (words_if(w, "times") && !words_number(w, "how often", 1, 100, &n))
		return false;
	r->direction = c->to[B_TO_A] ? B_TO_A : A_TO_B;
	r->times = (uint32_t)n;
	return words_end(w);
}

static bool parse_reorder(struct words *w, struct impairment *x)
{
	uint64_t n = 3;

	if (!words_percent(w, PERCENT, &x->reorder))
		return false;
	if (words_if(w, "depth") && !words_number(w, "frames that go first", 1, 1000, &n))
		return false;
	x->depth = (uint32_t)n;
	return true;
}

static bool parse_kind(struct words *w, struct command *c)
{
	struct impairment *x = &c->impairment;
	uint64_t n;

	if (words_if(w, "loss"))
		return words_percent(w, PERCENT, &x->loss);
	if (words_if(w, "duplicate"))
		return words_percent(w, PERCENT, &x->duplicate);
	if (words_if(w, "reorder"))
		return parse_reorder(w, x);
	if (words_if(w, "corrupt"))
		return words_percent(w, PERCENT, &x->corrupt) && parse_checksum(w, &x->repair);
	if (words_if(w, "seed")) {
		c->seeded = true;
		return words_number(w, "a seed", 0, UINT64_MAX, &x->seed);
	}
	if (words_if(w, "jitter")) {
		if (!words_number(w, "microseconds", 1, 1000000, &n))
			return false;
		x->jitter_us = (uint32_t)n;
		return true;
	}
	words_take(w);
	return words_wrong(w, "a kind of impairment: loss, duplicate, reorder, corrupt, jitter or seed");
}

static bool parse_impair(struct words *w, struct command *c)
{
	c->kind = CMD_IMPAIR;
	if (!parse_direction(w, c->to, true) || !parse_port(w, &c->impairment.port))
		return false;
	while (w->next < w->count)
		if (!parse_kind(w, c))
			return false;
	return true;
}

/* Parse one line without its line break; false, with the reason in `error`, if it makes no sense. */
bool rules_parse(const char *line, struct command *c, char error[static ERROR_MAX])
{
	struct words w;

	memset(c, 0, sizeof(*c));
	if (!words_split(&w, line, error))
		return false;
	if (!w.count)
		return true;
	if (words_if(&w, "clear")) {
		c->kind = CMD_CLEAR;
		return words_end(&w);
	}
	return words_if(&w, "impair") ? parse_impair(&w, c) : parse_rule(&w, c);
}

/* Put a command into effect: a rule is added, `impair` replaces that of its directions, `clear` removes all. */
bool rules_apply(struct rules *r, const struct command *c, char error[static ERROR_MAX])
{
	if (c->kind == CMD_RULE && r->count == RULES_MAX) {
		snprintf(error, ERROR_MAX, "more than %d rules", RULES_MAX);
		return false;
	}
	if (c->kind == CMD_CLEAR) {
		r->count = 0;
		memset(r->impairment, 0, sizeof(r->impairment));
	} else if (c->kind == CMD_RULE) {
		r->rule[r->count] = c->rule;
		r->rule[r->count++].id = ++r->last_id;
	} else if (c->kind == CMD_IMPAIR) {
		r->last_id++;
		for (int i = 0; i < DIRECTIONS; i++)
			if (c->to[i]) {
				r->impairment[i] = c->impairment;
				r->impairment[i].id = r->last_id;
				r->impairment[i].seed = c->seeded ? c->impairment.seed : r->seed;
			}
	}
	return true;
}
