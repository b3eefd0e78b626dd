/* SPDX-License-Identifier: Apache-2.0 */
/* libFuzzer: keylogs of strangers. What was counted has to fit the lines, and what was read has to be found again. */
#include <stdlib.h>

#include "secrets/keylog.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool right)
{
	if (!right)
		abort();
}

static uint64_t lines_of(const uint8_t *data, size_t size)
{
	uint64_t n = 1;

	for (size_t i = 0; i < size; i++)
		n += data[i] == '\n';
	return n;
}

/* Are these the digits of the secret? */
static bool same(const uint8_t *text, const uint8_t *secret, size_t len)
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < 2 * len; i++) {
		uint8_t half = i % 2 ? secret[i / 2] & 15 : secret[i / 2] >> 4;

		if ((text[i] | 0x20) != digits[half] && text[i] != digits[half])
			return false;
	}
	return true;
}

/* Each line that counts is found under its label, and under a random that nobody has there is nothing. */
static void find_all(const struct keylog *k, uint8_t secret[SECRET_MAX])
{
	uint8_t random[32];

	for (uint32_t i = 0; i < k->count; i++) {
		const struct key_line *l = &k->lines[i];

		must(l->label < LABELS && (l->len == 32 || l->len == 48));
		must(l->at + 2u * l->len <= k->text.len);
		must(keylog_find(k, (enum label)l->label, l->random, secret) == l->len);
		must(same(k->text.at + l->at, secret, l->len));
		memcpy(random, l->random, sizeof(random));
		random[i % 32] ^= 0x80;
		for (int label = MASTER_SECRET; label < LABELS; label++)
			must(keylog_find(k, (enum label)label, random, secret) <= SECRET_MAX);
	}
	for (int label = MASTER_SECRET; label < LABELS && !k->count; label++)
		must(keylog_find(k, (enum label)label, memset(random, 0, sizeof(random)), secret) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *secret = malloc(SECRET_MAX); /* of its own, so that a byte too many is noticed */
	struct keylog k;

	must(secret);
	keylog_parse(&k, (struct bytes){ .at = data, .len = size, .given = true }, 0x5a);
	must(k.count <= k.keys && k.keys + k.bad <= lines_of(data, size) && (k.count || !k.keys));
	find_all(&k, secret);
	keylog_free(&k);
	free(secret);
	return 0;
}
