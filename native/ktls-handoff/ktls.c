/* SPDX-License-Identifier: Apache-2.0 */
/* Is TLS in the kernel, and is it the TLS that was negotiated? The only file that speaks SOL_TLS options. */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <linux/tls.h>
#include <openssl/crypto.h>
#include <openssl/obj_mac.h>

#include "handoff.h"

#ifndef SOL_TLS
#define SOL_TLS 282
#endif

union crypto {
	struct tls_crypto_info info;
	struct tls12_crypto_info_aes_gcm_128 gcm128;
	struct tls12_crypto_info_aes_gcm_256 gcm256;
	struct tls12_crypto_info_aes_ccm_128 ccm128;
	struct tls12_crypto_info_chacha20_poly1305 chacha;
};

struct kernel_cipher {
	int id, nid;
	const char *name;
	socklen_t size;
	size_t seq_at;
};

#define ROW(id, nid, name, type) { id, nid, name, sizeof(struct type), offsetof(struct type, rec_seq) }
static const struct kernel_cipher ciphers[] = {
	ROW(TLS_CIPHER_AES_GCM_128, NID_aes_128_gcm, "aes-gcm-128", tls12_crypto_info_aes_gcm_128),
	ROW(TLS_CIPHER_AES_GCM_256, NID_aes_256_gcm, "aes-gcm-256", tls12_crypto_info_aes_gcm_256),
	ROW(TLS_CIPHER_AES_CCM_128, NID_aes_128_ccm, "aes-ccm-128", tls12_crypto_info_aes_ccm_128),
	ROW(TLS_CIPHER_CHACHA20_POLY1305, NID_chacha20_poly1305, "chacha20-poly1305",
	    tls12_crypto_info_chacha20_poly1305),
};

static const struct kernel_cipher *by_id(int id)
{
	for (size_t i = 0; i < sizeof(ciphers) / sizeof(ciphers[0]); i++)
		if (ciphers[i].id == id)
			return &ciphers[i];
	return NULL;
}

/* Can this machine do it at all? An unconnected socket tells: the tls ULP answers ENOTCONN
 * (tls_init in net/tls/tls_main.c), an absent one ENOENT. Asking also loads the module, if we may. */
bool ktls_possible(struct failure *f)
{
#ifdef OPENSSL_NO_KTLS
	return failed(f, RC_NOT_HERE, "ktls", "not available here: this OpenSSL was built without kTLS");
#else
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), error = 0;

	if (fd < 0 || setsockopt(fd, IPPROTO_TCP, TCP_ULP, "tls", sizeof("tls")))
		error = errno;
	if (fd >= 0)
		close(fd);
	if (error == 0 || error == ENOTCONN)
		return true;
	return failed(f, RC_NOT_HERE, "ktls", "not available here: this kernel has no TLS for sockets: %s%s",
		      strerror(error), error == ENOENT ? " (load the module as root: modprobe tls)" : "");
#endif
}

static bool has_ulp(int fd)
{
	char ulp[16] = "";
	socklen_t len = sizeof(ulp) - 1;

	return !getsockopt(fd, IPPROTO_TCP, TCP_ULP, ulp, &len) && !strcmp(ulp, "tls");
}

/* Read what one direction (TLS_TX, TLS_RX) of the socket does, by its own word: its row, or NULL with errno. The answer
 * holds the key, so it is wiped. */
static const struct kernel_cipher *read_back(int fd, int direction, int *version, char seq[17])
{
	union crypto c = { 0 };
	const struct kernel_cipher *row = NULL;
	socklen_t len = sizeof(c.info);
	const unsigned char *at;

	if (!has_ulp(fd)) {
		errno = ENOPROTOOPT;
		return NULL;
	}
	if (getsockopt(fd, SOL_TLS, direction, &c, &len))
		return NULL;
	row = by_id(c.info.cipher_type);
	len = row ? row->size : 0;
	if (!row)
		errno = EOPNOTSUPP;
	else if (getsockopt(fd, SOL_TLS, direction, &c, &len))
		row = NULL;
	if (row) {
		at = (const unsigned char *)&c + row->seq_at;
		*version = c.info.version;
		for (int i = 0; i < 8; i++)
			snprintf(seq + 2 * i, 3, "%02x", at[i]);
	}
	OPENSSL_cleanse(&c, sizeof(c));
	return row;
}

/* Say whether the kernel does TLS in this direction of the socket. */
bool ktls_installed(int fd, int direction)
{
	char seq[17];
	int version;

	return read_back(fd, direction, &version, seq);
}

