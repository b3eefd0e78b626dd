// SPDX-License-Identifier: GPL-2.0-only
/* Makes record streams with OpenSSL only: nothing here is shared with what is tested. */
#include "model.h"

static void put_prefix(u8 *p, u32 payload)
{
	u32 len = payload + REC_OVERHEAD;

	p[0] = rnd_range(0x14, 0x18);
	p[1] = 3;
	p[2] = 3;
	p[3] = len >> 8;
	p[4] = len;
	rnd_bytes(p + REC_HEADER, REC_NONCE);
}

static void put_record(struct stream *s, u32 index, u32 payload)
{
	u8 *wire = s->wire + s->len, *clear = s->clear + s->len;
	u64 sn = s->sn + index;
	u8 aad[13], nonce[GCM_NONCE];
	u32 i;

	put_prefix(clear, payload);
	rnd_bytes(clear + REC_PREFIX, payload);
	for (i = 0; i < 8; i++)
		aad[i] = sn >> (56 - 8 * i);
	memcpy(aad + 8, clear, 3);
	aad[11] = payload >> 8;
	aad[12] = payload;
	memcpy(nonce, s->salt, REC_SALT);
	memcpy(nonce + REC_SALT, clear + REC_HEADER, REC_NONCE);
	memcpy(wire, clear, REC_PREFIX);
	openssl_gcm(&s->aes, nonce, aad, sizeof(aad), clear + REC_PREFIX, payload,
		    wire + REC_PREFIX, wire + REC_PREFIX + payload);
	memcpy(clear + REC_PREFIX + payload, wire + REC_PREFIX + payload, REC_TAG);
	s->start[index] = s->len;
	s->len += REC_PREFIX + payload + REC_TAG;
}

void stream_make(struct stream *s, u32 records, u32 most)
{
	u32 i;

	s->aes.len = rnd() & 0x10000 ? 16 : 32;
	rnd_bytes(s->aes.key, sizeof(s->aes.key));
	rnd_bytes(s->salt, sizeof(s->salt));
	s->sn = rnd();
	s->len = 0;
	for (i = 0; i < records && i < RECORDS_MAX; i++) {
		u32 payload = rnd_range(rnd() & 0xf0000 ? 1 : 0, most);

		if (s->len + payload + REC_PREFIX + REC_TAG > STREAM_MAX)
			break;
		put_record(s, i, payload);
	}
	s->records = i;
	s->start[i] = s->len;
	if (gcm_key_init(&s->key, aes_ctr, &s->aes))
		abort();
}

u32 stream_record(const struct stream *s, u32 at)
{
	u32 lo = 0, hi = s->records;

	while (hi - lo > 1) {
		u32 mid = (lo + hi) / 2;

		if (s->start[mid] <= at)
			lo = mid;
		else
			hi = mid;
	}
	return lo;
}

bool stream_is_start(const struct stream *s, u32 at)
{
	return at < s->len && s->start[stream_record(s, at)] == at;
}
