/* SPDX-License-Identifier: Apache-2.0 */
/* Who is the peer, and who are we: CA bundle, pinned certificate or nothing; own certificate and key. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include "handoff.h"

/* The name that the certificate must carry (--ca): --name, or else HOST. */
const char *verify_wanted_name(const struct options *o)
{
	return o->name ? o->name : o->host;
}

/* The server name to send, or NULL: RFC 6066 section 3 allows no IP literal there. */
const char *verify_sni(const struct options *o)
{
	const char *name = o->sni ? o->sni : verify_wanted_name(o);

	return *name && (o->sni || !is_ip(name)) ? name : NULL;
}

/* Replaces chain building: the leaf must be the pinned certificate, byte for byte. As with stunnel's
 * verifyPeer, the pin is the trust: the issuer is not judged, the dates are. */
static int verify_pin(X509_STORE_CTX *store, void *pinned)
{
	const X509 *leaf = X509_STORE_CTX_get0_cert(store);
	int verdict = X509_V_OK;

	if (!leaf || X509_cmp(leaf, pinned) != 0)
		verdict = X509_V_ERR_APPLICATION_VERIFICATION;
	else if (X509_cmp_current_time(X509_get0_notBefore(leaf)) >= 0)
		verdict = X509_V_ERR_CERT_NOT_YET_VALID;
	else if (X509_cmp_current_time(X509_get0_notAfter(leaf)) <= 0)
		verdict = X509_V_ERR_CERT_HAS_EXPIRED;
	X509_STORE_CTX_set_error(store, verdict);
	return verdict == X509_V_OK;
}

static int no_passphrase(char *buf, int size, int writing, void *arg)
{
	(void)buf, (void)size, (void)writing, (void)arg;
	return 0; /* never ask on a terminal */
}

/* Certificates, and lists of revoked ones, as SSL_CTX_load_verify_file() takes them from a file. */
static int add_all(X509_STORE *store, const STACK_OF(X509_INFO) *all)
{
	int count = 0;

	for (int i = 0; i < sk_X509_INFO_num(all); i++) {
		const X509_INFO *one = sk_X509_INFO_value(all, i);

		if ((one->x509 && !X509_STORE_add_cert(store, one->x509)) || (one->crl && !X509_STORE_add_crl(store, one->crl)))
			return 0;
		count += one->x509 || one->crl;
	}
	return count;
}

static bool load_bundle(SSL_CTX *ctx, const struct options *o, struct failure *f)
{
	BIO *in = BIO_new_mem_buf(o->pem, (int)o->pem_len);
	STACK_OF(X509_INFO) *all = in ? PEM_X509_INFO_read_bio(in, NULL, no_passphrase, NULL) : NULL;
	bool ok = all && add_all(SSL_CTX_get_cert_store(ctx), all) > 0;
	char why[160];

	BIO_free(in);
	sk_X509_INFO_pop_free(all, X509_INFO_free);
	return ok || failed(f, RC_USAGE, "usage", "--ca %s: no certificates in it: %s", o->ca,
			    openssl_reason(why, sizeof(why)));
}

/* The context owns the pinned certificate: this frees it together with the context. */
static void free_pin(void *ctx, void *pin, CRYPTO_EX_DATA *ad, int index, long l, void *p)
{
	(void)ctx, (void)ad, (void)index, (void)l, (void)p;
	X509_free(pin);
}

static int pin_slot = -1;
static pthread_once_t pin_slot_once = PTHREAD_ONCE_INIT;

static void get_pin_slot(void)
{
	pin_slot = SSL_CTX_get_ex_new_index(0, NULL, NULL, NULL, free_pin);
}

static bool load_pin(SSL_CTX *ctx, const struct options *o, struct failure *f)
{
	BIO *in = BIO_new_mem_buf(o->pem, (int)o->pem_len);
	X509 *pin = in ? PEM_read_bio_X509(in, NULL, no_passphrase, NULL) : NULL;
	char why[160];

	BIO_free(in);
	pthread_once(&pin_slot_once, get_pin_slot);
	if (!pin || pin_slot < 0 || !SSL_CTX_set_ex_data(ctx, pin_slot, pin)) {
		X509_free(pin);
		return failed(f, RC_USAGE, "usage", "--pin %s: not a PEM certificate: %s", o->pin,
			      openssl_reason(why, sizeof(why)));
	}
	SSL_CTX_set_cert_verify_callback(ctx, verify_pin, pin);
	return true;
}

