/* SPDX-License-Identifier: Apache-2.0 */
/* ktls-handoff: TLS handshake in user space, TLS records in the kernel, socket to the parent. See README.md. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <openssl/crypto.h>

#include "handoff.h"

static const char help[] =
	"usage: ktls-handoff connect HOST PORT  (--ca FILE [--name NAME] | --pin FILE | --no-verify) [--sni NAME] [options]\n"
	"       ktls-handoff accept ADDR PORT   --cert FILE --key FILE [--announce] [options]\n"
	"       ktls-handoff close --fd N       [--timeout SECONDS]\n"
	"       ktls-handoff serve SOCKET       (--policy FILE | verification as above) [--clients N] [--user UID] [options]\n"
	"\n"
	"Performs a TLS handshake, checks that the kernel handles the records (kTLS), and passes the socket to the parent.\n"
	"\n"
	"  --fd N             unix socket that receives one JSON line and the socket (SCM_RIGHTS); without it the line\n"
	"                     goes to standard output and the connection is closed: a dry run.\n"
	"                     For close: the kTLS socket to close\n"
	"  --ca FILE          trust these certificates, and check the name: --name NAME, or else HOST\n"
	"  --pin FILE         trust this one certificate\n"
	"  --no-verify        accept any certificate\n"
	"  --policy FILE      verification, versions, ciphers and curves, in the syntax of a stunnel configuration\n"
	"  --sni NAME         server name to send (default: the name; '' sends none)\n"
	"  --staple           request a stapled OCSP response, as stunnel does since 5.71; it is not checked\n"
	"  --cert, --key      own certificate chain and key (PEM)\n"
	"  --announce         print 'listening on ADDR:PORT' on standard output\n"
	"  --tls 1.2|1.3      default 1.2\n"
	"  --ciphers LIST     OpenSSL names; default ECDHE-RSA-AES256-GCM-SHA384 or TLS_AES_256_GCM_SHA384\n"
	"  --curves LIST      OpenSSL names; default as stunnel's\n"
	"  --clients N        serve: how many clients at a time; default 64\n"
	"  --user UID         serve: allow this user too, besides its own user and root\n"
	"  --want tx|rx|both  directions that must be in the kernel; default tx (tx is always needed)\n"
	"  --timeout SECONDS  for each step; default 10\n"
	"  --fallback PATH    on failure, warn once and open a new connection through this stunnel\n"
	"\n"
	"exit: 0 ok, 1 usage, 2 handshake or verification, 3 kTLS refused, 4 not available here, 5 connect or listen,\n"
	"      6 time-out, 7 parent gone, 8 internal\n";

/* Everything before the hand-over. *listener is opened for accept, also when kTLS fails, for the fallback. */
static bool open_connection(const struct options *o, int *listener, struct result *r, struct failure *f)
{
	SSL_CTX *ctx = handshake_context(o, f); /* first: a wrong file costs no connection */
	int sock = -1;
	bool ok = false;

	if (!ctx)
		return false;
	if (o->verb == VERB_ACCEPT)
		*listener = net_listen(o, f);
	if ((o->verb == VERB_CONNECT || *listener >= 0) && ktls_possible(f)) {
		sock = o->verb == VERB_CONNECT ? net_connect(o, f) : net_accept(*listener, o, f);
		ok = sock >= 0 && establish(ctx, sock, o, r, f);
	}
	SSL_CTX_free(ctx);
	if (!ok && sock >= 0)
		close(sock);
	return ok;
}

/* Tell the outcome to whom it belongs; the exit code. */
static int deliver(const struct options *o, const struct result *r, const struct failure *f, bool ok)
{
	struct failure lost = { 0 };
	struct text t = { .len = 0 };
	bool reported;

	if (ok) {
		text_result(&t, r);
	} else {
		text_failure(&t, f);
		say("%s", f->message);
	}
	if (o->fd >= 0)
		reported = handoff_send(o->fd, &t, ok ? r->sock : -1, o->timeout_ms, &lost);
	else
		reported = fwrite(t.buf, 1, t.len, stdout) == t.len && fflush(stdout) == 0;
	if (reported || !ok)
		return ok ? RC_OK : f->exit;
	say("%s", *lost.message ? lost.message : "cannot write to standard output");
	return RC_PARENT;
}

static int open_main(const struct options *o)
{
	struct failure f = { .exit = RC_INTERNAL, .cause = "internal" }, why;
	struct result r = { .sock = -1 };
	struct closed c;
	int listener = -1, rc;
	pid_t child = -1;
	bool ok = o->fd < 0 || handoff_usable(o->fd, &f);

	if (!ok) {
		say("%s", f.message);
		return f.exit;
	}
	ok = open_connection(o, &listener, &r, &f);
	/* A wrong option is the caller's mistake: stunnel must not paper over it. */
	if (!ok && o->fallback && f.exit != RC_USAGE) {
		why = f;
		ok = fallback_run(o, listener, &why, &r, &f, &child);
	}
	rc = deliver(o, &r, &f, ok);
	if (ok && o->fd < 0)
		safe_close(r.sock, o->timeout_ms, &c, &f);
	else if (ok)
		close(r.sock);
	if (rc != RC_OK && child > 0) {
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
	}
	if (listener >= 0)
		close(listener);
	return rc;
}

/* No key may reach a core file, or a debugger of our own user, no write to a gone peer may kill us, 0 to 2 must not
 * become sockets, and an inherited descriptor must not leak into stunnel. */
static void prepare(int fd)
{
	const struct rlimit none = { 0, 0 };
	int null;

	do
		null = open("/dev/null", O_RDWR | O_CLOEXEC);
	while (null >= 0 && null <= 2);
	if (null > 2)
		close(null);
	setrlimit(RLIMIT_CORE, &none);
	prctl(PR_SET_DUMPABLE, 0);
	signal(SIGPIPE, SIG_IGN);
	if (fd > 2)
		fcntl(fd, F_SETFD, FD_CLOEXEC);
}

static int usage_error(int argc, char **argv, struct options *o, const struct failure *f)
{
	struct failure ignored;

	o->timeout_ms = 1000;
	o->fd = argc > 1 && strcmp(argv[1], "close") != 0 && strcmp(argv[1], "serve") != 0 ? options_find_fd(argc, argv) : -1;
	if (o->fd >= 0 && !handoff_usable(o->fd, &ignored))
		o->fd = -1;
	return deliver(o, NULL, f, false);
}

int main(int argc, char **argv)
{
	static struct rules rules;
	struct options *o = &rules.o, said;
	struct failure f = { 0 };

	prepare(options_find_fd(argc, argv));
	if (!options_parse(argc, argv, o, &f))
		return usage_error(argc, argv, o, &f);
	said = *o;
	if (o->verb != VERB_HELP && o->verb != VERB_VERSION && !rules_read(&rules, &f))
		return usage_error(argc, argv, o, &f);
	switch (o->verb) {
	case VERB_HELP:
		return fputs(help, stdout) < 0;
	case VERB_VERSION:
		return printf("ktls-handoff %s, %s\n", VERSION, OpenSSL_version(OPENSSL_VERSION)) < 0;
	case VERB_CLOSE:
		return close_main(o);
	case VERB_SERVE:
		rules_free(&rules);
		return serve_main(&said);
	default:
		return open_main(o);
	}
}
