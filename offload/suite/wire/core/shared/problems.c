/* SPDX-License-Identifier: Apache-2.0 */
/* What keeps the answer from being complete: each code once, in the order of docs/reference/wire.md. */
#include <stdlib.h>

#include "core.h"

static const char *const names[PROBLEM_CODES] = {
	[NO_SYN] = "no-syn",
	[SECOND_SYN] = "second-syn",
	[STRAY_DATA] = "stray-data",
	[CUT_SEGMENT] = "cut-segment",
	[URGENT] = "urgent",
	[SECOND_FIN] = "second-fin",
	[CLEAR_RECORD] = "clear-record",
	[CHANGE_CIPHER_SPEC] = "change-cipher-spec",
	[TAIL] = "tail",
	[UNREAD_TCP] = "unread-tcp",
	[NO_HELLO] = "no-hello",
	[BAD_VERSION] = "version",
	[BAD_CIPHER] = "cipher",
	[NO_KEY] = "no-key",
	[HANDSHAKE_TOO_LONG] = "handshake-too-long",
	[CLEAR_ALERT] = "clear-alert",
	[RENEGOTIATION] = "renegotiation",
	[EARLY_DATA] = "early-data",
	[TOO_MUCH_REORDER] = "too-much-reorder",
	[OLD_RETRANSMISSION] = "old-retransmission",
	[GAP] = "gap",
	[RESET] = "reset",
	[NO_CLOSE] = "no-close",
	[DATA_AFTER_FIN] = "data-after-fin",
	[PAYLOAD_NOT_COVERED] = "payload-not-covered",
	[CAPTURE_DAMAGED] = "capture-damaged",
	[TOO_MANY_CONNECTIONS] = "too-many-connections",
	[AMBIGUOUS_PAYLOAD] = "ambiguous-payload",
	[NO_TLS] = "no-tls",
};

const char *problem_name(enum problem_code code)
{
	return names[code];
}

bool has_problem(const struct problems *p, enum problem_code code)
{
	return p->mask >> code & 1;
}

void problem(struct problems *p, enum problem_code code, uint64_t at)
{
	struct problem **end = &p->list, *one;

	if (has_problem(p, code))
		return;
	while (*end && (*end)->code < code)
		end = &(*end)->next;
	one = grab(sizeof(*one));
	*one = (struct problem){ .next = *end, .at = at, .code = (uint8_t)code };
	*end = one;
	p->mask |= 1u << code;
}

/* The lowest place counts, also if a higher one was met before. */
void problem_lower(struct problems *p, enum problem_code code, uint64_t at)
{
	problem(p, code, at);
	for (struct problem *i = p->list; i; i = i->next)
		if (i->code == code && at < i->at)
			i->at = at;
}

/* Take a problem back. */
void problem_drop(struct problems *p, enum problem_code code)
{
	struct problem **at = &p->list, *one;

	if (!has_problem(p, code))
		return;
	while ((*at)->code != code)
		at = &(*at)->next;
	one = *at;
	*at = one->next;
	free(one);
	p->mask &= ~(1u << code);
}

void problems_free(struct problems *p)
{
	struct problem *next;

	for (struct problem *i = p->list; i; i = next) {
		next = i->next;
		free(i);
	}
	*p = (struct problems){ 0 };
}
