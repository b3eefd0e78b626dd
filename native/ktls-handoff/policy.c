/* SPDX-License-Identifier: Apache-2.0 */
/* What does the policy file say? It is a piece of a stunnel configuration; what we do not do is refused by line. */
#include <stdlib.h>
#include <string.h>

#include "handoff.h"

enum yes { UNSAID, YES, NO };

/* What was read so far; `at` is where we are, for messages. */
struct reading {
	const char *file, *ca;
	int line;
	bool named;
	enum yes chain, peer;
};

static bool wrong(const struct reading *at, struct failure *f, const char *what, const char *value)
{
	return failed(f, RC_USAGE, "usage", "%s:%d: %s: '%s'", at->file, at->line, what, value);
}

/* Cut blanks off both ends, as stunnel does. */
static char *trim(char *text)
{
	char *end = text + strlen(text);

	text += strspn(text, " \t\r");
	while (end > text && strchr(" \t\r", end[-1]))
		*--end = '\0';
	return text;
}

static bool say_yes(const char *value, enum yes *out, const struct reading *at, struct failure *f)
{
	*out = !strcmp(value, "yes") ? YES : !strcmp(value, "no") ? NO : UNSAID;
	return *out != UNSAID || wrong(at, f, "expected yes or no", value);
}

static bool take_version(const char *value, struct options *o, const struct reading *at, struct failure *f)
{
	if (strcmp(value, "TLSv1.2") != 0 && strcmp(value, "TLSv1.3") != 0)
		return wrong(at, f, "sslVersion must be TLSv1.2 or TLSv1.3", value);
	o->tls = value[6] == '2' ? 12 : 13;
	return true;
}

static bool take_seconds(const char *value, struct options *o, const struct reading *at, struct failure *f)
{
	char *end;
	long n = strtol(value, &end, 10);

	if (*value < '0' || *value > '9' || *end || n < 1 || n > 3600)
		return wrong(at, f, "TIMEOUTconnect must be 1 to 3600 seconds", value);
	if (!o->timeout_ms) /* --timeout comes before the file */
		o->timeout_ms = (int)n * 1000;
	return true;
}

/* Both lists of ciphers may stand there; the version says which one counts. */
struct lists {
	const char *tls12, *tls13;
};

static bool take(const char *key, const char *value, struct options *o, struct lists *l, struct reading *at,
		 struct failure *f)
{
	const struct { const char *key; const char **to; } texts[] = {
		{ "ciphers", &l->tls12 }, { "ciphersuites", &l->tls13 }, { "curves", &o->curves }, { "CAfile", &at->ca },
		{ "checkHost", &o->name }, { "checkIP", &o->name }, { "sni", &o->sni },
	};

	if (!*value && strcmp(key, "sni") != 0)
		return wrong(at, f, "the key has no value", key);
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		if (strcmp(texts[i].key, key) != 0)
			continue;
		if (texts[i].to != &o->name) {
			*texts[i].to = value;
			return true;
		}
		if (at->named) /* stunnel would take either */
			return wrong(at, f, "more than one name to check", value);
		at->named = true;
		if (!o->name) /* --name comes before the file */
			o->name = value;
		return true;
	}
	if (!strcmp(key, "sslVersion"))
		return take_version(value, o, at, f);
	if (!strcmp(key, "TIMEOUTconnect"))
		return take_seconds(value, o, at, f);
	if (!strcmp(key, "verifyChain"))
		return say_yes(value, &at->chain, at, f);
	if (!strcmp(key, "verifyPeer"))
		return say_yes(value, &at->peer, at, f);
	if (!strcmp(key, "client"))
		return !strcmp(value, "yes") || wrong(at, f, "a policy must be a client's", value);
	return wrong(at, f, "unknown key; docs/use/connect.md lists the keys of a policy", key);
}

static bool take_line(char *line, struct options *o, struct lists *l, struct reading *at, struct failure *f)
{
	char *equals;

	line = trim(line);
	if (!*line || *line == ';' || *line == '#')
		return true;
	equals = strchr(line, '=');
	if (*line == '[' || !equals)
		return wrong(at, f, "KEY = VALUE is expected; sections are not allowed", line);
	for (const char *c = line; *c; c++)
		if (((unsigned char)*c < 0x20 && *c != '\t') || *c == 0x7f)
			return wrong(at, f, "control character", line);
	*equals = '\0';
	return take(trim(line), trim(equals + 1), o, l, at, f);
}

/* The two keys of stunnel as one way to verify; silence is no way. */
static bool judge(const struct reading *at, struct options *o, struct failure *f)
{
	if (at->chain == YES && at->peer == YES) /* to stunnel this means both, to --pin only one */
		return failed(f, RC_USAGE, "usage", "%s: set only one of verifyChain and verifyPeer", at->file);
	o->no_verify = at->chain == NO && at->peer != YES;
	if (at->chain != YES && at->peer != YES)
		return o->no_verify || failed(f, RC_USAGE, "usage", "%s: neither verifyChain nor verifyPeer is set", at->file);
	if (!at->ca)
		return failed(f, RC_USAGE, "usage", "%s: verification needs CAfile", at->file);
	*(at->peer == YES ? &o->pin : &o->ca) = at->ca;
	return true;
}

/* Fill *o from the text of a policy, which is cut up: the strings of *o point into it. */
bool policy_parse(char *text, const char *file, struct options *o, struct failure *f)
{
	struct reading at = { .file = file };
	struct lists l = { 0 };
	char *next;

	for (char *line = text; line; line = next) {
		next = strchr(line, '\n');
		if (next)
			*next++ = '\0';
		at.line++;
		if (!take_line(line, o, &l, &at, f))
			return false;
	}
	o->ciphers = o->tls == 13 ? l.tls13 : l.tls12;
	return judge(&at, o, f);
}
