/* SPDX-License-Identifier: Apache-2.0 */
/* Secrets by client random, as they stand in an SSLKEYLOGFILE. */
#ifndef WIRE_KEYLOG_H
#define WIRE_KEYLOG_H

#include "bytes.h"

enum label {
	MASTER_SECRET, CLIENT_HANDSHAKE, SERVER_HANDSHAKE, CLIENT_TRAFFIC, SERVER_TRAFFIC, CLIENT_EARLY, LABELS,
};
enum { SECRET_MAX = 48 };

struct key_line {
	uint8_t random[32];
	uint32_t at; /* of the secret's hexadecimal, in the text */
	uint8_t label, len; /* len of the secret in bytes */
};

/* The text is borrowed, not copied: it is the owner who wipes it. */
struct keylog {
	struct bytes text;
	struct key_line *lines;
	uint32_t count, room;
	uint32_t *index, mask;
	uint64_t keys, bad, seed;
};

void keylog_parse(struct keylog *k, struct bytes text, uint64_t seed);
size_t keylog_find(const struct keylog *k, enum label label, const uint8_t random[32], uint8_t secret[SECRET_MAX]);
void keylog_free(struct keylog *k);

#endif
