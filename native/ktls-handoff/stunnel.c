/* SPDX-License-Identifier: Apache-2.0 */
/* What we tell stunnel (a configuration equal to our options) and what its log tells us. Pure text. */
#include <stdio.h>
#include <string.h>

#include "handoff.h"

/* Add "key = value". stunnel cuts blanks off both ends, so such a value cannot be told to it. */
static bool line(struct text *t, const char *key, const char *value, struct failure *f)
{
	size_t len = strlen(value);

	if (len && (value[0] == ' ' || value[len - 1] == ' '))
		return failed(f, RC_USAGE, "usage", "'%s' begins or ends with a space, which stunnel does not accept", value);
	text_add(t, "%s = %s\n", key, value);
	return true;
}

static bool client(const struct options *o, struct text *t, struct failure *f)
{
	const char *sni = verify_sni(o), *name = verify_wanted_name(o);
	char where[300];

	/* stunnel splits at the last colon, so an IPv6 address stands without brackets. */
	snprintf(where, sizeof(where), "%s:%s", o->host, o->port);
	text_add(t, "client = yes\n");
	if (!line(t, "connect", where, f) || !line(t, "sni", sni ? sni : "", f))
		return false;
	if (o->pin) /* verifyPeer: the certificate itself must be in CAfile */
		return line(t, "CAfile", o->pin, f) && line(t, "verifyPeer", "yes", f);
	if (o->ca)
		return line(t, "CAfile", o->ca, f) && line(t, "verifyChain", "yes", f) &&
		       line(t, is_ip(name) ? "checkIP" : "checkHost", name, f);
	return line(t, "verifyChain", "no", f) && line(t, "verifyPeer", "no", f);
}

/* Write the configuration: inetd mode (no accept), in the foreground, log on standard error.
 * A client connects to HOST PORT; a server gives the plain side to the unix socket `connect_to`. */
bool stunnel_config(const struct options *o, const char *connect_to, struct text *t, struct failure *f)
{
	text_add(t, "foreground = yes\nsyslog = no\ndebug = info\n");
	text_add(t, "TIMEOUTconnect = %d\n", (o->timeout_ms + 999) / 1000);
	text_add(t, "sslVersion = %s\n", o->tls == 12 ? "TLSv1.2" : "TLSv1.3");
	if (!line(t, o->tls == 12 ? "ciphers" : "ciphersuites", o->ciphers, f))
		return false;
	if (o->curves && !line(t, "curves", o->curves, f))
		return false;
	if (o->verb == VERB_CONNECT)
		return client(o, t, f);
	text_add(t, "client = no\n");
	return line(t, "cert", o->cert, f) && line(t, "key", o->key, f) && line(t, "connect", connect_to, f);
}

static bool word_after(const char *text, const char *mark, char *out, size_t size)
{
	const char *at = strstr(text, mark);

	if (!at)
		return false;
	at += strlen(mark);
	snprintf(out, size, "%.*s", (int)strcspn(at, " \r\n"), at);
	return true;
}

/* Read one line of stunnel's log (debug = info): true when the handshake is done, cipher and version in *r. */
bool stunnel_read_line(const char *text, struct result *r)
{
	if (word_after(text, " s_connect: connected ", r->peer, sizeof(r->peer)))
		return false;
	if (!word_after(text, " ciphersuite: ", r->cipher, sizeof(r->cipher)))
		return false;
	snprintf(r->version, sizeof(r->version), "%s", strstr(text, "TLSv1.3 ciphersuite") ? "1.3" : "1.2");
	return true;
}

/* Read one line such as "2026.11.21 08:17:04 LOG3[0]: text". Levels 0 to 4 are trouble. What the thread of the
 * connection says ([0]) outranks the messages of reading the configuration ([ui], or "[!] text" before its log
 * is set up); later lines follow from the first. */
void stunnel_read_trouble(const char *text, struct trouble *t)
{
	const char *level = strstr(text, " LOG"), *said = strstr(text, "]: ");
	bool early = !strncmp(text, "[!] ", 4);
	int rank;

	if (!early && (!level || !said || said < level || level[4] < '0' || level[4] > '4'))
		return;
	rank = early || !strncmp(level + 5, "[ui]", 4) ? 1 : 2;
	if (rank <= t->rank)
		return;
	t->rank = rank;
	snprintf(t->text, sizeof(t->text), "%s", early ? text + 4 : said + 3);
}
