/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes of one stream through TLS, with the return values of Nread(), Nwrite() and Nsendfile(); and the payload. */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <unistd.h>

#include <openssl/err.h>

#include "tls.h"

#define NET_SOFTERROR -1 /* net.h */
#define NET_HARDERROR -2

static struct stream *streams[FD_SETSIZE]; /* libiperf uses select(), so no descriptor is larger */
static char *pattern;			   /* twice PATTERN_SIZE: a piece from any place is in one piece */
static int pattern_fd = -1;

/* Fill the pattern; both ends do it from the same seed. */
bool pattern_make(uint32_t seed)
{
	uint64_t x = seed + 0x9e3779b97f4a7c15; /* xorshift64 must not start at 0 */

	if (pattern_fd < 0) {
		pattern_fd = memfd_create("payload", MFD_CLOEXEC);
		if (pattern_fd < 0 || ftruncate(pattern_fd, 2 * PATTERN_SIZE))
			return false;
		pattern = mmap(NULL, 2 * PATTERN_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, pattern_fd, 0);
	}
	if (pattern == MAP_FAILED)
		return false;
	for (size_t i = 0; i < PATTERN_SIZE; i += sizeof(x)) {
		x ^= x << 13, x ^= x >> 7, x ^= x << 17;
		memcpy(pattern + i, &x, sizeof(x));
	}
	memcpy(pattern + PATTERN_SIZE, pattern, PATTERN_SIZE);
	return true;
}

struct stream *stream_of(int fd)
{
	return fd >= 0 && fd < FD_SETSIZE ? streams[fd] : NULL;
}

/* A stream for a new connection, in place of an earlier one of the same number; NULL: failed. */
struct stream *stream_add(int fd)
{
	struct stream *s = fd >= 0 && fd < FD_SETSIZE ? stream_of(fd) : NULL;

	if (s)
		SSL_free(s->ssl);
	else if (fd >= 0 && fd < FD_SETSIZE)
		s = streams[fd] = malloc(sizeof(*s));
	if (s)
		*s = (struct stream){ .fd = fd, .waits = libiperf_has_threads() };
	else
		fail(C_INTERNAL, "no memory for stream %d", fd);
	return s;
}

/* After a test: its descriptors are closed, and the next test may get the same numbers. */
void stream_forget_all(void)
{
	for (int fd = 0; fd < FD_SETSIZE; fd++) {
		if (streams[fd])
			SSL_free(streams[fd]->ssl);
		free(streams[fd]);
		streams[fd] = NULL;
	}
	deal.on = false;
}

/* What a failed call means to libiperf: 0 for "no more now" (or end of file), or NET_HARDERROR. */
static int verdict(struct stream *s, int ret, int error, const char *word)
{
	char why[200];

	switch (SSL_get_error(s->ssl, ret)) {
	case SSL_ERROR_WANT_READ:
	case SSL_ERROR_WANT_WRITE:
	case SSL_ERROR_ZERO_RETURN:
		return 0;
	case SSL_ERROR_SYSCALL:
		if (error == 0 || error == EINTR)
			return 0;
		fail_ask_server();
		errno = error;
		return NET_HARDERROR;
	default:
		/* iperf3 ends a test by closing: no close_notify, and that is no failure */
		if (ERR_GET_REASON(ERR_peek_error()) == SSL_R_UNEXPECTED_EOF_WHILE_READING)
			return 0;
		fail_ask_server();
		fail(C_RECORD, "stream %d: TLS %s: %s", s->fd, word, openssl_reason(why, sizeof(why)));
		return NET_HARDERROR;
	}
}

/* Compare received bytes with the pattern, and step on. */
static bool intact(struct stream *s, const char *buf, size_t n)
{
	for (size_t done = 0, part; done < n; done += part) {
		part = n - done < PATTERN_SIZE ? n - done : PATTERN_SIZE;
		if (memcmp(buf + done, pattern + s->at, part)) {
			size_t i = 0;

			while (buf[done + i] == pattern[s->at + i])
				i++;
			fail(C_PAYLOAD, "stream %d: payload differs from what was sent at byte %llu: 0x%02x, expected 0x%02x",
			     s->fd, (unsigned long long)(s->verified + i), (unsigned char)buf[done + i],
			     (unsigned char)pattern[s->at + i]);
			return false;
		}
		s->verified += part;
		s->at = (s->at + part) % PATTERN_SIZE;
	}
	return true;
}

