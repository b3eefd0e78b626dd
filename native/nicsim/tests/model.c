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

/* RFC 8446 section 5.2: @inner is the payload with its content type. */
static void put_record13(struct stream *s, u32 index, u32 inner)
{
	u8 *wire = s->wire + s->len, *clear = s->clear + s->len;
	u32 len = inner + REC_TAG, i;
	u64 sn = s->sn + index;
	u8 header[5] = { 23, 3, 3, len >> 8, len }, nonce[GCM_NONCE];

	memcpy(clear, header, sizeof(header));
	memcpy(wire, header, sizeof(header));
	rnd_bytes(clear + 5, inner - 1);
	clear[5 + inner - 1] = rnd_range(0x14, 0x18);
	memcpy(nonce, s->salt, REC_SALT);
	memcpy(nonce + REC_SALT, s->iv, REC_NONCE);
	for (i = 0; i < 8; i++)
		nonce[GCM_NONCE - 1 - i] ^= sn >> (8 * i);
	openssl_gcm(&s->aes, nonce, header, sizeof(header), clear + 5, inner, wire + 5,
		    wire + 5 + inner);
	memcpy(clear + 5 + inner, wire + 5 + inner, REC_TAG);
	s->start[index] = s->len;
	s->len += 5 + inner + REC_TAG;
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

static void stream_fill(struct stream *s, u32 records, u32 most)
{
	u32 i;

	s->aes.len = rnd() & 0x10000 ? 16 : 32;
	rnd_bytes(s->aes.key, sizeof(s->aes.key));
	rnd_bytes(s->salt, sizeof(s->salt));
	rnd_bytes(s->iv, sizeof(s->iv));
	s->sn = rnd();
	s->len = 0;
	for (i = 0; i < records && i < RECORDS_MAX; i++) {
		u32 payload = rnd_range(rnd() & 0xf0000 ? 1 : 0, most);

		if (s->len + payload + REC_PREFIX + REC_TAG > STREAM_MAX)
			break;
		if (s->tls13)
			put_record13(s, i, payload + 1);
		else
			put_record(s, i, payload);
	}
	s->records = i;
	s->start[i] = s->len;
	if (gcm_key_init(&s->key, aes_ctr, &s->aes))
		abort();
}

void stream_make(struct stream *s, u32 records, u32 most)
{
	s->tls13 = false;
	stream_fill(s, records, most);
}

void stream_make13(struct stream *s, u32 records, u32 most)
{
	s->tls13 = true;
	stream_fill(s, records, most);
}

void stream_start(const struct stream *s, struct rec *r)
{
	rec_init(r, &s->key, s->salt, s->sn);
	if (s->tls13)
		rec_tls13(r, s->iv);
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
