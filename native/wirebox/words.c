/* SPDX-License-Identifier: Apache-2.0 */
/* One line as words, taken one after the other; a word that is not what was wanted is named in the error. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wirebox.h"

static bool at_end(struct words *w, const char *wanted)
{
	snprintf(w->error, ERROR_MAX, "the line ends where %s is expected", wanted);
	return false;
}

/* Note that the last word taken is wrong; always false. */
bool words_wrong(struct words *w, const char *wanted)
{
	snprintf(w->error, ERROR_MAX, "'%s' is not %s", w->word[w->next - 1], wanted);
	return false;
}

/* Split at blanks; a comment runs from # to the end. False for a character that is not plain text. */
bool words_split(struct words *w, const char *line, char *error)
{
	size_t len = strcspn(line, "#");
	char *at = w->text;

	w->count = w->next = 0;
	w->error = error;
	if (len > LINE_MAX_LEN) {
		snprintf(error, ERROR_MAX, "the line is longer than %d characters", LINE_MAX_LEN);
		return false;
	}
	memcpy(w->text, line, len);
	w->text[len] = '\0';
	for (const char *c = w->text; *c; c++)
		if (*c != '\t' && (*c < ' ' || *c > '~')) {
			snprintf(error, ERROR_MAX, "a character that is not plain text (code %u)",
				 (unsigned char)*c);
			return false;
		}
	for (char *word; (word = strtok_r(at, " \t", &at));)
		w->word[w->count++] = word;
	return true;
}

/* The next word, or NULL at the end. */
const char *words_take(struct words *w)
{
	return w->next < w->count ? w->word[w->next++] : NULL;
}

/* Take the next word if it is this one. */
bool words_if(struct words *w, const char *word)
{
	if (w->next >= w->count || strcmp(w->word[w->next], word) != 0)
		return false;
	w->next++;
	return true;
}

static bool digits(const char *text, uint64_t max, uint64_t *out)
{
	*out = 0;
	if (!*text)
		return false;
	for (; *text; text++) {
		uint64_t digit = (uint64_t)(*text - '0');

		if (*text < '0' || *text > '9' || *out > (max - digit) / 10 || digit > max)
			return false;
		*out = *out * 10 + digit;
	}
	return true;
}

bool words_number(struct words *w, const char *what, uint64_t min, uint64_t max, uint64_t *out)
{
	const char *word = words_take(w);
	char wanted[96];

	snprintf(wanted, sizeof(wanted), "%s (a number from %llu to %llu)", what, (unsigned long long)min,
		 (unsigned long long)max);
	if (!word)
		return at_end(w, wanted);
	return (digits(word, max, out) && *out >= min) || words_wrong(w, wanted);
}

bool words_signed(struct words *w, const char *what, int64_t limit, int32_t *out)
{
	const char *word = words_take(w);
	uint64_t n;

	if (!word)
		return at_end(w, what);
	if (!digits(word + (*word == '-'), (uint64_t)limit, &n))
		return words_wrong(w, what);
	*out = *word == '-' ? -(int32_t)n : (int32_t)n;
	return true;
}

/* "1.5%" as parts per million. */
bool words_percent(struct words *w, const char *what, uint32_t *ppm)
{
	const char *word = words_take(w);
	uint64_t value = 0;
	int after = -1; /* digits behind the point */

	if (!word)
		return at_end(w, what);
	if (*word < '0' || *word > '9')
		return words_wrong(w, what);
	for (; *word && *word != '%'; word++) {
		if (*word == '.' && after < 0)
			after = 0;
		else if (*word >= '0' && *word <= '9' && value <= 1000000 && after < 4)
			value = value * 10 + (uint64_t)(*word - '0'), after += after >= 0;
		else
			return words_wrong(w, what);
	}
	if (strcmp(word, "%") != 0 || !after)
		return words_wrong(w, what);
	for (after = after < 0 ? 0 : after; after < 4; after++)
		value *= 10;
	*ppm = (uint32_t)value;
	return value <= 1000000 || words_wrong(w, what);
}

bool words_end(struct words *w)
{
	if (w->next == w->count)
		return true;
	w->next++;
	return words_wrong(w, "expected here: the rule is complete");
}
