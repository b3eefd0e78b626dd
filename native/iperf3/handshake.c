/* SPDX-License-Identifier: Apache-2.0 */
/* From a connected socket to TLS, in the kernel or not: handshake, directions, and who does the records. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <linux/tls.h>
#include <openssl/err.h>

#include "tls.h"

#define HANDSHAKE_MS 10000
#ifndef SOL_TLS
#define SOL_TLS 282
#endif
#ifndef TLS_TX_ZEROCOPY_RO
#define TLS_TX_ZEROCOPY_RO 3 /* linux/tls.h since 6.0 */
#endif

/* Can this machine do it at all? An unconnected socket tells: the tls ULP answers ENOTCONN (tls_init in
 * net/tls/tls_main.c), an absent one ENOENT. */
bool ktls_possible(char *why, size_t size)
{
#ifdef OPENSSL_NO_KTLS
	snprintf(why, size, "--ktls=require: this OpenSSL was built without kTLS");
	return false;
#else
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), error = 0;

	if (fd < 0 || setsockopt(fd, IPPROTO_TCP, TCP_ULP, "tls", sizeof("tls")))
		error = errno;
	if (fd >= 0)
		close(fd);
	if (error == 0 || error == ENOTCONN)
		return true;
	snprintf(why, size, "--ktls=require: this kernel has no TLS for sockets: %s%s", strerror(error),
		 error == ENOENT ? " (load the module as root: modprobe tls)" : "");
	return false;
#endif
}

/* A socket BIO that knows nothing of kTLS: OpenSSL has one switch for both directions, and asks the BIO of each. */
static int plain_io(BIO *bio, char *buf, int len, bool out)
{
	int fd = (int)(intptr_t)BIO_get_data(bio);
	ssize_t n = out ? send(fd, buf, (size_t)len, MSG_NOSIGNAL) : recv(fd, buf, (size_t)len, 0);

	BIO_clear_retry_flags(bio);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		BIO_set_flags(bio, (out ? BIO_FLAGS_WRITE : BIO_FLAGS_READ) | BIO_FLAGS_SHOULD_RETRY);
	if (n == 0 && !out)
		BIO_set_flags(bio, BIO_FLAGS_IN_EOF);
	return (int)n;
}

static int plain_read(BIO *bio, char *buf, int len)
{
	return plain_io(bio, buf, len, false);
}

static int plain_write(BIO *bio, const char *buf, int len)
{
	return plain_io(bio, (char *)buf, len, true);
}

static long plain_ctrl(BIO *bio, int command, long number, void *data)
{
	(void)number, (void)data;
	if (command == BIO_CTRL_EOF)
		return BIO_test_flags(bio, BIO_FLAGS_IN_EOF) != 0;
	return command == BIO_CTRL_FLUSH;
}

static BIO *bio_for(int fd, bool kernel)
{
	static BIO_METHOD *plain;
	BIO *bio;

	if (kernel)
		return BIO_new_socket(fd, BIO_NOCLOSE);
	if (!plain) {
		plain = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "socket without kTLS");
		if (!plain || !BIO_meth_set_read(plain, plain_read) || !BIO_meth_set_write(plain, plain_write) ||
		    !BIO_meth_set_ctrl(plain, plain_ctrl))
			return NULL;
	}
	bio = BIO_new(plain);
	if (bio) {
		BIO_set_data(bio, (void *)(intptr_t)fd);
		BIO_set_init(bio, 1);
	}
	return bio;
}

/* The connection object: version, directions, record size, and the name that the certificate must carry. */
static SSL *prepare(int fd, bool server)
{
	char why[300];
	SSL_CTX *ctx = context_for(server, why, sizeof(why));
	SSL *ssl = ctx ? SSL_new(ctx) : NULL;
	BIO *in = bio_for(fd, deal.ktls & KTLS_RX), *out = bio_for(fd, deal.ktls & KTLS_TX);
	int version = deal.version == 12 ? TLS1_2_VERSION : TLS1_3_VERSION;
	const char *host = server ? NULL : iperf_get_test_server_hostname(the_test);

	if (!ssl || !in || !out || !SSL_set_min_proto_version(ssl, version) || !SSL_set_max_proto_version(ssl, version)) {
		BIO_free(in), BIO_free(out), SSL_free(ssl);
		return NULL;
	}
	SSL_set_bio(ssl, in, out);
#ifndef OPENSSL_NO_KTLS
	if (deal.ktls)
		SSL_set_options(ssl, SSL_OP_ENABLE_KTLS);
#endif
	if (host && options.ca && !X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host))
		SSL_set1_host(ssl, host);
	ERR_clear_error();
	if (server)
		SSL_set_accept_state(ssl);
	else
		SSL_set_connect_state(ssl);
	return ssl;
}

