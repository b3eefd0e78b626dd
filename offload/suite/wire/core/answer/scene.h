/* SPDX-License-Identifier: Apache-2.0 */
/* One differing record with everything around it that an explanation may need. */
#ifndef WIRE_SCENE_H
#define WIRE_SCENE_H

#include "core.h"

enum { NEAR = 2 * (HEAD + RECORD_MAX) + 64 };

/* c: what is encrypted on the wire, n bytes, and the tag behind it. With a payload: p the expected plaintext (in TLS 1.3
 * with type and padding), want its ciphertext and tag, d the decrypted c, [i, j] where c differs (i = n: nowhere). */
struct scene {
	struct wire *w;
	const struct dir *dir;
	const struct diff *diff;
	struct opener *o;
	uint8_t near[NEAR]; /* the stream from the record's header on */
	size_t have;
	const uint8_t *explicit, *c;
	size_t n, plain; /* plain: n without inner type and padding */
	bool authentic, has_payload;
	uint8_t d[PLAIN_MAX], p[PLAIN_MAX], want[PLAIN_MAX + TAG], scratch[PLAIN_MAX + TAG];
	size_t i, j;
};

bool scene_open(struct scene *s, const struct epoch *e, uint64_t seq, uint8_t type, size_t len);
bool scene_begin(struct scene *s);
uint64_t c_offset(const struct scene *s);
bool nearest(const uint8_t *in, size_t size, int64_t from, int64_t reach, const uint8_t *what, size_t len, int64_t *at);
bool in_window(const struct dir *d, uint64_t end, const uint8_t what[16], uint64_t *at);
void explain_content(struct scene *s, struct finding *f);
void explain_header(struct scene *s, struct finding *f);
bool wrong_key(struct scene *s, struct finding *f);
void show(struct finding *f, uint64_t at, const uint8_t *expected, size_t expected_len, const uint8_t *got, size_t got_len);

#endif
