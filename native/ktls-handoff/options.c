/* SPDX-License-Identifier: Apache-2.0 */
/* What did the caller ask for? Pure: no input, no output, no exit; the fuzzer calls it as main does. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "handoff.h"

enum kind { TEXT, FLAG, NUMBER_FD, SECONDS, TLS, WANT };
enum { ON_CONNECT = 1, ON_ACCEPT = 2, ON_CLOSE = 4, ON_OPEN = 3, ON_ALL = 7 };

struct option_row {
	const char *name;
	enum kind kind;
	unsigned int verbs;
	size_t at;
};

#define AT(member) offsetof(struct options, member)
static const struct option_row table[] = {
	{ "--fd", NUMBER_FD, ON_ALL, AT(fd) },
	{ "--timeout", SECONDS, ON_ALL, AT(timeout_ms) },
	{ "--ca", TEXT, ON_CONNECT, AT(ca) },
	{ "--pin", TEXT, ON_CONNECT, AT(pin) },
	{ "--no-verify", FLAG, ON_CONNECT, AT(no_verify) },
	{ "--name", TEXT, ON_CONNECT, AT(name) },
	{ "--sni", TEXT, ON_CONNECT, AT(sni) },
	{ "--staple", FLAG, ON_CONNECT, AT(staple) },
	{ "--cert", TEXT, ON_ACCEPT, AT(cert) },
	{ "--key", TEXT, ON_ACCEPT, AT(key) },
	{ "--announce", FLAG, ON_ACCEPT, AT(announce) },
	{ "--tls", TLS, ON_OPEN, AT(tls) },
	{ "--ciphers", TEXT, ON_OPEN, AT(ciphers) },
	{ "--want", WANT, ON_OPEN, AT(want) },
	{ "--fallback", TEXT, ON_OPEN, AT(fallback) },
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
		return usage(f, "control character or more than 1024 bytes in a value", row->name);
	switch (row->kind) {
	case TEXT:
		if (!*value && strcmp(row->name, "--sni") != 0)
			return usage(f, "empty value", row->name);
		*(const char **)at = value;
		return true;
	case NUMBER_FD:
		return parse_int(value, 0, 1 << 20, at) || usage(f, "--fd wants a descriptor number", value);
	case SECONDS:
		return parse_seconds(value, at) || usage(f, "--timeout wants 0.001 to 86400 seconds", value);
	case TLS:
		if (strcmp(value, "1.2") != 0 && strcmp(value, "1.3") != 0)
			return usage(f, "--tls wants 1.2 or 1.3", value);
		*(int *)at = value[2] == '2' ? 12 : 13;
		return true;
	case WANT:
		return parse_want(value, at) || usage(f, "--want wants tx, rx or both", value);
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
		return usage(f, "option does not belong to this verb", row->name);
	if (row->kind == FLAG && !equals) {
		*(bool *)((char *)o + row->at) = true;
		return true;
	}
	if (equals)
		return take(row, equals + 1, o, f);
	if (*i + 1 >= argc)
		return usage(f, "option without its value", row->name);
	return take(row, argv[++*i], o, f);
}

static bool check_open(struct options *o, struct failure *f)
{
	bool connects = o->verb == VERB_CONNECT;
	int port, ways = !!o->ca + !!o->pin + o->no_verify;

	if (!o->port)
		return usage(f, "HOST and PORT are needed", connects ? "connect" : "accept");
	if (!parse_int(o->port, connects ? 1 : 0, 65535, &port))
		return usage(f, "PORT wants a number up to 65535", o->port);
	if (connects && ways != 1)
		return usage(f, "exactly one of --ca, --pin, --no-verify is needed", "connect");
	if (o->name && !o->ca)
		return usage(f, "only --ca checks a name", "--name");
	if (!connects && (!o->cert || !o->key))
		return usage(f, "--cert and --key are needed", "accept");
	if (o->fallback && o->fd < 0)
		return usage(f, "without --fd there is nobody to hand a connection to", "--fallback");
	if (!o->ciphers)
		o->ciphers = o->tls == 12 ? "ECDHE-RSA-AES256-GCM-SHA384" : "TLS_AES_256_GCM_SHA384";
	return true;
}

static bool parse_verb(const char *arg, struct options *o, struct failure *f)
{
	static const struct { const char *name; enum verb verb; } verbs[] = {
		{ "connect", VERB_CONNECT }, { "accept", VERB_ACCEPT }, { "close", VERB_CLOSE },
		{ "--help", VERB_HELP }, { "-h", VERB_HELP }, { "--version", VERB_VERSION },
	};

	for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++)
		if (!strcmp(arg, verbs[i].name)) {
			o->verb = verbs[i].verb;
			return true;
		}
	return usage(f, "connect, accept or close is wanted, not", arg);
}

/* Parse a HOST or PORT. */
static bool parse_word(const char *arg, struct options *o, struct failure *f)
{
	if (o->verb == VERB_CLOSE || o->port)
		return usage(f, "one argument too many", arg);
	if (!*arg || !clean(arg) || strchr(arg, ' ') || strlen(arg) > 253)
		return usage(f, "HOST or PORT is empty, too long, or holds a blank or control character", arg);
	*(o->host ? &o->port : &o->host) = arg;
	return true;
}

/* Fill *o from argv; false with a usage failure in *f. The strings of *o point into argv. */
bool options_parse(int argc, char *const argv[], struct options *o, struct failure *f)
{
	*o = (struct options){ .fd = -1, .tls = 12, .want = WANT_TX, .timeout_ms = 10000 };
	if (argc < 2)
		return usage(f, "connect, accept or close is wanted, not", "nothing");
	if (!parse_verb(argv[1], o, f))
		return false;
	if (o->verb == VERB_HELP || o->verb == VERB_VERSION)
		return true;
	for (int i = 2; i < argc; i++) {
		if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "--version"))
			return parse_verb(argv[i], o, f);
		if (!strncmp(argv[i], "--", 2) ? !parse_option(argc, argv, &i, o, f) : !parse_word(argv[i], o, f))
			return false;
	}
	if (o->verb != VERB_CLOSE)
		return check_open(o, f);
	return o->fd >= 0 || usage(f, "the socket to close is needed: --fd N", "close");
}

/* The --fd of a command line that may be wrong elsewhere, so that its error can be told there; or -1. */
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
