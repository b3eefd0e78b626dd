/* SPDX-License-Identifier: Apache-2.0 */
/* The answer as one line of JSON (docs/reference/wire.md, "What comes out"). */
#include <arpa/inet.h>
#include <inttypes.h>

#include "core.h"

static const char *const outcomes[] = { "equal", "different", "inconclusive" };
static const char *const sides[] = { "client", "server" };

static void number(struct text *t, const char *name, uint64_t value)
{
	text_add(t, "\"%s\":%" PRIu64 ",", name, value);
}

static void word(struct text *t, const char *name, const char *value)
{
	text_add(t, "\"%s\":\"%s\",", name, value);
}

static void hex(struct text *t, const char *name, const uint8_t *at, size_t len)
{
	text_add(t, "\"%s\":", name);
	text_hex(t, at, len);
	text_add(t, ",");
}

/* Members end with a comma: the last one gives way to the bracket. */
static void close_with(struct text *t, char bracket)
{
	if (t->len && t->buf[t->len - 1] == ',')
		t->len--;
	text_add(t, "%c,", bracket);
}

static void problem_list(struct text *t, const struct problems *p, const char *direction)
{
	for (const struct problem *i = p->list; i; i = i->next)
		text_add(t, "{\"code\":\"%s\",\"direction\":\"%s\",\"at\":%" PRIu64 "},", problem_name(i->code),
			 direction, i->at);
}

static void endpoint(struct text *t, const char *name, const struct conn *c, bool a)
{
	char host[INET6_ADDRSTRLEN] = "";
	bool six = c->pair.alen == 16;

	inet_ntop(six ? AF_INET6 : AF_INET, a ? c->pair.a : c->pair.b, host, sizeof(host));
	text_add(t, six ? "\"%s\":\"[%s]:%u\"," : "\"%s\":\"%s:%u\",", name, host, a ? c->pair.aport : c->pair.bport);
}

static void difference(struct wire *w, struct text *t, const struct dir *d)
{
	struct finding f = { .field = "" };

	if (!d->different) {
		text_add(t, "\"first_difference\":null,");
		return;
	}
	explain(w, d, &f);
	text_add(t, "\"first_difference\":{");
	number(t, "record", d->first.record);
	number(t, "sequence", d->first.seq);
	number(t, "offset", d->first.off);
	word(t, "field", f.field);
	number(t, "at", f.at);
	hex(t, "expected", f.expected, f.expected_len);
	hex(t, "got", f.got, f.got_len);
	word(t, "class", f.class);
	word(t, "detail", f.detail);
	close_with(t, '}');
}

static void retransmission(struct wire *w, struct text *t, const struct dir *d)
{
	const struct retransmission *r = d->resent;

	if (!r) {
		text_add(t, "\"retransmission\":null,");
		return;
	}
	text_add(t, "\"retransmission\":{");
	number(t, "offset", r->offset);
	number(t, "frame", r->frame);
	hex(t, "expected", r->expected, r->len);
	hex(t, "got", r->got, r->len);
	word(t, "class", retransmission_class(w, d));
	close_with(t, '}');
}

static void counters(struct text *t, const struct dir *d)
{
	number(t, "payload_bytes", d->payload_bytes);
	number(t, "authentic_bytes", d->authentic_bytes);
	number(t, "retransmissions", d->retransmissions);
	number(t, "retransmitted_bytes", d->retransmitted);
	number(t, "out_of_order", d->out_of_order);
	number(t, "strange", d->strange);
	number(t, "cut_bytes", d->cut);
	number(t, "epochs", d->epochs);
}

static void direction(struct wire *w, struct text *t, const char *name, const struct dir *d)
{
	bool nonces = d->conn->state == KEYED && d->epochs && suite_nonce_len(d->conn->keys) && d->nonces;

	text_add(t, "\"%s\":{", name);
	number(t, "bytes", d->next);
	number(t, "records", d->records);
	number(t, "protected", d->protected);
	number(t, "app_records", d->app_records);
	number(t, "app_bytes", d->app_bytes);
	word(t, "proof", d->conn->state != KEYED ? "none" : compared(w, d) ? "payload" : "tag");
	counters(t, d);
	hex(t, "nonce_first", d->nonce_first, nonces ? 8 : 0);
	word(t, "closed", d->close_notify ? "close_notify" : d->fin ? "fin" : d->rst ? "rst" : "");
	text_add(t, "\"sizes\":{");
	for (uint32_t i = 0; i < d->size_kinds; i++)
		text_add(t, "\"%" PRIu32 "\":%" PRIu64 ",", d->sizes[i].size, d->sizes[i].count);
	close_with(t, '}');
	number(t, "different_records", d->different);
	difference(w, t, d);
	retransmission(w, t, d);
	close_with(t, '}');
}

static void connection(struct wire *w, struct text *t, const struct conn *c)
{
	bool agreed = !has_problem(&c->problems, NO_HELLO);

	text_add(t, "{");
	endpoint(t, "client", c, c->client_is_a);
	endpoint(t, "server", c, !c->client_is_a);
	number(t, "first_frame", c->first_frame);
	word(t, "version", !agreed || !c->version ? "" : c->version == 12 ? "1.2" : "1.3");
	word(t, "cipher", agreed && c->keys ? cipher_name(c->keys) : "");
	text_add(t, agreed ? "\"suite\":\"%04x\"," : "\"suite\":\"\",", c->suite);
	word(t, "outcome", outcomes[conn_outcome(c)]);
	text_add(t, "\"problems\":[");
	problem_list(t, &c->problems, "");
	for (int side = CLIENT; side <= SERVER; side++)
		problem_list(t, &c->dir[side].problems, sides[side]);
	close_with(t, ']');
	direction(w, t, "from_client", &c->dir[CLIENT]);
	direction(w, t, "from_server", &c->dir[SERVER]);
	close_with(t, '}');
}

static void head(struct wire *w, struct text *t)
{
	text_add(t, "{\"schema\":1,\"engine\":\"core\",");
	word(t, "outcome", outcomes[capture_outcome(w)]);
	text_add(t, "\"capture\":{");
	word(t, "format", w->reader.ng ? "pcapng" : "pcap");
	number(t, "frames", w->reader.frames);
	number(t, "tcp", w->tcp);
	number(t, "other", w->other);
	number(t, "fragments", w->fragments);
	number(t, "bad_checksum", w->bad_sums);
	number(t, "truncated", w->truncated);
	number(t, "not_tls", w->not_tls);
	close_with(t, '}');
	text_add(t, "\"keylog\":{\"keys\":%" PRIu64 ",\"bad\":%" PRIu64 "},", w->keylog.keys, w->keylog.bad);
	text_add(t, "\"problems\":[");
	problem_list(t, &w->problems, "");
	close_with(t, ']');
}

/* Write the document; all that it says is known by now. */
void report(struct wire *w, struct text *t)
{
	head(w, t);
	if (w->leak.frame) {
		text_add(t, "\"leak\":{");
		number(t, "frame", w->leak.frame);
		number(t, "at", w->leak.at);
		number(t, "payload_offset", w->leak.payload);
		number(t, "frames", w->leak.frames);
		word(t, "of", w->leak.of == PAYLOAD ? "payload" : "reply");
		close_with(t, '}');
	} else {
		text_add(t, "\"leak\":null,");
	}
	text_add(t, "\"connections\":[");
	for (uint32_t i = 0; i < w->conn_count; i++)
		if (w->conns[i]->listed)
			connection(w, t, w->conns[i]);
	close_with(t, ']');
	close_with(t, '}');
	t->buf[t->len - 1] = '\n';
	text_flush(t);
}
