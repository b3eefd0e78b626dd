/* SPDX-License-Identifier: Apache-2.0 */
/* The other way to use kTLS: OpenSSL keeps the connection, SSL_write() sends. Options are those of `ktls-handoff
 * connect`; each read() of standard input becomes one SSL_write(). For tests of what is on the wire (wire.md). */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "handoff.h"

static bool trouble(struct failure *f)
{
	char why[160];

	return failed(f, RC_CONNECT, "connect", "SSL_write: %s", openssl_reason(why, sizeof(why)));
}

/* Send standard input to its end, then close_notify; read what the peer says until it closes as well. */
static bool carry(SSL *ssl, int sock, struct failure *f)
{
	static char buf[SSL3_RT_MAX_PLAIN_LENGTH];
	ssize_t n;

	for (n = read(STDIN_FILENO, buf, sizeof(buf)); n > 0; n = read(STDIN_FILENO, buf, sizeof(buf)))
		if (SSL_write(ssl, buf, (int)n) != n)
			return trouble(f);
	if (SSL_shutdown(ssl) < 0)
		return trouble(f);
	shutdown(sock, SHUT_WR);
	while (SSL_read(ssl, buf, sizeof(buf)) > 0)
		;
	return true;
}

static bool run(const struct options *o, struct failure *f)
{
	struct result r = { .sock = -1 };
	SSL_CTX *ctx = handshake_context(o, f);
	int sock = ctx && ktls_possible(f) ? net_connect(o, f) : -1;
	SSL *ssl = sock >= 0 ? handshake_run(ctx, sock, o, f) : NULL;
	bool ok = ssl && ktls_check(ssl, sock, o, &r, f) && set_blocking(sock) && carry(ssl, sock, f);

	if (ok)
		say("%s %s %s", r.version, r.kernel_cipher, r.tx);
	SSL_free(ssl);
	if (sock >= 0)
		close(sock);
	SSL_CTX_free(ctx);
	return ok;
}

int main(int argc, char **argv)
{
	struct failure f = { .exit = RC_INTERNAL };
	static struct rules rules;
	struct options *o = &rules.o;

	signal(SIGPIPE, SIG_IGN);
	if (options_parse(argc, argv, o, &f) && o->verb != VERB_CONNECT)
		failed(&f, RC_USAGE, "usage", "only connect, as of ktls-handoff");
	else if (!*f.message && rules_read(&rules, &f) && run(o, &f))
		return RC_OK;
	say("%s", f.message);
	return f.exit;
}
