/* SPDX-License-Identifier: Apache-2.0 */
/* Why is there no record header where one must be? */
#include "scene.h"

enum { PAYLOAD_REACH = 65536, SHIFT_MAX = 64, SEEN = 16 };

static bool plausible(const uint8_t *head)
{
	return head[0] >= CHANGE_CIPHER && head[0] <= APPLICATION && head[1] == 3 && head[2] <= 4 &&
	       be16(head + 3) <= RECORD_MAX;
}

/* Does another plausible header, or the end of the stream, follow `at` bytes on? */
static bool goes_on(const struct scene *s, size_t at)
{
	if (s->diff->off + at == s->dir->next)
		return true;
	return at + HEAD <= s->have && plausible(s->near + at);
}

static bool is_plaintext(struct scene *s, struct finding *f)
{
	const struct bytes *payload = payload_of(s->w, s->dir);
	int64_t at;

	if (!compared(s->w, s->dir) || s->have < SEEN ||
	    !nearest(payload->at, payload->len, (int64_t)s->diff->payload, PAYLOAD_REACH, s->near, SEEN, &at))
		return false;
	f->class = "plaintext";
	snprintf(f->detail, sizeof(f->detail), "payload offset %lld", (long long)at);
	return true;
}

static bool is_zero(const struct scene *s, struct finding *f)
{
	static const uint8_t zero[HEAD];

	if (memcmp(s->near, zero, HEAD) != 0)
		return false;
	f->class = "zero run";
	snprintf(f->detail, sizeof(f->detail), "%d", HEAD);
	return true;
}

static void flipped(const struct scene *s, struct finding *f, const uint8_t right[HEAD], int at, int bit)
{
	f->class = "bit flip";
	snprintf(f->detail, sizeof(f->detail), "bit %d", bit);
	show(f, (uint64_t)at, right + at, (size_t)(HEAD - at), s->near + at, (size_t)(HEAD - at));
}

static bool is_flip(const struct scene *s, struct finding *f)
{
	uint8_t right[HEAD] = { APPLICATION, 3, 3, s->near[3], s->near[4] };
	unsigned int bits = 0;

	for (int i = 0; i < 3; i++)
		bits |= (unsigned int)(s->near[i] ^ right[i]) << (8 * i);
	if (__builtin_popcount(bits) == 1) {
		flipped(s, f, right, __builtin_ctz(bits) / 8, __builtin_ctz(bits) % 8);
		return true;
	}
	for (int bit = 0; !bits && bit < 16; bit++) {
		uint16_t len = (uint16_t)(be16(s->near + 3) ^ 1u << bit);

		if (len > RECORD_MAX || !goes_on(s, (size_t)HEAD + len))
			continue;
		put_be16(right + 3, len);
		flipped(s, f, right, bit < 8 ? 4 : 3, bit % 8);
		return true;
	}
	return false;
}

static bool is_replay(const struct scene *s, struct finding *f)
{
	uint64_t at;

	if (s->have < SEEN || !in_window(s->dir, s->diff->off, s->near, &at))
		return false;
	f->class = "replay";
	snprintf(f->detail, sizeof(f->detail), "stream offset %llu", (unsigned long long)at);
	return true;
}

static bool is_shift(const struct scene *s, struct finding *f)
{
	for (size_t n = 1; n <= SHIFT_MAX && n + HEAD <= s->have; n++) {
		const uint8_t *head = s->near + n;

		if (head[0] != APPLICATION || head[1] != 3 || head[2] != 3 || be16(head + 3) > RECORD_MAX ||
		    !goes_on(s, n + HEAD + be16(head + 3)))
			continue;
		f->class = "shift";
		snprintf(f->detail, sizeof(f->detail), "%+d", (int)n);
		return true;
	}
	return false;
}

/* Explain an implausible header. */
void explain_header(struct scene *s, struct finding *f)
{
	f->field = "header";
	f->class = "lost framing";
	show(f, 0, NULL, 0, s->near, smaller(HEAD, s->have));
	if (s->have < HEAD)
		return;
	if (!is_plaintext(s, f) && !is_zero(s, f) && !is_flip(s, f) && !is_replay(s, f))
		is_shift(s, f);
}
