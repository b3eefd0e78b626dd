/* SPDX-License-Identifier: Apache-2.0 */
/* TLS 1.2 with AES-GCM-128 on a connection: by the kernel with fixed keys, or by libssl with a fixed secret. */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include <linux/tls.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include "costload.h"

#ifndef SOL_TLS
#define SOL_TLS 282
#endif
#ifndef TLS_TX_ZEROCOPY_RO
#define TLS_TX_ZEROCOPY_RO 3	/* Linux 5.19, newer than Debian 12's headers of the C library */
#endif

#define SUITE "PSK-AES128-GCM-SHA256"
#define COUNTERS 4

/* Cumulative, in the order of `enum` below; /proc/net/tls_stat of the namespace that asks. */
static const char *const counters[COUNTERS] = { "TlsTxDevice", "TlsTxSw", "TlsRxDevice", "TlsRxSw" };
enum { TX_DEVICE, TX_SW, RX_DEVICE, RX_SW };

static void count(unsigned long found[COUNTERS])
{
	FILE *file = fopen("/proc/self/net/tls_stat", "re");
	unsigned long value;
	char name[64];

	need(file, "/proc/net/tls_stat");
	while (fscanf(file, "%63s %lu", name, &value) == 2)
		for (int i = 0; i < COUNTERS; i++)
			if (!strcmp(name, counters[i]))
				found[i] = value;
	fclose(file);
}

/* Throw-away keys of a machine that lives a minute: the same in each run, so that each run does the same. */
static void install(int fd, int direction, unsigned char key)
{
	struct tls12_crypto_info_aes_gcm_128 info = {
		.info = { .version = TLS_1_2_VERSION, .cipher_type = TLS_CIPHER_AES_GCM_128 },
	};

	memset(info.key, key, sizeof(info.key));
	memset(info.salt, key, sizeof(info.salt));
	need(!setsockopt(fd, SOL_TLS, direction, &info, sizeof(info)), direction == TLS_TX ? "TLS_TX" : "TLS_RX");
}

static const char *kind(bool device, bool software)
{
	return device ? "hw" : software ? "sw" : "none";
}

/* Both directions, as after a handshake; says of each who does it. */
void ktls_install(int fd, bool client, struct ready *ready)
{
	unsigned long before[COUNTERS] = { 0 }, after[COUNTERS] = { 0 };

	need(!setsockopt(fd, IPPROTO_TCP, TCP_ULP, "tls", sizeof("tls")), "TCP_ULP tls");
	count(before);
	install(fd, TLS_TX, client ? 1 : 2);
	install(fd, TLS_RX, client ? 2 : 1);
	count(after);
	snprintf(ready->tx, sizeof(ready->tx), "%s",
		 kind(after[TX_DEVICE] > before[TX_DEVICE], after[TX_SW] > before[TX_SW]));
	snprintf(ready->rx, sizeof(ready->rx), "%s",
		 kind(after[RX_DEVICE] > before[RX_DEVICE], after[RX_SW] > before[RX_SW]));
}

/* The file must not change while it is sent: it never does here. */
void ktls_zerocopy(int fd)
{
	int on = 1;

	need(!setsockopt(fd, SOL_TLS, TLS_TX_ZEROCOPY_RO, &on, sizeof(on)), "TLS_TX_ZEROCOPY_RO");
}

static unsigned int client_secret(SSL *ssl, const char *hint, char *name, unsigned int name_size,
				  unsigned char *secret, unsigned int size)
{
	(void)ssl;
	(void)hint;
	snprintf(name, name_size, "cost");
	memset(secret, 3, size < 16 ? size : 16);
	return 16;
}

static unsigned int server_secret(SSL *ssl, const char *name, unsigned char *secret, unsigned int size)
{
	(void)ssl;
	(void)name;
	memset(secret, 3, size < 16 ? size : 16);
	return 16;
}

static _Noreturn void ssl_died(const char *what)
{
	char why[256] = "the other end is gone";

	if (ERR_peek_error())
		ERR_error_string_n(ERR_get_error(), why, sizeof(why));
	die(what, why);
}

/* A shared secret in place of certificates: records are made in the same way, and set-up is not measured. */
void *user_tls(int fd, bool client)
{
	SSL_CTX *ctx = SSL_CTX_new(client ? TLS_client_method() : TLS_server_method());
	SSL *ssl = ctx ? SSL_new(ctx) : NULL;

	if (!ssl || !SSL_set_max_proto_version(ssl, TLS1_2_VERSION) || !SSL_set_cipher_list(ssl, SUITE) ||
	    !SSL_set_fd(ssl, fd))
		ssl_died("libssl");
	SSL_set_psk_client_callback(ssl, client_secret);
	SSL_set_psk_server_callback(ssl, server_secret);
	if ((client ? SSL_connect(ssl) : SSL_accept(ssl)) != 1)
		ssl_died("handshake");
	return ssl;
}

size_t user_write(void *tls, const unsigned char *data, size_t len)
{
	size_t n = 0;

	if (!SSL_write_ex(tls, data, len, &n))
		ssl_died("SSL_write");
	return n;
}

size_t user_read(void *tls, unsigned char *data, size_t len)
{
	size_t n = 0;

	if (!SSL_read_ex(tls, data, len, &n))
		ssl_died("SSL_read");
	return n;
}
