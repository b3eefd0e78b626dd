// SPDX-License-Identifier: GPL-2.0-only
/*
 * libFuzzer: the input is a list of events (a piece of a real stream, rubbish, an answer) for
 * the tracker. It must not touch memory that is not its own, nor change a packet in secret.
 */
#include "model.h"
#include "pure/rxtrack.h"

static struct stream s;

static void one_packet(struct rxt *t, u32 at, u32 n, const u8 *rubbish)
{
	/* On the heap and exactly as long: an overrun is seen. */
	u8 *p = malloc(n);
	struct rxt_out out;

	if (!p)
		abort();
	if (rubbish)
		memcpy(p, rubbish, n);
	else
		memcpy(p, s.wire + at, n);
	rxt_packet(t, at, p, n, &out);
	if (!out.touched && memcmp(p, rubbish ? rubbish : s.wire + at, n))
		abort();
	free(p);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	struct rxt t;

	if (!s.len) {
		rnd_seed(1);
		stream_make(&s, 200, 300);
	}
	rxt_init(&t, &s.key, s.salt, s.sn, 0);
	while (size >= 5) {
		u32 at = ((u32)data[1] << 8 | data[2]) % s.len;
		u32 n = min_t(u32, data[3] * 6, s.len - at);
		u8 what = data[0];
		u64 sn = s.sn + data[4];

		data += 5;
		size -= 5;
		switch (what % 4) {
		case 0:
			one_packet(&t, t.next < s.len ? t.next : at,
				   min_t(u32, n, s.len - (t.next < s.len ? t.next : at)), NULL);
			break;
		case 1:
			one_packet(&t, at, n, NULL);
			break;
		case 2:
			n = min_t(u32, n, size);
			one_packet(&t, at, n, data);
			data += n;
			size -= n;
			break;
		default:
			rxt_answer(&t, what & 4 ? at : t.cand, sn);
		}
	}
	return 0;
}
