/* SPDX-License-Identifier: Apache-2.0 */
/* LD_PRELOAD for tests on a kernel without kTLS: the program under test believes that the kernel took TLS over.
 * Nothing is encrypted by it; it serves the paths around kTLS, the VM tests serve kTLS itself. What was installed is noted
 * on the socket itself, as the interval of a keep-alive that nobody sends (rig.py has the numbers too): the note goes with
 * the socket to another process, and a socket of which nobody asked for TLS has none.
 *   FAKE_KTLS_ABSENT  the tls module is not there        FAKE_KTLS_TX=0, FAKE_KTLS_RX=0  direction not installed
 *   FAKE_KTLS_CIPHER  number of the cipher read back     FAKE_KTLS_PENDING               OpenSSL holds data
 *   FAKE_SLOW_UNIX       so many milliseconds pass after each connect() and bind() of a unix socket: races are lost for sure
 *   FAKE_KTLS_KEYS    file that gets what OpenSSL installs, keys included, so that a test can look for them */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <linux/tls.h>
#include <openssl/bio.h>
#include <openssl/ssl.h>

#define SOL_TLS_NUMBER 282
enum { WITH_ULP = 3101, WITH_TX = 3102 };

static bool on(const char *name)
{
	const char *value = getenv(name);

	return !value || strcmp(value, "0") != 0;
}

static bool connected(int fd)
{
	struct sockaddr_storage sa;
	socklen_t len = sizeof(sa);

	return getpeername(fd, (struct sockaddr *)&sa, &len) == 0;
}

static int noted(int fd)
{
	int note = 0;
	socklen_t len = sizeof(note);

	return getsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &note, &len) ? 0 : note;
}

static void note_keys(const void *value, socklen_t len)
{
	const char *path = getenv("FAKE_KTLS_KEYS");
	int out = path ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600) : -1;

	if (out >= 0 && write(out, value, len) != (ssize_t)len)
		abort();
	if (out >= 0)
		close(out);
}

int setsockopt(int fd, int level, int name, const void *value, socklen_t len)
{
	static int (*real)(int, int, int, const void *, socklen_t);
	bool tls = level == SOL_TLS_NUMBER;
	int note = tls && name == TLS_TX ? WITH_TX : WITH_ULP;

	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "setsockopt");
	if (!tls && (level != IPPROTO_TCP || name != TCP_ULP))
		return real(fd, level, name, value, len);
	if (tls)
		note_keys(value, len);
	errno = getenv("FAKE_KTLS_ABSENT") ? ENOENT : ENOTCONN;
	if (errno == ENOENT || !connected(fd))
		return -1;
	if (note == WITH_TX || noted(fd) != WITH_TX)
		real(fd, IPPROTO_TCP, TCP_KEEPINTVL, &note, sizeof(note));
	errno = ENOTCONN;
	return tls ? -1 : 0; /* so that OpenSSL itself goes on to encrypt */
}

/* Somebody else is quick. */
static int dawdle(const struct sockaddr *sa, int rc)
{
	const char *ms = getenv("FAKE_SLOW_UNIX");
	int saved = errno;

	if (ms && sa->sa_family == AF_UNIX)
		usleep((unsigned int)atoi(ms) * 1000);
	errno = saved;
	return rc;
}

int connect(int fd, const struct sockaddr *sa, socklen_t len)
{
	static int (*real)(int, const struct sockaddr *, socklen_t);

	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "connect");
	return dawdle(sa, real(fd, sa, len));
}

int bind(int fd, const struct sockaddr *sa, socklen_t len)
{
	static int (*real)(int, const struct sockaddr *, socklen_t);

	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "bind");
	return dawdle(sa, real(fd, sa, len));
}

static int fake_state(int direction, void *value, socklen_t *len)
{
	const char *cipher = getenv("FAKE_KTLS_CIPHER");
	struct tls_crypto_info info = { TLS_1_2_VERSION, TLS_CIPHER_AES_GCM_256 };

	if (!on(direction == TLS_TX ? "FAKE_KTLS_TX" : "FAKE_KTLS_RX")) {
		errno = EBUSY;
		return -1;
	}
	if (cipher)
		info.cipher_type = (unsigned short)atoi(cipher);
	memset(value, 0, *len);
	memcpy(value, &info, sizeof(info));
	if (*len > sizeof(info)) /* rec_seq is the last member of each structure */
		((unsigned char *)value)[*len - 1] = 1;
	return 0;
}

int getsockopt(int fd, int level, int name, void *value, socklen_t *len)
{
	static int (*real)(int, int, int, void *, socklen_t *);

	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "getsockopt");
	if (level != SOL_TLS_NUMBER && (level != IPPROTO_TCP || name != TCP_ULP || getenv("FAKE_KTLS_ABSENT")))
		return real(fd, level, name, value, len);
	if (noted(fd) != WITH_ULP && noted(fd) != WITH_TX)
		return real(fd, level, name, value, len); /* as of a kernel: ENOPROTOOPT, or an empty name */
	if (level == IPPROTO_TCP) {
		strcpy(value, "tls");
		*len = 4;
		return 0;
	}
	if (name == TLS_RX || noted(fd) == WITH_TX)
		return fake_state(name, value, len);
	errno = EBUSY; /* do_tls_getsockopt_conf(): no key was installed */
	return -1;
}

static ElfW(Addr) program[2]; /* where the text of the program under test begins and ends */

/* The first object is the program itself: the walk ends with it. */
static int note_program(struct dl_phdr_info *info, size_t size, void *arg)
{
	(void)size, (void)arg;
	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_LOAD && info->dlpi_phdr[i].p_flags & PF_X) {
			program[0] = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
			program[1] = program[0] + info->dlpi_phdr[i].p_memsz;
		}
	return 1;
}

/* Once, and no dladdr() at each call: that walks all symbols of libcrypto, and was 60 % of what a hand-over cost. */
static __attribute__((constructor)) void find_program(void)
{
	dl_iterate_phdr(note_program, NULL);
}

static bool of_program(const void *caller)
{
	return (ElfW(Addr))caller >= program[0] && (ElfW(Addr))caller < program[1];
}

long BIO_ctrl(BIO *bio, int cmd, long number, void *parg)
{
	static long (*real)(BIO *, int, long, void *);

	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "BIO_ctrl");
	if (!real) /* Python loads it late, and for itself: as a part of hashlib */
		*(void **)&real = dlsym(dlopen("libcrypto.so.3", RTLD_LAZY | RTLD_NOLOAD), "BIO_ctrl");
	/* Called with an SSL attached by the program only, after the handshake; libssl asks during it and must
	 * hear the truth, or it would stop encrypting. */
	if ((cmd == BIO_CTRL_GET_KTLS_SEND || cmd == BIO_CTRL_GET_KTLS_RECV) && of_program(__builtin_return_address(0)))
		return on(cmd == BIO_CTRL_GET_KTLS_SEND ? "FAKE_KTLS_TX" : "FAKE_KTLS_RX");
	return real(bio, cmd, number, parg);
}

int SSL_has_pending(const SSL *ssl)
{
	static int (*real)(const SSL *);

	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "SSL_has_pending");
	return getenv("FAKE_KTLS_PENDING") ? 1 : real(ssl);
}
