/* SPDX-License-Identifier: Apache-2.0 */
/* Which options are ours? They are taken out of the command line; libiperf parses the rest. */
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "tls.h"

struct options options = { .ktls = -1, .foreground = true };

static const struct {
	const char *word;
	int ktls;
} ktls_words[] = {
	{ "off", 0 }, { "tx", KTLS_TX }, { "rx", KTLS_RX }, { "both", KTLS_TX | KTLS_RX },
	{ "require", KTLS_TX | KTLS_RX | KTLS_REQUIRE },
};

const char *ktls_word(int ktls)
{
	for (size_t i = 0; i < sizeof(ktls_words) / sizeof(ktls_words[0]); i++)
		if (ktls_words[i].ktls == ktls)
			return ktls_words[i].word;
	return "off";
}

/* The number for a word of --ktls, or -1. */
int ktls_number(const char *word)
{
	for (size_t i = 0; i < sizeof(ktls_words) / sizeof(ktls_words[0]); i++)
		if (!strcmp(ktls_words[i].word, word))
			return ktls_words[i].ktls;
	return -1;
}

enum kind { K_TLS, K_KTLS, K_CIPHERS, K_CERT, K_KEY, K_CA, K_RECORD_SIZE, K_VERIFY };

static const struct ours {
	const char *name;
	enum kind kind;
	bool value, client, server; /* takes a value; may be given to which end */
} table[] = {
	{ "--tls", K_TLS, false, true, true },
	{ "--ktls", K_KTLS, true, true, true },
	{ "--tls-ciphers", K_CIPHERS, true, true, false },
	{ "--tls-cert", K_CERT, true, false, true },
	{ "--tls-key", K_KEY, true, false, true },
	{ "--tls-ca", K_CA, true, true, false },
	{ "--tls-record-size", K_RECORD_SIZE, true, true, false },
	{ "--tls-verify-payload", K_VERIFY, false, true, false },
};
static unsigned int seen; /* bits of enum kind */
static bool file;	  /* -F: libiperf sends what the file holds */

void options_help(FILE *out)
{
	fputs("TLS on the data streams (iperf3-tls):\n"
	      "  --tls[=1.2|1.3]           client: use TLS (default 1.3); server: refuse clients without it or with another version\n"
	      "  --tls-ciphers LIST        client: OpenSSL names, for the version in use\n"
	      "  --ktls MODE               off, tx, rx, both: directions that the kernel handles if it can; require: both, or fail.\n"
	      "                            A server without this option follows the client\n"
	      "  --tls-cert FILE           server: PEM certificate (chain); without it one is generated, in memory\n"
	      "  --tls-key FILE            server: its PEM key\n"
	      "  --tls-ca FILE             client: check the server's certificate and name; without it they are not checked\n"
	      "  --tls-record-size N       client: 512 to 16384 bytes of payload in a record, for both ends\n"
	      "  --tls-verify-payload      client: send a pattern, compare every byte received, at both ends\n"
	      "  -Z with kTLS tx           sendfile(), with TLS_TX_ZEROCOPY_RO where the kernel has it\n"
	      "exit codes: 2 handshake, 3 kTLS refused, 4 no kTLS on this machine, 5 the peer does not support this TLS, 6 payload\n",
	      out);
}

static bool set_number(const char *value)
{
	char *end;

	options.record_size = strtol(value, &end, 10);
	return *value && !*end && options.record_size >= 512 && options.record_size <= RECORD_MAX;
}

/* Store one option; false: the value is not one, and `wanted` says what would be. */
static bool store(enum kind kind, const char *value, const char **wanted)
{
	switch (kind) {
	case K_TLS:
		options.tls = true;
		options.version = !value ? 0 : !strcmp(value, "1.2") ? 12 : !strcmp(value, "1.3") ? 13 : -1;
		*wanted = "1.2 or 1.3";
		return options.version >= 0;
	case K_KTLS:
		options.ktls = ktls_number(value);
		*wanted = "off, tx, rx, both or require";
		return options.ktls >= 0;
	case K_RECORD_SIZE:
		*wanted = "a number of bytes from 512 to 16384";
		return set_number(value);
	case K_VERIFY:
		options.verify = true;
		*wanted = "no value";
		return !value;
	case K_CIPHERS:
		options.ciphers = value;
		break;
	case K_CERT:
		options.cert = value;
		break;
	case K_KEY:
		options.key = value;
		break;
	case K_CA:
		options.ca = value;
		break;
	}
	*wanted = "something";
	return *value != 0;
}

/* The row of an argument that is ours, and the text behind '=' or NULL. */
static const struct ours *match(const char *arg, const char **value)
{
	const char *equals = strchr(arg, '=');
	size_t len = equals ? (size_t)(equals - arg) : strlen(arg);

	*value = equals ? equals + 1 : NULL;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (strlen(table[i].name) == len && !memcmp(table[i].name, arg, len))
			return &table[i];
	return NULL;
}

/* Note what libiperf tells us in no other way, and that it parses itself. */
static void peek(const char *arg)
{
	if (!strcmp(arg, "-D") || !strcmp(arg, "--daemon"))
		options.foreground = false;
	if (!strncmp(arg, "-F", 2) || !strncmp(arg, "--file", 6))
		file = true;
}

/* Take our options out of argv; false: one is wrong, and `why` says which. */
bool options_take(int *argc, char **argv, char *why, size_t size)
{
	int left = 1;

	for (int i = 1; i < *argc; i++) {
		const char *value, *wanted = "";
		const struct ours *row = match(argv[i], &value);

		if (!row) {
			if (!strncmp(argv[i], "--tls", 5) || !strncmp(argv[i], "--ktls", 6)) {
				snprintf(why, size, "%s: no such option; --help lists them", argv[i]);
				return false;
			}
			peek(argv[i]);
			argv[left++] = argv[i];
			continue;
		}
		if (row->value && !value && i + 1 < *argc)
			value = argv[++i];
		if (row->value && !value) {
			snprintf(why, size, "%s needs a value", row->name);
			return false;
		}
		if (!store(row->kind, value, &wanted)) {
			snprintf(why, size, "%s: '%s' given, expected %s", row->name, value ? value : "", wanted);
			return false;
		}
		seen |= 1U << row->kind;
	}
	argv[left] = NULL;
	*argc = left;
	return true;
}

/* Judge the options together, when the role is known; false: wrong, and `why` says so. */
bool options_check(char role, int protocol, char *why, size_t size)
{
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		if (!(seen & 1U << table[i].kind))
			continue;
		if (role == 's' ? !table[i].server : !table[i].client) {
			snprintf(why, size, "%s is for the %s only", table[i].name, role == 's' ? "client" : "server");
			return false;
		}
		if (role == 'c' && !options.tls) {
			snprintf(why, size, "%s does nothing without --tls", table[i].name);
			return false;
		}
	}
	if (options.tls && protocol != SOCK_STREAM)
		snprintf(why, size, "--tls is for TCP: not with -u or --sctp");
	else if (!options.cert != !options.key)
		snprintf(why, size, "--tls-cert and --tls-key go together: only one was given");
	else if (options.verify && file)
		snprintf(why, size, "--tls-verify-payload sends a pattern of its own: not with -F");
	else
		return true;
	return false;
}