/* libiperf ends its threads by pthread_cancel(), and read() or sendmsg() inside OpenSSL is such a place: a lock would be
 * held for ever. So it may strike only while we wait, between calls (see pthread_setcanceltype in hooks.c). */
static int undisturbed(int (*call)(struct stream *, char *, size_t), struct stream *s, char *buf, size_t size)
{
	int old, n;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
	n = call(s, buf, size);
	pthread_setcancelstate(old, NULL);
	return n;
}

/* Repeat a call until count bytes are through: how many, fewer where it does not wait, or NET_HARDERROR. */
static int all(int (*call)(struct stream *, char *, size_t), struct stream *s, char *buf, size_t count)
{
	size_t done = 0;

	while (done < count) {
		int n = undisturbed(call, s, buf + done, count - done);

		if (n < 0)
			return n;
		done += (size_t)n;
		if (n == 0 && (!s->waits || !(SSL_want_read(s->ssl) || SSL_want_write(s->ssl))))
			break;
		if (n == 0 && wait_fd(s->fd, SSL_want_read(s->ssl) ? POLLIN : POLLOUT, now_ms() + 1000) < 0)
			return NET_HARDERROR;
	}
	return (int)done;
}

/* One piece in: how many bytes, 0 for "no more now" or the end, or NET_HARDERROR. */
static int get(struct stream *s, char *buf, size_t size)
{
	int n;

	ERR_clear_error();
	errno = 0;
	n = SSL_read(s->ssl, buf, (int)size);
	if (n <= 0)
		return verdict(s, n, errno, "receive");
	return deal.verify && !intact(s, buf, (size_t)n) ? NET_HARDERROR : n;
}

/* One piece out. */
static int put(struct stream *s, char *buf, size_t size)
{
	int n;

	ERR_clear_error();
	errno = 0;
	if (deal.verify) {
		buf = pattern + s->at;
		size = size < PATTERN_SIZE ? size : PATTERN_SIZE;
	}
	/* not SSL_set_max_send_fragment(): with another size than 16384 OpenSSL leaves the kernel out (t1_enc.c) */
	if (deal.record_size && size > (size_t)deal.record_size)
		size = (size_t)deal.record_size;
	/* a write that found no room is repeated with the same place and size, or more: what OpenSSL wants */
	n = SSL_write(s->ssl, buf, (int)size);
	if (n <= 0)
		return verdict(s, n, errno, "send");
	if (deal.verify)
		s->at = (s->at + (size_t)n) % PATTERN_SIZE;
	return n;
}

/* One piece of a file out, by the kernel; the place of buf is the place in the file. */
static int put_file(struct stream *s, char *buf, size_t size)
{
	off_t place = deal.verify ? (off_t)s->at : buf - s->base;
	ossl_ssize_t n;

	if (deal.verify && size > PATTERN_SIZE)
		size = PATTERN_SIZE;
	if (deal.record_size && size > (size_t)deal.record_size)
		size = (size_t)deal.record_size;
	ERR_clear_error();
	errno = 0;
	n = SSL_sendfile(s->ssl, deal.verify ? pattern_fd : s->file, place, size, 0);
	if (n <= 0)
		return verdict(s, (int)n, errno, "sendfile");
	if (deal.verify)
		s->at = (s->at + (size_t)n) % PATTERN_SIZE;
	return (int)n;
}

int stream_read(struct stream *s, char *buf, size_t count)
{
	return all(get, s, buf, count);
}

int stream_write(struct stream *s, const char *buf, size_t count)
{
	return all(put, s, (char *)buf, count);
}

/* sendfile() where the kernel sends the records; elsewhere the same bytes (buf is a map of the file) by a copy. */
int stream_sendfile(struct stream *s, int fd, const char *buf, size_t count)
{
	int n;

	if (!s->ktls_tx)
		return stream_write(s, buf, count);
	s->sendfile = true;
	s->file = fd;
	s->base = buf;
	n = all(put_file, s, (char *)buf, count); /* each block is the file from its start, as in Nsendfile() */
	return n ? n : NET_SOFTERROR;
}
