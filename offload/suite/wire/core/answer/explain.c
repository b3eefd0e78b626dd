/* SPDX-License-Identifier: Apache-2.0 */
/* Why does the first differing record of a direction differ? (docs/reference/wire.md, "Classes of a difference") */
#define _GNU_SOURCE
#include <stdlib.h>

#include "scene.h"

static int bit_of(unsigned int one_bit)
{
	return __builtin_ctz(one_bit);
}

/* A header that is plausible but wrong: the type (TLS 1.3, where only 23 is right) or the version. */
static void explain_head(const struct scene *s, struct finding *f, bool type)
{
	uint8_t right[HEAD] = { type ? APPLICATION : s->near[0], 3, 3, s->near[3], s->near[4] };
	int at = type ? 0 : s->near[1] == 3 ? 2 : 1;
	unsigned int bits = type ? s->near[0] ^ APPLICATION :
				   (unsigned int)(s->near[1] ^ 3) << 8 | (s->near[2] ^ 3);

	f->field = "header";
	f->class = "lost framing";
	show(f, (uint64_t)at, right + at, (size_t)(HEAD - at), s->near + at, (size_t)(HEAD - at));
	if (__builtin_popcount(bits) == 1) {
		f->class = "bit flip";
		snprintf(f->detail, sizeof(f->detail), "bit %d", bit_of(bits) % 8);
	}
}

static void explain_nonce(const struct scene *s, struct finding *f)
{
	uint8_t wanted[8];
	int at = 0;

	put_be64(wanted, s->diff->nonce_wanted);
	while (at < 7 && wanted[at] == s->near[HEAD + at])
		at++;
	f->field = "nonce";
	f->class = s->diff->reused ? "nonce reuse" : "nonce step";
	show(f, (uint64_t)at, wanted + at, (size_t)(8 - at), s->near + HEAD + at, (size_t)(8 - at));
}

/* More application data than payload: what was sent beyond it, if it is known for sure. */
static void explain_excess(struct scene *s, struct finding *f)
{
	const struct bytes *payload = payload_of(s->w, s->dir);
	uint64_t at = s->diff->payload < payload->len ? payload->len - s->diff->payload : 0;

	if (scene_begin(s) && !s->authentic) {
		explain_content(s, f);
		return;
	}
	f->field = "payload";
	f->class = "excess";
	f->at = payload->len;
	if (at < s->plain)
		show(f, f->at, NULL, 0, s->d + at, s->plain - at);
}

static void explain_short(const struct scene *s, struct finding *f)
{
	const struct bytes *payload = payload_of(s->w, s->dir);

	f->field = "payload";
	f->class = "truncation";
	show(f, s->diff->payload, payload->at + s->diff->payload, payload->len - s->diff->payload, NULL, 0);
}

/* Payload in a record that is not protected. */
static void explain_clear(const struct scene *s, struct finding *f)
{
	const struct bytes *source = s->diff->type == PAYLOAD ? &s->w->q->payload : &s->w->q->reply;

	f->field = "payload";
	f->class = "plaintext";
	snprintf(f->detail, sizeof(f->detail), "%s offset %llu", s->diff->type == PAYLOAD ? "payload" : "reply",
		 (unsigned long long)s->diff->payload);
	show(f, s->diff->len, NULL, 0, source->at + s->diff->payload, NEEDLE);
}

static void explain_length(const char *class, struct finding *f)
{
	f->field = "length";
	f->class = class;
}

/* Say what is different about d->first. */
void explain(struct wire *w, const struct dir *d, struct finding *f)
{
	struct scene *s = regrab(NULL, sizeof(*s));

	s->w = w;
	s->dir = d;
	s->diff = &d->first;
	s->o = &w->opener;
	s->plain = 0;
	memset(s->near, 0, 16); /* in case it is forgotten */
	s->have = stream_copy(d, d->first.off, s->near, NEAR);
	switch (d->first.kind) {
	case DIFF_HEADER:
		explain_header(s, f);
		break;
	case DIFF_TYPE:
	case DIFF_VERSION:
		explain_head(s, f, d->first.kind == DIFF_TYPE);
		break;
	case DIFF_NONCE:
		explain_nonce(s, f);
		break;
	case DIFF_EXCESS:
		explain_excess(s, f);
		break;
	case DIFF_SHORT:
		explain_short(s, f);
		break;
	case DIFF_CONTENT:
		explain_content(s, f);
		break;
	case DIFF_CLEAR:
		explain_clear(s, f);
		break;
	default:
		explain_length(d->first.kind == DIFF_MALFORMED ? "malformed" : "truncation", f);
	}
	free(s);
}

/* Name what came again and was different. */
const char *retransmission_class(const struct wire *w, const struct dir *d)
{
	const struct retransmission *r = d->resent;
	const struct bytes *payload = payload_of(w, d);

	if (r->bits == 1)
		return "bit flip";
	if (r->zeros && r->bytes >= 4)
		return "zero run";
	if (compared(w, d) && r->len >= 8 && payload->len && memmem(payload->at, payload->len, r->got, r->len))
		return "plaintext";
	return "differs";
}
