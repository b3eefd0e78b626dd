/* SPDX-License-Identifier: Apache-2.0 */
/* What do client and server agree on, and what came of it? JSON in both directions: parameters and results. */
#include <string.h>
#include <sys/random.h>

#include "tls.h"

#define PROTOCOL 1 /* of the "tls" object among the parameters */

static bool asked;	     /* the client of this test asked for TLS */
static char bad[200];	     /* why its parameters cannot be served; empty: they can */

/* Add the client's wishes to its parameters; an old server ignores them, and that is noticed (hooks.c). */
void deal_offer(cJSON *parameters)
{
	cJSON *t = cJSON_AddObjectToObject(parameters, "tls");

	deal = (struct deal){ .version = options.version ? options.version : 13, .verify = options.verify,
			      .ktls = options.ktls < 0 ? 0 : options.ktls, .record_size = options.record_size };
	if (getrandom(&deal.seed, sizeof(deal.seed), 0) != sizeof(deal.seed))
		deal.seed = 1;
	cJSON_AddNumberToObject(t, "protocol", PROTOCOL);
	cJSON_AddNumberToObject(t, "version", deal.version);
	cJSON_AddNumberToObject(t, "record_size", (double)deal.record_size);
	cJSON_AddNumberToObject(t, "seed", deal.seed);
	cJSON_AddBoolToObject(t, "verify", deal.verify);
	real_add_string(t, "ktls", ktls_word(deal.ktls));
}

/* A whole number among the client's wishes; `bad` says so if it is none in [low, high]. */
static long number(const cJSON *t, const char *key, double low, double high)
{
	double value = cJSON_GetNumberValue(real_get_item(t, key)); /* NaN where it is missing or none */

	if (value >= low && value <= high && value == (double)(long)value)
		return (long)value;
	snprintf(bad, sizeof(bad), "parameter tls.%s: expected a number from %.0f to %.0f", key, low, high);
	return 0;
}

/* Read the client's wishes; deal_accept() judges them. */
void deal_read(cJSON *parameters)
{
	cJSON *t = real_get_item(parameters, "tls");
	const char *word;

	deal = (struct deal){ 0 };
	bad[0] = 0;
	asked = t != NULL;
	if (!asked)
		return;
	word = cJSON_GetStringValue(real_get_item(t, "ktls"));
	deal.ktls = word ? ktls_number(word) : -1;
	deal.version = (int)number(t, "version", 12, 13);
	deal.record_size = number(t, "record_size", 0, RECORD_MAX);
	deal.seed = (uint32_t)number(t, "seed", 0, UINT32_MAX);
	deal.verify = cJSON_IsTrue(real_get_item(t, "verify"));
	if (deal.ktls < 0 || (deal.record_size && deal.record_size < 512))
		snprintf(bad, sizeof(bad), "parameters tls.ktls, tls.record_size: out of range");
	number(t, "protocol", PROTOCOL, PROTOCOL);
	if (options.ktls >= 0)
		deal.ktls = options.ktls;
}

/* Judge, on the server, what the client asked for; a refusal is in i_errno. */
bool deal_accept(void)
{
	char why[300];

	if (!asked) {
		if (options.tls)
			fail(C_PEER_WANTS_TLS, "refused a client without --tls: this server was started with --tls");
		return !options.tls;
	}
	if (bad[0])
		fail(C_PARAMETERS, "refused a client: %s", bad);
	else if (options.version && options.version != deal.version)
		fail(C_PEER_WANTS_TLS, "refused a client that requests TLS 1.%d: this server was started with --tls=1.%d",
		     deal.version - 10, options.version - 10);
	else if ((deal.ktls & KTLS_REQUIRE) && !ktls_possible(why, sizeof(why)))
		fail(C_NOT_HERE, "%s", why);
	else
		deal.on = true;
	return deal.on;
}

static void describe(cJSON *into, const struct stream *s)
{
	cJSON *t = cJSON_AddObjectToObject(into, "tls");

	real_add_string(t, "version", SSL_version(s->ssl) == TLS1_3_VERSION ? "1.3" : "1.2");
	real_add_string(t, "cipher", SSL_get_cipher_name(s->ssl));
	real_add_string(t, "tx", s->tx);
	real_add_string(t, "rx", s->rx);
	cJSON_AddNumberToObject(t, "record_size", (double)(deal.record_size ? deal.record_size : RECORD_MAX));
	cJSON_AddBoolToObject(t, "sendfile", s->sendfile);
	cJSON_AddBoolToObject(t, "zerocopy_sendfile", s->zerocopy && s->sendfile);
	if (deal.verify)
		cJSON_AddNumberToObject(t, "verified_bytes", (double)s->verified);
}

static void describe_by(const cJSON *in, cJSON *into)
{
	double fd = cJSON_GetNumberValue(real_get_item(in, "socket"));
	struct stream *s = fd >= 0 ? stream_of((int)fd) : NULL;

	if (s && s->tx && !real_get_item(into, "tls"))
		describe(into, s);
}

/* Add the "tls" object to each stream of start.connected and of end.streams. */
void deal_results(cJSON *top)
{
	cJSON *connected = real_get_item(real_get_item(top, "start"), "connected");
	cJSON *streams = real_get_item(real_get_item(top, "end"), "streams");

	if (fail_exit() && !real_get_item(top, "error"))
		real_add_string(top, "error", fail_text(i_errno));
	for (int i = 0; i < cJSON_GetArraySize(connected); i++)
		describe_by(cJSON_GetArrayItem(connected, i), cJSON_GetArrayItem(connected, i));
	for (int i = 0; i < cJSON_GetArraySize(streams); i++)
		describe_by(real_get_item(cJSON_GetArrayItem(streams, i), "sender"), cJSON_GetArrayItem(streams, i));
}
