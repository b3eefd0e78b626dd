/* SPDX-License-Identifier: Apache-2.0 */
/* OpenSSL to "established", on a non-blocking socket, with nothing read beyond the handshake. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include <openssl/err.h>

#include "handoff.h"

static bool set_ciphers(SSL_CTX *ctx, const struct options *o, struct failure *f)
{
	/* An unknown name next to a known one is dropped in silence; only a list without any known one fails. */
	int ok = o->tls == 12 ? SSL_CTX_set_cipher_list(ctx, o->ciphers) : SSL_CTX_set_ciphersuites(ctx, o->ciphers);

	ERR_clear_error();
	return ok == 1 || failed(f, RC_USAGE, "usage", "--ciphers '%s': OpenSSL has no such cipher for TLS %s",
				 o->ciphers, o->tls == 12 ? "1.2" : "1.3");
}

/* Offer what stunnel offers (5.68 and 5.74), so that a peer cannot tell us from it: its groups, in its order.
 * An OpenSSL without one of them (FIPS) offers its own list. What the caller asks for must be known. */
static bool set_groups(SSL_CTX *ctx, const struct options *o, struct failure *f)
{
	const char *groups = o->curves ? o->curves : o->verb == VERB_CONNECT ? "X25519:P-256:X448:P-521:P-384" : NULL;
	bool ok = !groups || SSL_CTX_set1_groups_list(ctx, groups) == 1;

	ERR_clear_error();
	if (o->staple)
		SSL_CTX_set_tlsext_status_type(ctx, TLSEXT_STATUSTYPE_ocsp);
	return ok || !o->curves || failed(f, RC_USAGE, "usage", "--curves '%s': OpenSSL does not support all of them", o->curves);
}

/* A context for one connection that is meant to end up in the kernel, or NULL. */
SSL_CTX *handshake_context(const struct options *o, struct failure *f)
{
	SSL_CTX *ctx = SSL_CTX_new(o->verb == VERB_CONNECT ? TLS_client_method() : TLS_server_method());
	int version = o->tls == 12 ? TLS1_2_VERSION : TLS1_3_VERSION;

	if (!ctx || !SSL_CTX_set_min_proto_version(ctx, version) || !SSL_CTX_set_max_proto_version(ctx, version)) {
		failed(f, RC_INTERNAL, "internal", "OpenSSL cannot create a context");
		SSL_CTX_free(ctx);
		return NULL;
	}
#ifndef OPENSSL_NO_KTLS
	SSL_CTX_set_options(ctx, SSL_OP_ENABLE_KTLS);
#endif
	SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
	SSL_CTX_set_read_ahead(ctx, 0); /* OpenSSL then reads exact records: none of the consumer's */
	SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
	SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS); /* none is held while we wait for a peer */
	/* A ticket that the client leaves unread turns its close() into a reset and loses our data. */
	if (o->verb == VERB_ACCEPT && SSL_CTX_set_num_tickets(ctx, 0) != 1)
		failed(f, RC_INTERNAL, "internal", "OpenSSL cannot disable session tickets");
	else if (set_groups(ctx, o, f) && set_ciphers(ctx, o, f) && verify_setup(ctx, o, f) &&
		 (o->verb == VERB_CONNECT || verify_load_identity(ctx, o, f)))
		return ctx;
	SSL_CTX_free(ctx);
	return NULL;
}

static bool explain(SSL *ssl, int ret, int saved_errno, const struct options *o, struct failure *f)
{
	int kind = SSL_get_error(ssl, ret);
	long verdict = SSL_get_verify_result(ssl);
	char why[160];

	if (o->verb == VERB_CONNECT && !o->no_verify && verdict != X509_V_OK) {
		ERR_clear_error();
		return failed(f, RC_HANDSHAKE, "verify", "%s port %s: %s", o->host, o->port,
			      verdict == X509_V_ERR_APPLICATION_VERIFICATION
				      ? "the peer's certificate is not the pinned one"
				      : X509_verify_cert_error_string(verdict));
	}
	if (kind == SSL_ERROR_SYSCALL)
		return failed(f, RC_HANDSHAKE, "handshake", "TLS handshake with %s port %s: %s", o->host, o->port,
			      saved_errno ? strerror(saved_errno) : "the peer closed the connection");
	return failed(f, RC_HANDSHAKE, "handshake", "TLS handshake with %s port %s: %s", o->host, o->port,
		      openssl_reason(why, sizeof(why)));
}

/* OpenSSL reads on as long as there is something, and skips HelloRequests without end: the time counts in there too. */
static long until_deadline(BIO *bio, int step, const char *data, size_t size, int i, long l, int ret, size_t *done)
{
	(void)data, (void)size, (void)i, (void)l, (void)done;
	if (step != BIO_CB_READ || now_ms() < *(const long long *)BIO_get_callback_arg(bio))
		return ret;
	BIO_clear_retry_flags(bio);
	return 0;
}

static bool shake_until(SSL *ssl, int fd, long long deadline, const struct options *o, struct failure *f)
{
	for (;;) {
		int ret, kind, saved, ready = 0;

		ERR_clear_error();
		errno = 0;
		ret = SSL_do_handshake(ssl);
		if (ret == 1)
			return true;
		saved = errno;
		kind = SSL_get_error(ssl, ret);
		if (now_ms() < deadline) {
			if (kind != SSL_ERROR_WANT_READ && kind != SSL_ERROR_WANT_WRITE)
				return explain(ssl, ret, saved, o, f);
			ready = wait_fd(fd, kind == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT, deadline);
		}
		if (ready == 0)
			return failed(f, RC_TIMEOUT, "timeout", "TLS handshake with %s port %s: not finished within %g s",
				      o->host, o->port, o->timeout_ms / 1e3);
		if (ready < 0)
			return failed(f, RC_INTERNAL, "internal", "poll: %s", strerror(errno));
	}
}

static bool shake(SSL *ssl, int fd, const struct options *o, struct failure *f)
{
	long long deadline = now_ms() + o->timeout_ms;
	BIO *bio = SSL_get_rbio(ssl);
	bool ok;

	BIO_set_callback_arg(bio, (char *)&deadline);
	BIO_set_callback_ex(bio, until_deadline);
	ok = shake_until(ssl, fd, deadline, o, f);
	BIO_set_callback_ex(bio, NULL);
	return ok;
}

/* Handshake on fd, which stays the caller's (BIO_NOCLOSE); NULL when it failed. */
SSL *handshake_run(SSL_CTX *ctx, int fd, const struct options *o, struct failure *f)
{
	SSL *ssl;
	BIO *bio;

	/* A random generator of its own for the connection, as in stunnel, where it has a thread of its own: what the
	 * context drew (ticket keys) then has no part in what the connection draws. See proof C in wire.md. */
	OPENSSL_thread_stop();
	ssl = SSL_new(ctx);
	bio = BIO_new_socket(fd, BIO_NOCLOSE);
	if (!ssl || !bio) {
		BIO_free(bio);
		failed(f, RC_INTERNAL, "internal", "OpenSSL cannot create a connection");
		goto err_free;
	}
	SSL_set_bio(ssl, bio, bio);
	if (o->verb == VERB_ACCEPT) {
		SSL_set_accept_state(ssl);
	} else {
		SSL_set_connect_state(ssl);
		if (!verify_name(ssl, o, f))
			goto err_free;
	}
	if (shake(ssl, fd, o, f))
		return ssl;
err_free:
	SSL_free(ssl);
	return NULL;
}