/* Set how the context judges the peer, by the text that rules_read() has read; a server asks its client for nothing. */
bool verify_setup(SSL_CTX *ctx, const struct options *o, struct failure *f)
{
	if (o->verb != VERB_CONNECT || o->no_verify) {
		SSL_CTX_set_verify(ctx, SSL_VERIFY_NONE, NULL);
		return true;
	}
	SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
	if (o->pin)
		return load_pin(ctx, o, f);
	return load_bundle(ctx, o, f);
}

/* Set the SNI and, with --ca, the name that the certificate must carry. */
bool verify_name(SSL *ssl, const struct options *o, struct failure *f)
{
	X509_VERIFY_PARAM *param = SSL_get0_param(ssl);
	const char *sni = verify_sni(o), *name = verify_wanted_name(o);
	int ok = 1;

	if (sni && SSL_set_tlsext_host_name(ssl, sni) != 1)
		return failed(f, RC_USAGE, "usage", "cannot send the server name '%s'", sni);
	if (o->ca) {
		X509_VERIFY_PARAM_set_hostflags(param, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
		ok = is_ip(name) ? X509_VERIFY_PARAM_set1_ip_asc(param, name)
				 : X509_VERIFY_PARAM_set1_host(param, name, 0);
	}
	return ok == 1 || failed(f, RC_USAGE, "usage", "cannot check for the name '%s'", name);
}

/* Read a key file into buf: its size, or -1. Others must not be able to read or write it. */
static ssize_t read_key_file(const char *path, char *buf, size_t size, struct failure *f)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat st;
	ssize_t n = -1;

	if (fd < 0 || fstat(fd, &st)) {
		failed(f, RC_USAGE, "usage", "--key %s: %s", path, strerror(errno));
	} else if (!S_ISREG(st.st_mode)) {
		failed(f, RC_USAGE, "usage", "--key %s: not a regular file", path);
	} else if (st.st_mode & (S_IROTH | S_IWOTH)) {
		failed(f, RC_USAGE, "usage", "--key %s: any user can read or write it (mode %04o): chmod 600 first",
		       path, (unsigned int)st.st_mode & 07777);
	} else {
		n = read(fd, buf, size);
		if (n < 0)
			failed(f, RC_USAGE, "usage", "--key %s: %s", path, strerror(errno));
	}
	if (fd >= 0)
		close(fd);
	return n;
}

/* Load --cert and --key of a server; the text of the key is wiped. */
bool verify_load_identity(SSL_CTX *ctx, const struct options *o, struct failure *f)
{
	char pem[32768], why[160];
	EVP_PKEY *key = NULL;
	ssize_t n = read_key_file(o->key, pem, sizeof(pem), f);
	bool ok = false;
	BIO *in;

	if (n < 0)
		return false;
	in = BIO_new_mem_buf(pem, (int)n);
	if (in)
		key = PEM_read_bio_PrivateKey(in, NULL, no_passphrase, NULL);
	if (!key)
		failed(f, RC_USAGE, "usage", "--key %s: not a PEM key without passphrase: %s", o->key,
		       openssl_reason(why, sizeof(why)));
	else if (SSL_CTX_use_certificate_chain_file(ctx, o->cert) != 1)
		failed(f, RC_USAGE, "usage", "--cert %s: %s", o->cert, openssl_reason(why, sizeof(why)));
	else if (SSL_CTX_use_PrivateKey(ctx, key) != 1 || SSL_CTX_check_private_key(ctx) != 1)
		failed(f, RC_USAGE, "usage", "--key %s does not belong to --cert %s: %s", o->key, o->cert,
		       openssl_reason(why, sizeof(why)));
	else
		ok = true;
	EVP_PKEY_free(key);
	BIO_free(in);
	OPENSSL_cleanse(pem, sizeof(pem));
	return ok;
}
