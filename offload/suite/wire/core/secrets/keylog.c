/* SPDX-License-Identifier: Apache-2.0 */
/* Which secret belongs to this client random? Lines are "LABEL RANDOM SECRET"; none of them is ever printed. */
#include <stdlib.h>

#include <openssl/crypto.h>

#include "keylog.h"
#include "text.h"

static const char *const labels[LABELS] = {
	[MASTER_SECRET] = "CLIENT_RANDOM",
	[CLIENT_HANDSHAKE] = "CLIENT_HANDSHAKE_TRAFFIC_SECRET",
	[SERVER_HANDSHAKE] = "SERVER_HANDSHAKE_TRAFFIC_SECRET",
	[CLIENT_TRAFFIC] = "CLIENT_TRAFFIC_SECRET_0",
	[SERVER_TRAFFIC] = "SERVER_TRAFFIC_SECRET_0",
	[CLIENT_EARLY] = "CLIENT_EARLY_TRAFFIC_SECRET",
};

static bool blank(uint8_t c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

static int digit(uint8_t c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool from_hex(struct bytes word, uint8_t *out)
{
	for (size_t i = 0; i + 1 < word.len; i += 2) {
		int high = digit(word.at[i]), low = digit(word.at[i + 1]);

		if (high < 0 || low < 0)
			return false;
		out[i / 2] = (uint8_t)(high << 4 | low);
	}
	return word.len % 2 == 0;
}

/* Cut the next word off the line; empty at its end. */
static struct bytes next_word(struct bytes *line)
{
	struct bytes word = { .at = line->at };

	while (line->len && blank(*line->at))
		line->at++, line->len--;
	word.at = line->at;
	while (line->len && !blank(*line->at))
		line->at++, line->len--, word.len++;
	return word;
}

static int label_of(struct bytes word)
{
	for (int i = 0; i < LABELS; i++)
		if (word.len == strlen(labels[i]) && memcmp(word.at, labels[i], word.len) == 0)
			return i;
	return LABELS;
}

/* Could this be the label of another secret? */
static bool like_label(struct bytes word)
{
	for (size_t i = 0; i < word.len; i++)
		if (!(word.at[i] >= 'A' && word.at[i] <= 'Z') && !(word.at[i] >= '0' && word.at[i] <= '9') &&
		    word.at[i] != '_')
			return false;
	return true;
}

static uint64_t place_of(const struct keylog *k, uint8_t label, const uint8_t random[32])
{
	uint64_t h = k->seed ^ label;

	for (int i = 0; i < 32; i += 8)
		h = mix64(h ^ raw64(random + i));
	return h;
}

static uint32_t *slot_of(const struct keylog *k, uint8_t label, const uint8_t random[32])
{
	uint64_t i = place_of(k, label, random);

	for (;; i++) {
		uint32_t *slot = &k->index[i & k->mask];
		const struct key_line *l = *slot ? &k->lines[*slot - 1] : NULL;

		if (!l || (l->label == label && memcmp(l->random, random, 32) == 0))
			return slot;
	}
}

static void grow(struct keylog *k)
{
	k->room = k->room ? k->room * 2 : 16;
	k->lines = regrab(k->lines, k->room * sizeof(*k->lines));
	free(k->index);
	k->mask = k->room * 2 - 1;
	k->index = grab(sizeof(*k->index) * k->room * 2);
	for (uint32_t i = 0; i < k->count; i++)
		*slot_of(k, k->lines[i].label, k->lines[i].random) = i + 1;
}

static void add_line(struct keylog *k, const struct key_line *l)
{
	uint32_t *slot;

	if (k->count == k->room)
		grow(k);
	slot = slot_of(k, l->label, l->random);
	k->keys++;
	if (*slot) /* the first one counts */
		return;
	k->lines[k->count++] = *l;
	*slot = k->count;
}

static bool right_length(int label, size_t digits)
{
	return digits == 96 || (label != MASTER_SECRET && digits == 64);
}

static void parse_line(struct keylog *k, struct bytes line)
{
	struct bytes label = next_word(&line), random = next_word(&line), secret = next_word(&line);
	uint8_t scratch[SECRET_MAX];
	struct key_line l;
	int which;

	if (!label.len || label.at[0] == '#')
		return;
	which = label_of(label);
	if (which == LABELS) {
		k->bad += !like_label(label) || !random.len;
		return;
	}
	if (next_word(&line).len || random.len != 64 || !right_length(which, secret.len) ||
	    !from_hex(random, l.random) || !from_hex(secret, scratch)) {
		k->bad++;
	} else {
		l.label = (uint8_t)which;
		l.len = (uint8_t)(secret.len / 2);
		l.at = (uint32_t)(secret.at - k->text.at);
		add_line(k, &l);
	}
	OPENSSL_cleanse(scratch, sizeof(scratch));
}

/* Read all lines; `keys` and `bad` are counted. The text (below 4 GiB) must outlive *k. */
void keylog_parse(struct keylog *k, struct bytes text, uint64_t seed)
{
	const uint8_t *at = text.at, *end = text.at + text.len;

	*k = (struct keylog){ .text = text, .seed = seed };
	grow(k);
	while (at < end) {
		const uint8_t *stop = memchr(at, '\n', (size_t)(end - at));

		stop = stop ? stop : end;
		parse_line(k, (struct bytes){ .at = at, .len = (size_t)(stop - at) });
		at = stop + 1;
	}
}

/* The length of the secret, 0 if there is none. */
size_t keylog_find(const struct keylog *k, enum label label, const uint8_t random[32], uint8_t secret[SECRET_MAX])
{
	uint32_t slot = *slot_of(k, (uint8_t)label, random);
	const struct key_line *l;

	if (!slot)
		return 0;
	l = &k->lines[slot - 1];
	from_hex((struct bytes){ .at = k->text.at + l->at, .len = l->len * 2u }, secret);
	return l->len;
}

void keylog_free(struct keylog *k)
{
	free(k->lines);
	free(k->index);
	*k = (struct keylog){ 0 };
}
