/* SPDX-License-Identifier: Apache-2.0 */
/* Preloaded into an unmodified program: which secrets did its OpenSSL agree on? They go to a file in memory.
 *
 *   LD_PRELOAD=keylog.so KTLS_KEYLOG=/run/x/keys PROGRAM
 *
 * Only the path is in the environment. Anything that would leave secrets where they do not belong, or lose one,
 * ends the program with one line on standard error and exit code 125: keys are never half logged. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <openssl/ssl.h>

#define VARIABLE "KTLS_KEYLOG"
#define REFUSED 125

static int log_fd = -1;

static _Noreturn void refuse(const char *path, const char *why)
{
	fprintf(stderr, "keylog: %s: %s\n", path, why);
	_exit(REFUSED);
}

static bool in_memory(const struct statfs *fs)
{
	return fs->f_type == TMPFS_MAGIC || fs->f_type == RAMFS_MAGIC;
}

/* Before the file is made: a refused one must not be left behind. */
static void check_folder(const char *path)
{
	char *copy = strdup(path);
	struct statfs fs;

	if (!copy || statfs(dirname(copy), &fs))
		refuse(path, strerror(errno));
	if (!in_memory(&fs))
		refuse(path, "not in memory: the key log must be on tmpfs or ramfs");
	free(copy);
}

static int open_log(const char *path)
{
	struct statfs fs;
	struct stat st;
	int fd;

	check_folder(path);
	/* O_NONBLOCK: a fifo that nobody reads is an error, not a wait */
	fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0600);
	if (fd < 0 || fstat(fd, &st) || fstatfs(fd, &fs))
		refuse(path, errno == ELOOP ? "a symbolic link: give the file itself" : strerror(errno));
	if (!S_ISREG(st.st_mode) || !in_memory(&fs))
		refuse(path, "not a regular file in memory");
	if (st.st_uid != geteuid() || st.st_nlink != 1)
		refuse(path, "belongs to another user, or has a second hard link");
	if (st.st_mode & 077)
		refuse(path, "accessible to other users: run chmod 600");
	return fd;
}

static void find_log(void)
{
	const char *path = secure_getenv(VARIABLE);

	if (log_fd >= 0)
		return;
	if (!path || !*path)
		refuse(VARIABLE, "not set: name the file for the keys in it");
	log_fd = open_log(path);
}

/* One write for a line and its end: threads and forked children never mix theirs. */
static void log_line(const SSL *ssl, const char *line)
{
	struct iovec parts[] = { { (void *)line, strlen(line) }, { "\n", 1 } };

	(void)ssl;
	if (writev(log_fd, parts, 2) != (ssize_t)(parts[0].iov_len + 1))
		refuse("write", "a key was lost");
}

static void *real(const char *name)
{
	void *found = dlsym(RTLD_NEXT, name);

	if (!found)
		refuse(name, "this program's OpenSSL does not have it");
	return found;
}

/* A function of the program's own OpenSSL, with the type that the header gives it. */
#define REAL(name) (*(__typeof__(name) *)real(#name))

static SSL_CTX *with_log(SSL_CTX *ctx)
{
	if (!ctx)
		return NULL;
	find_log();
	REAL(SSL_CTX_set_keylog_callback)(ctx, log_line);
	return ctx;
}

/* What stunnel imports. Others import SSL_CTX_new; its own call of this one stays inside libssl. */
SSL_CTX *SSL_CTX_new_ex(OSSL_LIB_CTX *lib, const char *props, const SSL_METHOD *method)
{
	return with_log(REAL(SSL_CTX_new_ex)(lib, props, method));
}

SSL_CTX *SSL_CTX_new(const SSL_METHOD *method)
{
	return with_log(REAL(SSL_CTX_new)(method));
}

static char *hex(char *to, const unsigned char *from, size_t size)
{
	for (size_t i = 0; i < size; i++)
		to += sprintf(to, "%02x", from[i]);
	return to;
}

/* TLS 1.2: OpenSSL logs the secret when it makes its own Finished (ssl/statem/statem_lib.c,
 * tls_construct_finished). A server never does that for a client whose Finished is wrong, and then the keys are
 * needed most: they show what was wrong with it. */
static void log_broken(SSL *ssl)
{
	unsigned char nonce[SSL3_RANDOM_SIZE], secret[SSL_MAX_MASTER_KEY_LENGTH];
	char line[sizeof("CLIENT_RANDOM ") + 2 * sizeof(nonce) + 1 + 2 * sizeof(secret)] = "CLIENT_RANDOM ";
	SSL_SESSION *session = REAL(SSL_get_session)(ssl);
	size_t size = session ? REAL(SSL_SESSION_get_master_key)(session, secret, sizeof(secret)) : 0;
	char *end;

	if (size && REAL(SSL_version)(ssl) == TLS1_2_VERSION) {
		REAL(SSL_get_client_random)(ssl, nonce, sizeof(nonce));
		end = hex(line + strlen(line), nonce, sizeof(nonce));
		*end++ = ' ';
		hex(end, secret, size);
		log_line(ssl, line);
	}
	explicit_bzero(secret, sizeof(secret));
	explicit_bzero(line, sizeof(line));
}

int SSL_accept(SSL *ssl)
{
	int rc = REAL(SSL_accept)(ssl);

	if (rc <= 0 && log_fd >= 0 && REAL(SSL_get_error)(ssl, rc) == SSL_ERROR_SSL)
		log_broken(ssl);
	return rc;
}
