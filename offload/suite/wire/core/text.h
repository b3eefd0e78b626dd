/* SPDX-License-Identifier: Apache-2.0 */
/* Text that grows, memory or the end of the program, and one sentence about what went wrong. */
#ifndef WIRE_TEXT_H
#define WIRE_TEXT_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum exit_code { RC_OK = 0, RC_INPUT = 2, RC_INTERNAL = 70 };

struct failure {
	enum exit_code code;
	char message[400];
};

/* What is added goes to `to` in pieces, or stays in buf (zero-terminated) if that is NULL. */
struct text {
	char *buf;
	size_t len, cap;
	FILE *to;
};

int failed(struct failure *f, enum exit_code code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
void text_add(struct text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void text_hex(struct text *t, const uint8_t *at, size_t len);
void text_flush(struct text *t);

void *grab(size_t size);
void *regrab(void *old, size_t size);

#endif
