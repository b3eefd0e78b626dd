/* SPDX-License-Identifier: Apache-2.0 */
/* Why does the content of a record differ? The rules of wire.md, in their order; the first that holds is it. */
#include <stdarg.h>

#include "scene.h"

enum { SEQ_REACH = 16, BLOCK_REACH = 64, SHIFT_REACH = 256, PAYLOAD_REACH = 1 << 20 };

static bool named(struct finding *f, const char *class, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

static bool named(struct finding *f, const char *class, const char *fmt, ...)
{
	va_list ap;

	f->class = class;
	va_start(ap, fmt);
	vsnprintf(f->detail, sizeof(f->detail), fmt, ap);
	va_end(ap);
	return true;
}

/* 1, -1, 2, -2 ... */
static int alternate(int n)
{
	return n % 2 ? -(n / 2 + 1) : n / 2 + 1;
}

/* Rule 1: one bit of the header. */
static bool header_flip(struct scene *s, struct finding *f)
{
	const struct diff *d = s->diff;
	uint8_t right[HEAD];
	unsigned int bits = s->near[0] ^ APPLICATION;
	int at = -1, bit = __builtin_ctz(bits | 256);

	memcpy(right, s->near, HEAD);
	if (d->epoch->suite->tls == 12 && __builtin_popcount(bits) == 1 &&
	    scene_open(s, d->epoch, d->seq, APPLICATION, d->len)) {
		right[0] = APPLICATION;
		at = 0;
	}
	for (int b = 0; at < 0 && b < 15; b++) {
		if (!scene_open(s, d->epoch, d->seq, d->type, d->len ^ 1u << b))
			continue;
		put_be16(right + 3, (uint16_t)(d->len ^ 1u << b));
		at = b < 8 ? 4 : 3;
		bit = b % 8;
	}
	if (at < 0)
		return false;
	f->field = "header";
	show(f, (uint64_t)at, right + at, (size_t)(HEAD - at), s->near + at, (size_t)(HEAD - at));
	return named(f, "bit flip", "bit %d", bit);
}

/* Rule 2. */
static bool wrong_sequence(struct scene *s, struct finding *f)
{
	for (int n = 0; n < 2 * SEQ_REACH; n++) {
		int k = alternate(n);

		if (k < 0 && s->diff->seq < (uint64_t)-k)
			continue;
		if (scene_open(s, s->diff->epoch, s->diff->seq + (uint64_t)k, s->diff->type, s->diff->len))
			return named(f, "wrong sequence", "%+d", k);
	}
	return false;
}

/* Rule 4: exactly one bit of ciphertext and tag. */
static bool one_bit(const struct scene *s, struct finding *f)
{
	int bits = 0, bit = 0;

	for (size_t k = 0; k < s->n + TAG && bits < 2; k++) {
		unsigned int x = s->c[k] ^ s->want[k];

		bits += __builtin_popcount(x);
		bit = x ? __builtin_ctz(x) : bit;
	}
	return bits == 1 && named(f, "bit flip", "bit %d", bit);
}

/* Rule 5: authentic, but not the payload. */
static bool other_payload(struct scene *s, struct finding *f)
{
	const struct bytes *payload = payload_of(s->w, s->dir);
	int64_t from = (int64_t)(s->diff->payload + s->i), at;
	size_t w = s->i < s->plain ? smaller(16, s->plain - s->i) : 0;

	if (!s->authentic || s->i == s->n)
		return false;
	if (s->i < s->plain)
		show(f, s->i, s->p + s->i, s->plain - s->i, s->d + s->i, s->plain - s->i);
	if (w < 8 || !nearest(payload->at, payload->len, from, PAYLOAD_REACH, s->d + s->i, w, &at))
		return named(f, "wrong payload", "%s", "");
	if (at < from)
		return named(f, "replay", "payload offset %lld", (long long)at);
	return named(f, "shift", "+%lld", (long long)(at - from));
}

/* Rule 6. */
static bool zero_run(const struct scene *s, struct finding *f)
{
	if (s->i == s->n || s->j - s->i + 1 < 4)
		return false;
	for (size_t k = s->i; k <= s->j; k++)
		if (s->c[k])
			return false;
	return named(f, "zero run", "%zu", s->j - s->i + 1);
}

/* Rule 7. */
static bool plaintext(const struct scene *s, struct finding *f)
{
	size_t w = s->i < s->n ? smaller(16, s->j - s->i + 1) : 0;

	if (w < 4 || memcmp(s->c + s->i, s->p + s->i, w) != 0)
		return false;
	return named(f, "plaintext", "payload offset %llu", (unsigned long long)(s->diff->payload + s->i));
}

/* Rule 8. */
static bool replay(const struct scene *s, struct finding *f)
{
	uint64_t at;

	if (s->n - s->i < 16 || !in_window(s->dir, c_offset(s) + s->i, s->c + s->i, &at))
		return false;
	return named(f, "replay", "stream offset %llu", (unsigned long long)at);
}

/* Rule 9. */
static bool shift(const struct scene *s, struct finding *f)
{
	for (int n = 0; s->n - s->i >= 16 && n < 2 * SHIFT_REACH; n++) {
		int64_t at = (int64_t)s->i + alternate(n);

		if (at >= 0 && (size_t)at + 16 <= s->n + TAG && memcmp(s->c + s->i, s->want + at, 16) == 0)
			return named(f, "shift", "%+d", alternate(n));
	}
	return false;
}

/* Rule 10. */
static bool wrong_keystream(struct scene *s, struct finding *f)
{
	const struct epoch *e = s->diff->epoch;
	size_t w = s->i < s->plain ? smaller(16, s->plain - s->i) : 0;
	uint8_t seen[16], stream[16];
	struct label_of_record l;

	if (w < 8)
		return false;
	for (size_t k = 0; k < w; k++)
		seen[k] = s->c[s->i + k] ^ s->p[s->i + k];
	record_label(e, s->diff->seq, s->diff->type, s->n, s->explicit, &l);
	for (int n = 0; n < 2 * BLOCK_REACH; n++) {
		int64_t at = (int64_t)s->i + 16 * alternate(n);

		if (at >= 0 && keystream(s->o, e, l.nonce, (size_t)at, stream, w) && memcmp(stream, seen, w) == 0)
			return named(f, "wrong keystream", "blocks %+d", alternate(n));
	}
	for (int n = 0; !s->explicit && n < 2 * SEQ_REACH; n++) {
		int k = alternate(n);

		if (k < 0 && s->diff->seq < (uint64_t)-k)
			continue;
		record_label(e, s->diff->seq + (uint64_t)k, s->diff->type, s->n, NULL, &l);
		if (keystream(s->o, e, l.nonce, s->i, stream, w) && memcmp(stream, seen, w) == 0)
			return named(f, "wrong keystream", "sequence %+d", k);
	}
	return false;
}

static void where(const struct scene *s, struct finding *f)
{
	size_t t = 0;

	f->field = s->i < s->n ? "ciphertext" : "tag";
	if (s->i < s->n) {
		show(f, s->i, s->want + s->i, s->n - s->i, s->c + s->i, s->n - s->i);
		return;
	}
	while (t < TAG && s->c[s->n + t] == s->want[s->n + t])
		t++;
	show(f, t, s->want + s->n + t, TAG - t, s->c + s->n + t, TAG - t);
}

/* Explain a record whose content is not what it should be. */
void explain_content(struct scene *s, struct finding *f)
{
	f->field = "tag";
	f->class = s->diff->compared ? "garbage" : "unauthentic";
	if (!scene_begin(s))
		return;
	where(s, f);
	if (header_flip(s, f) || wrong_sequence(s, f) || wrong_key(s, f))
		return;
	if (!s->has_payload) {
		f->class = "unauthentic";
		return;
	}
	if (one_bit(s, f) || other_payload(s, f) || zero_run(s, f) || plaintext(s, f) || replay(s, f) ||
	    shift(s, f) || wrong_keystream(s, f))
		return;
	if (s->i == s->n)
		named(f, "bad tag", "%s", "");
	else
		named(f, "garbage", "bytes %zu to %zu", s->i, s->j);
}
