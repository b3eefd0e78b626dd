/* SPDX-License-Identifier: Apache-2.0 */
/* What can be known of a differing record: its bytes, the right ones, and whether a key opens it. */
#include <stdlib.h>

#include "scene.h"

/* Where C begins in the stream. */
uint64_t c_offset(const struct scene *s)
{
	return s->diff->off + HEAD + suite_nonce_len(s->diff->epoch->suite);
}

/* Is the record authentic under these keys, number and type, if its length field said len? Plaintext to scratch. */
bool scene_open(struct scene *s, const struct epoch *e, uint64_t seq, uint8_t type, size_t len)
{
	size_t overhead = suite_overhead(e->suite), skip = HEAD + suite_nonce_len(e->suite);
	struct label_of_record l;

	if (len < overhead || len > RECORD_MAX || s->have < HEAD + len)
		return false;
	record_label(e, seq, type, len - overhead, suite_nonce_len(e->suite) ? s->near + HEAD : NULL, &l);
	return open_record(s->o, e, &l, s->near + skip, len - overhead, s->scratch);
}

/* What P is in full: the payload, then in TLS 1.3 type and padding, as long as the authentic record had it. */
static void expect(struct scene *s)
{
	const struct bytes *payload = payload_of(s->w, s->dir);
	bool inner = s->diff->epoch->suite->tls == 13;

	s->plain = s->n - (inner && s->n);
	if (s->authentic && inner) {
		while (s->plain && !s->d[s->plain])
			s->plain--;
	}
	memset(s->p, 0, s->n);
	s->has_payload = s->diff->type == APPLICATION && s->diff->compared && s->diff->payload <= payload->len &&
			 s->plain <= payload->len - s->diff->payload;
	if (!s->has_payload)
		return;
	memcpy(s->p, payload->at + s->diff->payload, s->plain);
	if (inner && s->n)
		s->p[s->plain] = APPLICATION;
}

/* Seal P, or without a payload what was decrypted: then want has the ciphertext of the wire and the right tag. */
static bool wanted(struct scene *s)
{
	const struct epoch *e = s->diff->epoch;
	struct label_of_record l;

	record_label(e, s->diff->seq, s->diff->type, s->n, s->explicit, &l);
	return seal(s->o, e, &l, s->has_payload ? s->p : s->d, s->n, s->want);
}

static void differing(struct scene *s)
{
	s->i = s->n;
	s->j = 0;
	for (size_t k = 0; k < s->n; k++) {
		if (s->c[k] == s->want[k])
			continue;
		s->i = s->i == s->n ? k : s->i;
		s->j = k;
	}
}

/* Collect it all; false if the record is no longer remembered, or has no content. */
bool scene_begin(struct scene *s)
{
	const struct epoch *e = s->diff->epoch;
	size_t overhead = e ? suite_overhead(e->suite) : 0;

	if (!e || s->diff->len < overhead || s->have < HEAD + s->diff->len)
		return false;
	s->n = s->diff->len - overhead;
	s->explicit = suite_nonce_len(e->suite) ? s->near + HEAD : NULL;
	s->c = s->near + HEAD + suite_nonce_len(e->suite);
	s->authentic = scene_open(s, e, s->diff->seq, s->diff->type, s->diff->len);
	memcpy(s->d, s->scratch, s->n);
	expect(s);
	if (!wanted(s))
		return false;
	differing(s);
	return true;
}

/* Find `what` in a buffer, nearest to `from` first, at most `reach` away, the earlier of two. */
bool nearest(const uint8_t *in, size_t size, int64_t from, int64_t reach, const uint8_t *what, size_t len, int64_t *at)
{
	int64_t last = (int64_t)size - (int64_t)len;

	for (int64_t k = 0; k <= reach; k++) {
		if (k <= from && from - k <= last && memcmp(in + from - k, what, len) == 0) {
			*at = from - k;
			return true;
		}
		if (from + k <= last && memcmp(in + from + k, what, len) == 0) {
			*at = from + k;
			return true;
		}
	}
	return false;
}

/* Are these 16 bytes in the stream within the WINDOW bytes before `end`? The nearest place. */
bool in_window(const struct dir *d, uint64_t end, const uint8_t what[16], uint64_t *at)
{
	uint64_t from = end > WINDOW ? end - WINDOW : 0;
	size_t len = (size_t)(end - from);
	uint8_t *window = grab(len);
	bool found = false;
	int64_t k;

	if (len >= 16 && stream_copy(d, from, window, len) == len)
		found = nearest(window, len, (int64_t)len - 16, (int64_t)len, what, 16, &k);
	if (found)
		*at = from + (uint64_t)k;
	free(window);
	return found;
}

/* Fill in place and bytes of a finding. */
void show(struct finding *f, uint64_t at, const uint8_t *expected, size_t expected_len, const uint8_t *got,
	  size_t got_len)
{
	f->at = at;
	f->expected_len = (uint8_t)smaller(16, expected_len);
	f->got_len = (uint8_t)smaller(16, got_len);
	if (f->expected_len)
		memcpy(f->expected, expected, f->expected_len);
	if (f->got_len)
		memcpy(f->got, got, f->got_len);
}
