/* SPDX-License-Identifier: Apache-2.0 */
/* Who is the server, and whom does the client trust? Certificate from files or made up, CA, ciphers. */
#include <string.h>
#include <sys/stat.h>

#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/x509.h>

#include "tls.h"

/* The oldest entry of OpenSSL's error queue as text (3.5 adds "record layer failure" to every one); empties it. */
const char *openssl_reason(char *out, size_t size)
{
	unsigned long code = ERR_peek_error();
	const char *reason = ERR_SYSTEM_ERROR(code) ? strerror(ERR_GET_REASON(code)) : ERR_reason_error_string(code);

	snprintf(out, size, "%s", reason ? reason : "no reason given");
	ERR_clear_error();
	return out;
}

/* A certificate for the life of this process: the key is never written anywhere. */
static bool make_identity(SSL_CTX *ctx)
{
	EVP_PKEY *key = EVP_EC_gen("P-256");
	X509 *cert = X509_new();
	X509_NAME *name = cert ? X509_get_subject_name(cert) : NULL;
	bool ok = key && name && X509_set_version(cert, 2) && ASN1_INTEGER_set(X509_get_serialNumber(cert), 1) &&
		  X509_gmtime_adj(X509_getm_notBefore(cert), -86400) && /* clocks differ */
		  X509_gmtime_adj(X509_getm_notAfter(cert), 30L * 86400) && X509_set_pubkey(cert, key) &&
		  X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)"iperf3-tls", -1, -1, 0) &&
		  X509_set_issuer_name(cert, name) && X509_sign(cert, key, EVP_sha256()) &&
		  SSL_CTX_use_certificate(ctx, cert) == 1 && SSL_CTX_use_PrivateKey(ctx, key) == 1;

	EVP_PKEY_free(key);
	X509_free(cert);
	return ok;
}

static int no_passphrase(char *buf, int size, int writing, void *arg)
{
	(void)buf, (void)size, (void)writing, (void)arg;
	return 0; /* never ask on a terminal */
}

static bool load_identity(SSL_CTX *ctx, char *why, size_t size)
{
	struct stat st;
	char reason[160];

	SSL_CTX_set_default_passwd_cb(ctx, no_passphrase);
	if (stat(options.key, &st) == 0 && (st.st_mode & (S_IROTH | S_IWOTH)))
		snprintf(why, size, "--tls-key %s: any user can read or write it: chmod 600 first", options.key);
	else if (SSL_CTX_use_certificate_chain_file(ctx, options.cert) != 1)
		snprintf(why, size, "--tls-cert %s: %s", options.cert, openssl_reason(reason, sizeof(reason)));
	else if (SSL_CTX_use_PrivateKey_file(ctx, options.key, SSL_FILETYPE_PEM) != 1)
		snprintf(why, size, "--tls-key %s: %s", options.key, openssl_reason(reason, sizeof(reason)));
	else
		return true;
	return false;
}

static bool set_ciphers(SSL_CTX *ctx, char *why, size_t size)
{
	bool old = options.version == 12;
	/* An unknown name next to a known one is dropped in silence; only a list without any known one fails. */
	int ok = !options.ciphers || (old ? SSL_CTX_set_cipher_list(ctx, options.ciphers)
					  : SSL_CTX_set_ciphersuites(ctx, options.ciphers));

	if (!ok)
		snprintf(why, size, "--tls-ciphers '%s': OpenSSL has no such cipher for TLS %s", options.ciphers,
			 old ? "1.2" : "1.3");
	ERR_clear_error();
	return ok == 1;
}

static bool set_trust(SSL_CTX *ctx, char *why, size_t size)
{
	char reason[160];

	if (!options.ca)
		return true;
	SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
	if (SSL_CTX_load_verify_file(ctx, options.ca) == 1)
		return true;
	snprintf(why, size, "--tls-ca %s: no certificates in it: %s", options.ca, openssl_reason(reason, sizeof(reason)));
	return false;
}

/* The one context of this process (made at the first call), or NULL and the reason. */
SSL_CTX *context_for(bool server, char *why, size_t size)
{
	static SSL_CTX *ctx;

	if (ctx)
		return ctx;
	snprintf(why, size, "OpenSSL cannot create a context");
	ctx = SSL_CTX_new(server ? TLS_server_method() : TLS_client_method());
	if (!ctx)
		return NULL;
	SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
	SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
	SSL_CTX_set_num_tickets(ctx, 0); /* a ticket that nobody reads turns the close() of a sender into a reset */
	SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
	if (server ? (options.cert ? load_identity(ctx, why, size) : make_identity(ctx))
		   : set_ciphers(ctx, why, size) && set_trust(ctx, why, size))
		return ctx;
	SSL_CTX_free(ctx);
	return ctx = NULL;
}
