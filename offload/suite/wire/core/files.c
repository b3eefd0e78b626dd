/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes of a file, or one sentence about why there are none. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <openssl/crypto.h>

#include "files.h"

static int refuse(struct failure *f, const char *what, const char *path, const char *why)
{
	return failed(f, RC_INPUT, "%s %.200s: %s", what, path, why);
}

/* Is it a way to name a descriptor that is open already? Then it may be a pipe. */
static bool is_descriptor(const char *path)
{
	return strncmp(path, "/dev/fd/", 8) == 0 || strncmp(path, "/proc/self/fd/", 14) == 0 ||
	       strcmp(path, "/dev/stdin") == 0;
}

/* Open without waiting for the other end of a FIFO; st tells what it is. */
static int open_file(const char *what, const char *path, struct stat *st, int *fd, struct failure *f)
{
	*fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (*fd < 0 || fstat(*fd, st) < 0) {
		int why = errno;

		if (*fd >= 0)
			close(*fd);
		return refuse(f, what, path, strerror(why));
	}
	return RC_OK;
}

/* Map a regular file for reading. */
int file_map(const char *what, const char *path, struct bytes *b, struct failure *f)
{
	struct stat st;
	void *at = NULL;
	int fd, rc = open_file(what, path, &st, &fd, f);

	if (rc != RC_OK)
		return rc;
	if (!S_ISREG(st.st_mode))
		rc = refuse(f, what, path, "not a regular file");
	else if (st.st_size)
		at = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
	if (st.st_size && at != MAP_FAILED)
		madvise(at, (size_t)st.st_size, MADV_HUGEPAGE); /* what is not cached yet is read in big pieces */
	if (at == MAP_FAILED)
		rc = refuse(f, what, path, strerror(errno));
	else
		*b = (struct bytes){ .at = at ? at : (const void *)"", .len = (size_t)st.st_size, .given = true };
	close(fd);
	return rc;
}

void file_unmap(struct bytes *b)
{
	if (b->len)
		munmap((void *)(uintptr_t)b->at, b->len);
	*b = (struct bytes){ 0 };
}

/* Like realloc, but what was there is wiped. */
static uint8_t *bigger(uint8_t *old, size_t len, size_t room)
{
	uint8_t *p = grab(room);

	if (old)
		memcpy(p, old, len);
	OPENSSL_cleanse(old, len);
	free(old);
	return p;
}

static int read_all(int fd, const char *path, size_t room, struct bytes *b, struct failure *f)
{
	uint8_t *buf = bigger(NULL, 0, room);
	size_t len = 0;
	ssize_t n;

	for (;;) {
		if (len == room) {
			buf = bigger(buf, len, room * 2);
			room *= 2;
		}
		n = read(fd, buf + len, room - len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0 || (len += (size_t)n) > KEYLOG_MAX)
			break;
	}
	*b = (struct bytes){ .at = buf, .len = len, .given = true };
	if (n < 0)
		return refuse(f, "keylog", path, strerror(errno));
	return n > 0 ? refuse(f, "keylog", path, "more than 64 MiB") : RC_OK;
}

/* Read a keylog. Whatever comes back in *b must be given to keylog_wipe(). */
int keylog_read(const char *path, struct bytes *b, struct failure *f)
{
	struct stat st;
	int fd, rc = open_file("keylog", path, &st, &fd, f);

	if (rc != RC_OK)
		return rc;
	if (!S_ISREG(st.st_mode) && !is_descriptor(path))
		rc = refuse(f, "keylog", path, "neither a regular file nor a descriptor");
	else if (S_ISREG(st.st_mode) && st.st_size > KEYLOG_MAX)
		rc = refuse(f, "keylog", path, "more than 64 MiB");
	else if (fcntl(fd, F_SETFL, 0) < 0)
		rc = refuse(f, "keylog", path, strerror(errno));
	else
		rc = read_all(fd, path, S_ISREG(st.st_mode) ? (size_t)st.st_size + 1 : 65536, b, f);
	close(fd);
	return rc;
}

void keylog_wipe(struct bytes *b)
{
	OPENSSL_cleanse((void *)(uintptr_t)b->at, b->len);
	free((void *)(uintptr_t)b->at);
	*b = (struct bytes){ 0 };
}
