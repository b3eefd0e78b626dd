/* SPDX-License-Identifier: Apache-2.0 */
/* What did the caller ask for? Pure: no input, no output, no exit; the fuzzer calls it as main does. */
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "handoff.h"

enum kind { TEXT, FLAG, NUMBER_FD, NUMBER, SECONDS, TLS, WANT };
enum { ON_CONNECT = 1, ON_ACCEPT = 2, ON_CLOSE = 4, ON_SERVE = 8, ON_REQUEST = 16,
       ON_OPEN = ON_CONNECT | ON_ACCEPT, ON_OUT = ON_CONNECT | ON_SERVE, ON_ASK = ON_CONNECT | ON_REQUEST };

struct option_row {
	const char *name;
	enum kind kind;
	unsigned int verbs;
	size_t at;
};

enum { TIMEOUT_MS = 10000 };
#define AT(member) offsetof(struct options, member)
static const struct option_row table[] = {
	{ "--fd", NUMBER_FD, ON_OPEN | ON_CLOSE, AT(fd) },
	{ "--timeout", SECONDS, ~0u, AT(timeout_ms) },
	{ "--policy", TEXT, ON_OUT, AT(policy) },
	{ "--ca", TEXT, ON_OUT, AT(ca) },
	{ "--pin", TEXT, ON_OUT, AT(pin) },
	{ "--no-verify", FLAG, ON_OUT, AT(no_verify) },
	{ "--name", TEXT, ON_ASK, AT(name) },
	{ "--sni", TEXT, ON_ASK, AT(sni) },
	{ "--digest", TEXT, ON_REQUEST, AT(digest) },
	{ "--staple", FLAG, ON_OUT, AT(staple) },
	{ "--cert", TEXT, ON_ACCEPT, AT(cert) },
	{ "--key", TEXT, ON_ACCEPT, AT(key) },
	{ "--announce", FLAG, ON_ACCEPT, AT(announce) },
	{ "--tls", TLS, ON_OPEN | ON_SERVE, AT(tls) },
	{ "--ciphers", TEXT, ON_OPEN | ON_SERVE, AT(ciphers) },
	{ "--curves", TEXT, ON_OPEN | ON_SERVE, AT(curves) },
	{ "--want", WANT, ON_OPEN | ON_SERVE | ON_REQUEST, AT(want) },
	{ "--fallback", TEXT, ON_OPEN, AT(fallback) },
	{ "--clients", NUMBER, ON_SERVE, AT(clients) },
	{ "--user", NUMBER, ON_SERVE, AT(user) },
};

static bool usage(struct failure *f, const char *what, const char *value)
{
	return failed(f, RC_USAGE, "usage", "%s: '%s' (see --help)", what, value);
}

/* A line break in a value could add a line to a stunnel configuration; nothing here needs one. */
static bool clean(const char *value)
{
	for (const char *c = value; *c; c++)
		if ((unsigned char)*c < 0x20 || *c == 0x7f)
			return false;
	return strlen(value) <= 1024;
}

static bool parse_int(const char *value, long min, long max, int *out)
{
	char *end;
	long n;

	if (*value < '0' || *value > '9')
		return false;
	n = strtol(value, &end, 10);
	if (*end || n < min || n > max)
		return false;
	*out = (int)n;
	return true;
}

static bool parse_seconds(const char *value, int *out)
{
	char *end;
	double seconds;

	if (!strchr("0123456789.", *value))
		return false;
	seconds = strtod(value, &end);
	if (end == value || *end || !isfinite(seconds) || seconds < 0.001 || seconds > 86400)
		return false;
	*out = (int)(seconds * 1000);
	return true;
}

static bool parse_want(const char *value, unsigned int *out)
{
	static const char *const names[] = { NULL, "tx", "rx", "both" };

	for (unsigned int i = WANT_TX; i <= (WANT_TX | WANT_RX); i++)
		if (!strcmp(value, names[i])) {
			*out = i;
			return true;
		}
	return false;
}

