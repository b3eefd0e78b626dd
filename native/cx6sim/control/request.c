/* SPDX-License-Identifier: Apache-2.0 */
/* What a line of the control socket asks for: one flat JSON object, of numbers and plain strings, from a stranger. */
#include "cx6.h"

#define WORD 32u

struct reader {
	const char *at;
};

static void skip_space(struct reader *r)
{
	while (*r->at == ' ' || *r->at == '\t' || *r->at == '\r')
		r->at++;
}

static bool take(struct reader *r, char wanted)
{
	skip_space(r);
	if (*r->at != wanted)
		return false;
	r->at++;
	return true;
}

/* A string of printable letters; an escape is not one, for no name here has any. */
static bool take_word(struct reader *r, char word[static WORD])
{
	uint32_t len = 0;

	if (!take(r, '"'))
		return false;
	while (*r->at != '"' && *r->at != '\\' && *r->at >= ' ' && *r->at <= '~' && len < WORD - 1)
		word[len++] = *r->at++;
	word[len] = 0;
	return take(r, '"') && len;
}

/* Of at most 18 digits, which any 64 bits hold. */
static bool take_number(struct reader *r, uint64_t *number)
{
	uint32_t digits = 0;

	skip_space(r);
	for (*number = 0; *r->at >= '0' && *r->at <= '9' && digits < 19; digits++)
		*number = *number * 10 + (uint64_t)(*r->at++ - '0');
	return digits && digits < 19;
}

static const char *take_member(struct reader *r, struct request *wanted)
{
	char name[WORD];

	if (!take_word(r, name) || !take(r, ':'))
		return "expected a JSON object with card, fault and every";
	if (!strcmp(name, "card") && !wanted->has_card)
		return (wanted->has_card = take_number(r, &wanted->card)) ? NULL : "card must be a number";
	if (!strcmp(name, "every") && !wanted->has_every)
		return (wanted->has_every = take_number(r, &wanted->every)) ? NULL : "every must be a number";
	if (!strcmp(name, "fault") && !wanted->has_fault)
		return (wanted->has_fault = take_word(r, wanted->fault)) ? NULL : "fault must be a name";
	return "unknown or repeated key: use card, fault and every, each once";
}

const char *request_read(const char *line, struct request *wanted)
{
	struct reader r = { line };
	const char *wrong;

	*wanted = (struct request){ 0 };
	if (!take(&r, '{'))
		return "expected a JSON object with card, fault and every";
	do {
		wrong = take_member(&r, wanted);
		if (wrong)
			return wrong;
	} while (take(&r, ','));
	if (!take(&r, '}') || (skip_space(&r), *r.at))
		return "expected a JSON object with card, fault and every";
	if (!wanted->has_card)
		return "card is missing: give the number of the card";
	return wanted->has_fault == wanted->has_every ? NULL : "give fault and every together, or neither";
}