static void explain(SSL *ssl, int error, bool server)
{
	long verdict = SSL_get_verify_result(ssl);
	const char *peer = server ? "a client" : iperf_get_test_server_hostname(the_test);
	char why[200];

	if (options.ca && verdict != X509_V_OK)
		fail(C_HANDSHAKE, "TLS handshake with %s: %s", peer, X509_verify_cert_error_string(verdict));
	else if (ERR_peek_last_error())
		fail(C_HANDSHAKE, "TLS handshake with %s: %s", peer, openssl_reason(why, sizeof(why)));
	else
		fail(C_HANDSHAKE, "TLS handshake with %s: %s", peer,
		     error ? strerror(error) : "the peer closed the connection");
}

static bool shake(struct stream *s, bool server)
{
	long long deadline = now_ms() + HANDSHAKE_MS;

	for (;;) {
		int ret, saved, kind;

		ERR_clear_error();
		errno = 0;
		ret = SSL_do_handshake(s->ssl);
		saved = errno;
		if (ret == 1)
			return true;
		kind = SSL_get_error(s->ssl, ret);
		if (kind != SSL_ERROR_WANT_READ && kind != SSL_ERROR_WANT_WRITE) {
			explain(s->ssl, saved, server);
			return false;
		}
		if (wait_fd(s->fd, kind == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT, deadline) != 1) {
			fail(C_HANDSHAKE, "TLS handshake with %s: not finished within %d s",
			     server ? "a client" : iperf_get_test_server_hostname(the_test), HANDSHAKE_MS / 1000);
			return false;
		}
	}
}

/* Note who does the records of each direction: user, sw, hw, or "kernel" where inet_diag does not tell sw from hw. */
static void look(struct stream *s)
{
	struct diag diag;
	int one = 1;

	s->ktls_tx = BIO_get_ktls_send(SSL_get_wbio(s->ssl));
	s->ktls_rx = BIO_get_ktls_recv(SSL_get_rbio(s->ssl));
	diag_query(s->fd, &diag);
	s->tx = !s->ktls_tx ? "user" : diag.known ? diag.tx : "kernel";
	s->rx = !s->ktls_rx ? "user" : diag.known ? diag.rx : "kernel";
	/* software takes the option too, and copies all the same */
	if (s->ktls_tx && s->sender && iperf_get_test_zerocopy(the_test))
		s->zerocopy = !setsockopt(s->fd, SOL_TLS, TLS_TX_ZEROCOPY_RO, &one, sizeof(one)) && !strcmp(s->tx, "hw");
}

/* Each stream and connection starts at a place of its own in the pattern, so that bytes of another one show. */
static bool find_place(struct stream *s)
{
	uint32_t place = 0;

	if (!deal.verify)
		return true;
	if (!pattern_make(deal.seed) ||
	    SSL_export_keying_material(s->ssl, (unsigned char *)&place, sizeof(place), "EXPERIMENTAL iperf3-tls", 23,
				       NULL, 0, 0) != 1)
		return false;
	s->at = place % PATTERN_SIZE;
	return true;
}

/* Do the handshake on a new data connection; false: failed, and said so. */
bool handshake(struct stream *s, bool server)
{
	int flags = fcntl(s->fd, F_GETFL);
	bool ok;

	s->ssl = prepare(s->fd, server);
	if (!s->ssl || flags < 0 || fcntl(s->fd, F_SETFL, flags | O_NONBLOCK)) {
		fail(C_INTERNAL, "OpenSSL cannot create a connection");
		return false;
	}
	ok = shake(s, server);
	if (!s->waits) /* else we wait by poll(): see stream.c */
		fcntl(s->fd, F_SETFL, flags);
	if (!ok)
		return false;
	if (!find_place(s)) {
		fail(C_INTERNAL, "no memory for the payload pattern");
		return false;
	}
	look(s);
	if (!iperf_get_test_json_output(the_test))
		iperf_printf(the_test, "[%3d] %s %s, tx %s, rx %s%s\n", s->fd, SSL_get_version(s->ssl),
			     SSL_get_cipher_name(s->ssl), s->tx, s->rx, s->zerocopy ? ", zero-copy sendfile" : "");
	return true;
}

/* --ktls=require: the direction in which this stream carries data must be the kernel's. */
bool ktls_satisfied(const struct stream *s)
{
	const char *why = "kTLS has no such cipher, or the kernel refused it";

	if (!(deal.ktls & KTLS_REQUIRE) || (s->sender ? s->ktls_tx : s->ktls_rx))
		return true;
	if (!s->sender && deal.version == 13)
		why = "OpenSSL before 3.2 installs no kTLS receive for TLS 1.3; use --tls=1.2";
	fail(C_KTLS, "--ktls=require: kTLS %s refused for %s %s by %s: %s", s->sender ? "send" : "receive",
	     SSL_get_version(s->ssl), SSL_get_cipher_name(s->ssl), OpenSSL_version(OPENSSL_VERSION_STRING), why);
	return false;
}