/* Compare one installed direction with what was negotiated. */
static bool compare(SSL *ssl, int fd, int direction, const char **kernel_cipher, char seq[17], struct failure *f)
{
	const char *word = direction == TLS_TX ? "send" : "receive";
	int version = 0, nid = SSL_CIPHER_get_cipher_nid(SSL_get_current_cipher(ssl));
	const struct kernel_cipher *row = read_back(fd, direction, &version, seq);

	if (!row)
		return failed(f, RC_KTLS, "ktls", "the kernel does not report its %s state: %s", word, strerror(errno));
	if (row->nid != nid || version != SSL_version(ssl))
		return failed(f, RC_KTLS, "ktls", "kTLS %s is %s version %#x, but %s %s was negotiated", word,
			      row->name, (unsigned int)version, SSL_get_version(ssl), SSL_get_cipher_name(ssl));
	*kernel_cipher = row->name;
	return true;
}

/* OpenSSL gives no reason, so name the ones that its source knows (ssl/t1_enc.c, ssl/tls13_enc.c). */
static bool refused(SSL *ssl, const char *word, struct failure *f)
{
	int nid = SSL_CIPHER_get_cipher_nid(SSL_get_current_cipher(ssl));
	const char *why = "OpenSSL or the kernel does not support the cipher";
	bool known = false;

	for (size_t i = 0; i < sizeof(ciphers) / sizeof(ciphers[0]); i++)
		known |= ciphers[i].nid == nid;
	if (!known)
		why = "kTLS does not support this cipher";
	else if (SSL_version(ssl) == TLS1_3_VERSION && !strcmp(word, "receive"))
		why = "OpenSSL before 3.2 installs no kTLS receive for TLS 1.3; use --tls 1.2 or --want tx";
	return failed(f, RC_KTLS, "ktls", "kTLS %s refused for %s %s by %s: %s", word, SSL_get_version(ssl),
		      SSL_get_cipher_name(ssl), OpenSSL_version(OPENSSL_VERSION_STRING), why);
}

static void fill(SSL *ssl, int fd, bool rx, struct result *r)
{
	struct diag diag;

	diag_query(fd, &diag);
	r->via = "ktls";
	r->tx = diag.known ? diag.tx : "unknown";
	r->rx = !rx ? "none" : diag.known ? diag.rx : "unknown";
	snprintf(r->version, sizeof(r->version), "%s", SSL_version(ssl) == TLS1_3_VERSION ? "1.3" : "1.2");
	snprintf(r->cipher, sizeof(r->cipher), "%s", SSL_get_cipher_name(ssl));
	r->sock = fd;
	who_fill(fd, r);
}

/* A connection that ended by a reset has no peer any more; the socket knows why. */
static bool ended(int fd, struct failure *f)
{
	socklen_t len = sizeof(int);
	int error = 0;

	getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len);
	return failed(f, RC_HANDSHAKE, "handshake", "the connection ended right after the handshake: %s",
		      error ? strerror(error) : "the reason is unknown");
}

/* Check that the kernel does what was negotiated, and fill *r. Sending must be installed whatever --want says:
 * a consumer of a socket without it would write plaintext to the wire. */
bool ktls_check(SSL *ssl, int fd, const struct options *o, struct result *r, struct failure *f)
{
	const char *rx_cipher;
	bool tx = BIO_get_ktls_send(SSL_get_wbio(ssl)), rx = BIO_get_ktls_recv(SSL_get_rbio(ssl));

	if (!tx)
		return refused(ssl, "send", f);
	if (!rx && (o->want & WANT_RX))
		return refused(ssl, "receive", f);
	if (!compare(ssl, fd, TLS_TX, &r->kernel_cipher, r->tx_seq, f))
		return false;
	if (rx && !compare(ssl, fd, TLS_RX, &rx_cipher, r->rx_seq, f))
		return false;
	if (SSL_has_pending(ssl))
		return failed(f, RC_KTLS, "pending", "OpenSSL holds data that the program would never receive");
	if (!peer_name(fd, r->peer, sizeof(r->peer)))
		return ended(fd, f);
	fill(ssl, fd, rx, r);
	return true;
}

/* OpenSSL flushes what it has written before it gives the keys to the kernel, so its Finished is a small segment behind
 * another: with Nagle's algorithm it waits for the peer's delayed ACK, 40 ms. */
static void at_once(int fd, int on)
{
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)); /* if it fails, it is only slow */
}

/* Handshake and checks on a connected socket; it is handed over in blocking mode, TCP_NODELAY off. */
bool establish(SSL_CTX *ctx, int sock, const struct options *o, struct result *r, struct failure *f)
{
	SSL *ssl;
	bool ok;

	at_once(sock, 1);
	ssl = handshake_run(ctx, sock, o, f);
	at_once(sock, 0);
	if (!ssl)
		return false;
	ok = ktls_check(ssl, sock, o, r, f);
	if (ok && !set_blocking(sock))
		ok = failed(f, RC_INTERNAL, "internal", "fcntl: %s", strerror(errno));
	/* Never SSL_shutdown(): its alert would end the stream that the consumer is about to use. */
	SSL_free(ssl);
	return ok;
}