static bool take(const struct option_row *row, const char *value, struct options *o, struct failure *f)
{
	void *at = (char *)o + row->at;

	if (!clean(value))
		return usage(f, "the value holds a control character or more than 1024 bytes", row->name);
	switch (row->kind) {
	case TEXT:
		if (!*value && strcmp(row->name, "--sni") != 0)
			return usage(f, "empty value", row->name);
		*(const char **)at = value;
		return true;
	case NUMBER_FD:
		return parse_int(value, 0, 1 << 20, at) || usage(f, "--fd must be a descriptor number", value);
	case NUMBER:
		return parse_int(value, row->at == AT(clients), row->at == AT(clients) ? 1024 : INT_MAX, at) ||
		       usage(f, "the value must be a whole number (--clients: 1 to 1024)", value);
	case SECONDS:
		return parse_seconds(value, at) || usage(f, "--timeout must be 0.001 to 86400 seconds", value);
	case TLS:
		if (strcmp(value, "1.2") != 0 && strcmp(value, "1.3") != 0)
			return usage(f, "--tls must be 1.2 or 1.3", value);
		*(int *)at = value[2] == '2' ? 12 : 13;
		return true;
	case WANT:
		return parse_want(value, at) || usage(f, "--want must be tx, rx or both", value);
	case FLAG:
		break;
	}
	return usage(f, "takes no value", row->name);
}

static const struct option_row *find(const char *arg, size_t len)
{
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (strlen(table[i].name) == len && !strncmp(table[i].name, arg, len))
			return &table[i];
	return NULL;
}

/* Parse argv[*i], which starts with "--": "--name value" and "--name=value" are the same. */
static bool parse_option(int argc, char *const argv[], int *i, struct options *o, struct failure *f)
{
	const char *arg = argv[*i], *equals = strchr(arg, '=');
	const struct option_row *row = find(arg, equals ? (size_t)(equals - arg) : strlen(arg));

	if (!row)
		return usage(f, "unknown option", arg);
	if (!(row->verbs & (1u << (o->verb - VERB_CONNECT))))
		return usage(f, "this verb does not take the option", row->name);
	if (row->kind == FLAG && !equals) {
		*(bool *)((char *)o + row->at) = true;
		return true;
	}
	if (equals)
		return take(row, equals + 1, o, f);
	if (*i + 1 >= argc)
		return usage(f, "the option needs a value", row->name);
	return take(row, argv[++*i], o, f);
}

/* What needs no look into the policy: the arguments. */
static bool check_arguments(struct options *o, struct failure *f)
{
	bool accepts = o->verb == VERB_ACCEPT;
	int port;

	if (o->policy && (o->ca || o->pin || o->no_verify || o->tls || o->ciphers || o->curves))
		return usage(f, "--policy sets verification, versions, ciphers and curves; omit the options for them", o->policy);
	if (o->verb == VERB_CLOSE && !o->timeout_ms)
		o->timeout_ms = TIMEOUT_MS;
	if (o->verb == VERB_CLOSE)
		return o->fd >= 0 || usage(f, "name the socket to close: --fd N", "close");
	if (o->verb == VERB_SERVE)
		return o->socket || usage(f, "name the path of the socket", "serve");
	if (!o->port)
		return usage(f, "HOST and PORT are needed", accepts ? "accept" : "connect");
	if (!parse_int(o->port, !accepts, 65535, &port))
		return usage(f, "PORT must be a number up to 65535", o->port);
	if (accepts && (!o->cert || !o->key))
		return usage(f, "--cert and --key are needed", "accept");
	if (o->fallback && o->fd < 0)
		return usage(f, "without --fd there is no parent to pass a connection to", "--fallback");
	return true;
}

/* What the options, or a policy, must say together; fills in the defaults. */
bool options_check(struct options *o, struct failure *f)
{
	int methods = !!o->ca + !!o->pin + o->no_verify;

	if (o->verb != VERB_ACCEPT && methods != 1)
		return usage(f, "exactly one of --ca, --pin, --no-verify is needed", "connect");
	if (o->name && !o->ca)
		return usage(f, "only --ca checks a name", "--name");
	if (!o->tls)
		o->tls = 12;
	if (!o->timeout_ms)
		o->timeout_ms = TIMEOUT_MS;
	if (!o->ciphers)
		o->ciphers = o->tls == 12 ? "ECDHE-RSA-AES256-GCM-SHA384" : "TLS_AES_256_GCM_SHA384";
	return true;
}

