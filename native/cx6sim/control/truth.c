/* SPDX-License-Identifier: Apache-2.0 */
/* What a card did by its own count, as a line of JSON: a witness to compare with the driver's counters. */
#include <stdio.h>

#include "cx6.h"

#define NUMBER(name) { #name, offsetof(struct truth, name) }
static const struct {
	const char *name;
	size_t at;
} numbers[] = {
	NUMBER(commands), NUMBER(unknown), NUMBER(doorbells), NUMBER(interrupts), NUMBER(tx_frames), NUMBER(tx_bytes),
	NUMBER(rx_frames), NUMBER(rx_bytes), NUMBER(rx_no_table), NUMBER(rx_no_buffer), NUMBER(rx_bad_checksum),
	NUMBER(own_frames), NUMBER(sealed), NUMBER(tx_tls_frames), NUMBER(tx_tls_bytes), NUMBER(tx_out_of_sync),
	NUMBER(dumps), NUMBER(dumps_over_page), NUMBER(opened), NUMBER(rx_tls_frames), NUMBER(rx_tls_bytes),
	NUMBER(tags_failed), NUMBER(searches), NUMBER(found), NUMBER(confirmed), NUMBER(psv),
};

struct text {
	char *at;
	uint32_t room, len;
};

static void put(struct text *t, const char *name, uint64_t value)
{
	int len = snprintf(t->at + t->len, t->room - t->len, "%s\"%s\":%llu", t->len > 1 ? "," : "", name,
			   (unsigned long long)value);

	if (len > 0 && (uint32_t)len < t->room - t->len)
		t->len += (uint32_t)len;
}

/* How many streams there are, and of receivers in which state. */
static void put_streams(struct text *t, struct card *c)
{
	static const char *const states[] = {
		[RX_IN_STEP] = "rx_in_sync", [RX_SEARCHING] = "rx_searching", [RX_TRACKING] = "rx_tracking",
		[RX_CONFIRMED] = "rx_confirmed", [RX_FAILED] = "rx_failed",
	};
	uint64_t senders = 0, receivers[RX_FAILED + 1] = { 0 };
	const struct tis *tis;
	const struct tir *tir;

	for (uint32_t n = 0; (tis = object_next(c, KIND_TIS, &n));)
		senders += tis->tls.on;
	for (uint32_t n = 0; (tir = object_next(c, KIND_TIR, &n));)
		receivers[tir->tls.state] += tir->tls.on;
	put(t, "tx_streams", senders);
	for (int i = 0; i <= RX_FAILED; i++)
		put(t, states[i], receivers[i]);
}

uint32_t truth_tell(struct card *c, char *out, uint32_t room)
{
	struct text t = { out, room - 3, 1 };

	out[0] = '{';
	put(&t, "card", (uint64_t)c->number);
	put(&t, "link", c->link);
	put(&t, "tis", c->shelf[KIND_TIS].used);
	put(&t, "tir", c->shelf[KIND_TIR].used);
	put(&t, "keys", c->shelf[KIND_DEK].used);
	put_streams(&t, c);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
		uint64_t value;

		memcpy(&value, (const char *)&c->truth + numbers[i].at, sizeof(value));
		put(&t, numbers[i].name, value);
	}
	for (int i = 0; i < FAULTS; i++)
		if (c->fault[i].every || c->fault[i].hit)
			put(&t, fault_name((enum fault)i), c->fault[i].hit);
	memcpy(out + t.len, "}\n", 3);
	return t.len + 2;
}
