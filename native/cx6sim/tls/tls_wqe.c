/* SPDX-License-Identifier: Apache-2.0 */
/* WQEs that set and ask a TLS stream: its key and record number, where it begins, what the receive side has found. */
#include "cx6.h"

/* mlx5e_set_tls_static_params_wqe: control, UMR control and memory key segments come first */
enum { STATIC_AT = 16 + 48 + 64, PROGRESS_AT = 16, ASK_AT = 16, ASK_PLACE = 24, ASK_TIR = 32 };
enum { TRACKER_START, TRACKER_TRACKING, TRACKER_SEARCHING };
enum { AUTH_NO_OFFLOAD, AUTH_OFFLOAD, AUTH_FAILED };
#define TLS_1_2 2u

static struct tls *stream(struct card *c, uint32_t number, bool tx)
{
	struct tis *tis = tx ? object_find(c, KIND_TIS, number) : NULL;
	struct tir *tir = tx ? NULL : object_find(c, KIND_TIR, number);

	return tis ? &tis->tls : tir ? &tir->tls : NULL;
}

/* For a receive stream that is on, static parameters are the driver's answer: this is the record that begins there. */
static void confirm(struct card *c, struct tls *t)
{
	if (fault_hit(c, FAULT_RX_NUMBER))
		t->first[7] ^= 1;
	if (t->state == RX_TRACKING && t->resync == t->found) {
		t->state = RX_CONFIRMED;
		c->truth.confirmed++;
	}
}

/* The bad card knows AES-128 only. */
static uint32_t key_size(struct card *c, const struct dek *key)
{
	return key->size == 32 && fault_hit(c, FAULT_HALF_KEY) ? 16 : key->size;
}

/* Linux 6.1 uses a TIS again for a later connection: with another key it is another stream, which has sent nothing. */
static void another(struct tls *t, const struct dek *key)
{
	t->on = t->on && !memcmp(t->key, key->key, sizeof(t->key));
	memcpy(t->key, key->key, sizeof(t->key));
}

void tls_static(struct card *c, const struct wqe *w, bool tx)
{
	struct view v = { (uint8_t *)w->byte + STATIC_AT, w->len > STATIC_AT ? w->len - STATIC_AT : 0 };
	struct tls *t = stream(c, w->target, tx);
	uint32_t first = F(tls_static_params, initial_record_number).bit / 8, iv = F(tls_static_params, gcm_iv).bit / 8;
	struct dek *key;

	if (!t || !view_has(v, iv, 4) || get(v, F(tls_static_params, tls_version)) != TLS_1_2) {
		say(c, 0, "invalid static parameters for stream %u: ignored", w->target);
		return;
	}
	key = object_find(c, KIND_DEK, get(v, F(tls_static_params, dek_index)));
	if (!key || !record_key(&t->record, key->key, key_size(c, key), tx)) {
		say(c, 0, "stream %u names a key that the driver has not created", w->target);
		return;
	}
	if (tx)
		another(t, key);
	memcpy(t->first, v.at + first, sizeof(t->first));
	memcpy(t->record.salt, v.at + iv, sizeof(t->record.salt));
	t->resync = get(v, F(tls_static_params, resync_tcp_sn));
	if (tx || !t->on)
		memcpy(t->record.number, t->first, sizeof(t->first));
	else
		confirm(c, t);
}

/* A sender's stream begins with the frame that comes next; the driver gives a receiver's beginning here. */
void tls_progress(struct card *c, const struct wqe *w, bool tx)
{
	struct view v = { (uint8_t *)w->byte + PROGRESS_AT, w->len > PROGRESS_AT ? w->len - PROGRESS_AT : 0 };
	struct tls *t = view_has(v, 0, 16) ? stream(c, load32(v.at), tx) : NULL;

	if (!t || !t->record.cipher) {
		say(c, 0, "progress parameters for a stream that does not exist: ignored");
		return;
	}
	t->next = get(view_from(v, 4), F(tls_progress_params, next_record_tcp_sn));
	t->record.at = 0;
	t->state = RX_IN_STEP;
	t->again = tx && t->on;
	t->on = true;
	t->open_start = tx;
	t->used = 0;
	if (tx)
		memcpy(t->record.number, t->first, sizeof(t->first));
}

static uint32_t tracker(const struct tls *t)
{
	return t->state == RX_TRACKING ? TRACKER_TRACKING : t->state == RX_SEARCHING ? TRACKER_SEARCHING : TRACKER_START;
}

static uint32_t auth(const struct tls *t)
{
	return t->state == RX_IN_STEP ? AUTH_OFFLOAD : t->state == RX_FAILED ? AUTH_FAILED : AUTH_NO_OFFLOAD;
}

/* Write what a receive stream has found to where the driver wants it. */
void tls_ask(struct card *c, const struct wqe *w)
{
	uint8_t answer[16] = { 0 }, *to;
	struct view v = { answer + 4, sizeof(answer) - 4 };
	struct tls *t;
	uint32_t tir;

	if (w->len < ASK_AT + ASK_TIR + 4)
		return;
	tir = load32(w->byte + ASK_AT + ASK_TIR);
	to = guest_at(&c->guest, load64(w->byte + ASK_AT + ASK_PLACE), 64);
	t = stream(c, tir, false);
	if (!to || !t)
		return;
	c->truth.psv++;
	store32(answer, tir);
	set(v, F(tls_progress_params, record_tracker_state), fault_hit(c, FAULT_RX_NO_ANSWER) ? TRACKER_START : tracker(t));
	set(v, F(tls_progress_params, auth_state), auth(t));
	set(v, F(tls_progress_params, next_record_tcp_sn), t->follow);
	set(v, F(tls_progress_params, hw_resync_tcp_sn), t->found + (fault_hit(c, FAULT_RX_ANSWER) ? 1 : 0));
	memcpy(to, answer, sizeof(answer));
}