static bool parse_verb(const char *arg, struct options *o, struct failure *f)
{
	static const struct { const char *name; enum verb verb; } verbs[] = {
		{ "connect", VERB_CONNECT }, { "accept", VERB_ACCEPT }, { "close", VERB_CLOSE },
		{ "serve", VERB_SERVE },
		{ "--help", VERB_HELP }, { "-h", VERB_HELP }, { "--version", VERB_VERSION },
	};

	for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++)
		if (!strcmp(arg, verbs[i].name)) {
			o->verb = verbs[i].verb;
			return true;
		}
	return usage(f, "expected connect, accept, serve or close, not", arg);
}

/* Parse a HOST or PORT, or the path of the resident's socket. */
static bool parse_word(const char *arg, struct options *o, struct failure *f)
{
	if (o->verb == VERB_CLOSE || o->port || o->socket)
		return usage(f, "unexpected argument", arg);
	if (!*arg || !clean(arg))
		return usage(f, "an argument is empty, too long, or holds a control character", arg);
	if (o->verb == VERB_SERVE) {
		o->socket = arg;
		return true;
	}
	if (strchr(arg, ' ') || strlen(arg) > 253)
		return usage(f, "HOST or PORT is too long or holds a blank", arg);
	*(o->host ? &o->port : &o->host) = arg;
	return true;
}

static bool parse_rest(int argc, char *const argv[], struct options *o, struct failure *f)
{
	for (int i = 2; i < argc; i++) {
		if (o->verb != VERB_REQUEST && (!strcmp(argv[i], "--help") || !strcmp(argv[i], "--version")))
			return parse_verb(argv[i], o, f);
		if (!strncmp(argv[i], "--", 2) ? !parse_option(argc, argv, &i, o, f) : !parse_word(argv[i], o, f))
			return false;
	}
	return check_arguments(o, f);
}

/* Fill *o from argv; false with a usage failure in *f. The strings of *o point into argv. With a policy, what
 * it says is still to be read: rules_read(). */
bool options_parse(int argc, char *const argv[], struct options *o, struct failure *f)
{
	*o = (struct options){ .fd = -1, .want = WANT_TX, .clients = 64, .user = -1 };
	if (argc < 2)
		return usage(f, "expected connect, accept, serve or close, not", "nothing");
	if (!parse_verb(argv[1], o, f))
		return false;
	if (o->verb == VERB_HELP || o->verb == VERB_VERSION)
		return true;
	if (!parse_rest(argc, argv, o, f))
		return false;
	if (o->policy || o->verb == VERB_CLOSE || o->verb == VERB_HELP || o->verb == VERB_VERSION)
		return true;
	return options_check(o, f);
}

/* Add to the resident's options *o what one client asks for; argv as for connect, but few options are his to say. */
bool options_request(int argc, char *const argv[], struct options *o, struct failure *f)
{
	int most = o->timeout_ms;

	if (argc < 2 || strcmp(argv[1], "connect") != 0)
		return usage(f, "a request must begin with connect, not", argc < 2 ? "nothing" : argv[1]);
	o->verb = VERB_REQUEST;
	o->socket = o->policy = NULL;
	if (!parse_rest(argc, argv, o, f))
		return false;
	o->verb = VERB_CONNECT;
	if (o->timeout_ms > most)
		o->timeout_ms = most;
	return options_check(o, f);
}

/* The --fd of a command line that may be wrong elsewhere, so that its error can be reported there; or -1. */
int options_find_fd(int argc, char *const argv[])
{
	int fd = -1;

	for (int i = 1; i < argc; i++) {
		if (!strncmp(argv[i], "--fd=", 5))
			parse_int(argv[i] + 5, 0, 1 << 20, &fd);
		else if (!strcmp(argv[i], "--fd") && i + 1 < argc)
			parse_int(argv[++i], 0, 1 << 20, &fd);
	}
	return fd;
}
