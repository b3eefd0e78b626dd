/* SPDX-License-Identifier: Apache-2.0 */
/* Connect by kernel TLS or else by stunnel, from a C program: one header, no library, no thread, no signal handler.
 *
 *	#define _GNU_SOURCE
 *	#include "ktls-connect.h"
 *
 *	struct ktls_target to = { .host = "192.0.2.2", .port = "8443", .policy = "/etc/migration.conf",
 *				  .resident = "/run/ktls-offload.sock" };		(C++: = {}, and assignments)
 *	struct ktls_answer answer;
 *	int fd = ktls_connect(&to, &answer);
 *
 * The resident is `ktls-offload connect --serve`, and ktls-handoff(8) has its protocol; connect.md has the keys of
 * a policy. A resident that works by another policy, or that is older than this header, refuses. Whatever fails before
 * its answer is whole is one warning line on standard error, and a stunnel of our own carries the stream, verified by
 * the same policy. fd is blocking and close-on-exec: a TCP socket on which the kernel encrypts, by its own word, or the
 * plain side of stunnel (a unix socket). answer.line is the JSON. answer.stunnel, if it is not 0, is a child to reap
 * after the stream; it ends with it. -1: neither way, or a wrong policy; answer.warning says why, nothing is printed.
 * Descriptors 0 to 2 must be open.
 */
#ifndef KTLS_CONNECT_H
#define KTLS_CONNECT_H

#ifndef _GNU_SOURCE
#error "define _GNU_SOURCE before the first #include: memfd_create() and pipe2() are needed"
#endif

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { KTLS_LINE = 8192, KTLS_WHY = 1024, KTLS_POLICY = 16384, KTLS_FDS = 16,
       KTLS_TCP_ULP = 31, KTLS_SOL_TLS = 282, KTLS_TLS_TX = 1 }; /* of the kernel: a C library may be older */

/* Where to, and how. name: NULL for the host. stunnel: NULL for /usr/bin/stunnel4. timeout_ms is for each step: 0 for
 * 10 s. warn: NULL for standard error; else it gets the line, without its end, and arg. */
struct ktls_target {
	const char *host, *port, *name, *policy, *resident, *stunnel;
	int timeout_ms;
	void (*warn)(const char *line, void *arg);
	void *arg;
};

struct ktls_answer {
	char line[KTLS_LINE];	/* JSON, as in ktls-handoff(8); empty if there is no socket */
	char warning[KTLS_WHY]; /* why not by the kernel, or empty */
	pid_t stunnel;		/* 0: by the kernel */
};

/* What follows up to ktls_connect() is for its use only. */
static inline long long ktls__now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000LL + t.tv_nsec / 1000000;
}

static inline int ktls__wait(int fd, long long until)
{
	struct pollfd p = { fd, POLLIN, 0 };
	long long left;
	int n;

	do {
		left = until - ktls__now();
		n = poll(&p, 1, left > 0 ? (int)left : 0);
	} while (n < 0 && errno == EINTR);
	return n;
}

/* The value of the last line `key = value` in out, without blanks; 0 if there is none. */
static inline int ktls__value(const char *text, const char *key, char *out, size_t size)
{
	int found = 0;

	for (const char *at = text; *at; at += strcspn(at, "\n"), at += *at == '\n') {
		const char *line = at + strspn(at, " \t\r"), *value = line + strlen(key);
		size_t len;

		if (strncmp(line, key, strlen(key)) != 0 || *(value += strspn(value, " \t")) != '=')
			continue;
		value += 1 + strspn(value + 1, " \t");
		len = strcspn(value, "\r\n");
		while (len && (value[len - 1] == ' ' || value[len - 1] == '\t'))
			len--;
		snprintf(out, size, "%.*s", (int)len, value);
		found = 1;
	}
	return found;
}

static inline int ktls__is(const char *text, const char *key, const char *value)
{
	char said[16] = "";

	return ktls__value(text, key, said, sizeof(said)) && !strcmp(said, value);
}

/* Refuse a line that no policy has, as ktls-handoff does; 0, or -1 with why. */
static inline int ktls__lines(const char *file, const char *text, char *why)
{
	static const char keys[] = " sslVersion ciphers ciphersuites curves CAfile verifyChain verifyPeer checkHost checkIP "
				   "sni TIMEOUTconnect client ";
	int number = 1, names = 0;
	char key[20];

	for (const char *at = text; *at; at += *at == '\n', number++) {
		const char *line = at + strspn(at, " \t\r");
		size_t len = strcspn(line, " \t\r\n=");

		at += strcspn(at, "\n");
		if (line == at || *line == ';' || *line == '#')
			continue;
		snprintf(key, sizeof(key), " %.*s ", (int)(len < 16 ? len : 16), line);
		if (line[len + strspn(line + len, " \t")] != '=')
			snprintf(why, KTLS_WHY, "policy %s:%d: KEY = VALUE is expected; sections are not allowed", file, number);
		else if (!strstr(keys, key))
			snprintf(why, KTLS_WHY, "policy %s:%d: unknown key '%.*s'", file, number,
				 (int)(len < 40 ? len : 40), line);
		else if (!strncmp(key, " check", 6) && names++)
			snprintf(why, KTLS_WHY, "policy %s:%d: more than one name to check", file, number);
		else
			continue;
		return -1;
	}
	return 0;
}

/* Read the policy and refuse what would not be verified; 0, or -1 with why. */
static inline int ktls__policy(const struct ktls_target *to, char *text, char *why)
{
	int fd = open(to->policy, O_RDONLY | O_CLOEXEC), peer, chain;
	ssize_t n = fd < 0 ? -1 : read(fd, text, KTLS_POLICY + 1);
	char ca[8];

	if (fd < 0 || n < 0) {
		snprintf(why, KTLS_WHY, "policy %s: %s", to->policy, strerror(errno));
	} else if (n > KTLS_POLICY || memchr(text, '\0', (size_t)n)) {
		snprintf(why, KTLS_WHY, "policy %s: longer than %d bytes, or not text", to->policy, KTLS_POLICY);
		n = -1;
	}
	if (fd >= 0)
		close(fd);
	if (n < 0)
		return -1;
	text[n] = '\0';
	if (ktls__lines(to->policy, text, why))
		return -1;
	peer = ktls__is(text, "verifyPeer", "yes"), chain = ktls__is(text, "verifyChain", "yes");
	if ((peer && chain) || (!peer && !chain && !ktls__is(text, "verifyChain", "no")) ||
	    ((peer || chain) && !ktls__value(text, "CAfile", ca, sizeof(ca)))) {
		snprintf(why, KTLS_WHY, "policy %s: set CAfile and one of verifyChain and verifyPeer", to->policy);
		return -1;
	}
	return 0;
}

/* SHA-256 (FIPS 180-4): this header needs no library. */
struct ktls__sha {
	unsigned int h[8];
	unsigned char block[64];
	unsigned long long bytes;
};

static inline void ktls__sha_block(struct ktls__sha *s)
{
	static const unsigned int k[64] = {
		0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
		0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
		0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
		0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
		0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
		0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
		0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
		0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2 };
	unsigned int w[64], v[8];

	for (int i = 0; i < 16; i++)
		w[i] = (unsigned int)s->block[4 * i] << 24 | (unsigned int)s->block[4 * i + 1] << 16 |
		       (unsigned int)s->block[4 * i + 2] << 8 | s->block[4 * i + 3];
#define KTLS__ROR(x, n) ((x) >> (n) | (x) << (32 - (n)))
	for (int i = 16; i < 64; i++)
		w[i] = w[i - 16] + w[i - 7] + (KTLS__ROR(w[i - 15], 7) ^ KTLS__ROR(w[i - 15], 18) ^ w[i - 15] >> 3) +
		       (KTLS__ROR(w[i - 2], 17) ^ KTLS__ROR(w[i - 2], 19) ^ w[i - 2] >> 10);
	memcpy(v, s->h, sizeof(v));
	for (int i = 0; i < 64; i++) {
		unsigned int a = v[0], e = v[4], t = v[7] + k[i] + w[i] + ((e & v[5]) ^ (~e & v[6])) +
			(KTLS__ROR(e, 6) ^ KTLS__ROR(e, 11) ^ KTLS__ROR(e, 25));

		memmove(v + 1, v, 7 * sizeof(v[0]));
		v[4] += t;
		v[0] = t + ((a & v[2]) ^ (a & v[3]) ^ (v[2] & v[3])) + (KTLS__ROR(a, 2) ^ KTLS__ROR(a, 13) ^ KTLS__ROR(a, 22));
	}
#undef KTLS__ROR
	for (int i = 0; i < 8; i++)
		s->h[i] += v[i];
}

static inline void ktls__sha_begin(struct ktls__sha *s)
{
	static const unsigned int h[8] = { 0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
					   0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19 };

	memcpy(s->h, h, sizeof(h));
	s->bytes = 0;
}

static inline void ktls__sha_add(struct ktls__sha *s, const void *data, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		s->block[s->bytes++ % 64] = ((const unsigned char *)data)[i];
		if (s->bytes % 64 == 0)
			ktls__sha_block(s);
	}
}

static inline void ktls__sha_hex(struct ktls__sha *s, char out[65])
{
	unsigned long long bits = s->bytes * 8;
	unsigned char length[8];

	ktls__sha_add(s, "\x80", 1);
	while (s->bytes % 64 != 56)
		ktls__sha_add(s, "", 1);
	for (int i = 0; i < 8; i++)
		length[i] = (unsigned char)(bits >> (56 - 8 * i));
	ktls__sha_add(s, length, 8);
	for (int i = 0; i < 8; i++)
		snprintf(out + 8 * i, 9, "%08x", s->h[i]);
}

/* Add "KEY=VALUE" of a policy: its value, or else one by default, or no line. */
static inline void ktls__sha_line(struct ktls__sha *s, const char *text, const char *key, const char *as, const char *otherwise)
{
	char value[KTLS_POLICY + 1];

	if (!text || !ktls__value(text, key, value, sizeof(value))) {
		if (!otherwise)
			return;
		snprintf(value, sizeof(value), "%s", otherwise);
	}
	ktls__sha_add(s, as, strlen(as));
	ktls__sha_add(s, "=", 1);
	ktls__sha_add(s, value, strlen(value));
	ktls__sha_add(s, "\n", 1);
}

static inline int ktls__sha_file(const char *path, char out[65], char *why)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct ktls__sha s;
	char part[4096];
	ssize_t n = -1;

	ktls__sha_begin(&s);
	while (fd >= 0 && (n = read(fd, part, sizeof(part))) > 0)
		ktls__sha_add(&s, part, (size_t)n);
	if (n < 0)
		snprintf(why, KTLS_WHY, "CAfile %.400s: %s", path, strerror(errno));
	else
		ktls__sha_hex(&s, out);
	if (fd >= 0)
		close(fd);
	return n < 0 ? -1 : 0;
}

/* What a resident must have for its own policy, as in ktls-handoff(8); 0, or -1 with why. */
static inline int ktls__digest(const char *text, char out[65], char *why)
{
	int peer = ktls__is(text, "verifyPeer", "yes"), chain = ktls__is(text, "verifyChain", "yes");
	int old = !ktls__is(text, "sslVersion", "TLSv1.3");
	char trust[65] = "", path[4097] = "";
	struct ktls__sha s;

	ktls__value(text, "CAfile", path, sizeof(path));
	if ((peer || chain) && ktls__sha_file(path, trust, why))
		return -1;
	ktls__sha_begin(&s);
	ktls__sha_line(&s, text, "sslVersion", "sslVersion", "TLSv1.2");
	ktls__sha_line(&s, text, old ? "ciphers" : "ciphersuites", "ciphers",
		       old ? "ECDHE-RSA-AES256-GCM-SHA384" : "TLS_AES_256_GCM_SHA384");
	ktls__sha_line(&s, text, "curves", "curves", NULL);
	ktls__sha_line(&s, NULL, "", "verify", peer ? "peer" : chain ? "chain" : "no");
	ktls__sha_line(&s, text, "checkHost", "name", NULL);
	ktls__sha_line(&s, text, "checkIP", "name", NULL);
	ktls__sha_line(&s, text, "sni", "sni", NULL);
	ktls__sha_line(&s, NULL, "", "CAfile", *trust ? trust : NULL);
	ktls__sha_hex(&s, out);
	return 0;
}

/* A word that could add a line to a request or to a configuration is none. */
static inline int ktls__word(const char *word)
{
	if (!word || !*word || !strncmp(word, "--", 2) || strlen(word) > 253)
		return 0;
	for (const char *c = word; *c; c++)
		if (*c <= ' ' || *c > '~')
			return 0;
	return 1;
}

/* Take one message: its length and the descriptors, all close-on-exec; -1 with why. */
static inline ssize_t ktls__receive(int conn, char *line, int *fds, int *count, char *why)
{
	union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(KTLS_FDS * sizeof(int))];
	} control;
	struct iovec iov = { line, KTLS_LINE - 1 };
	struct msghdr msg;
	ssize_t n;

	memset(&msg, 0, sizeof(msg));
	msg.msg_iov = &iov, msg.msg_iovlen = 1;
	msg.msg_control = control.buf, msg.msg_controllen = sizeof(control.buf);
	n = recvmsg(conn, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	*count = 0;
	for (struct cmsghdr *c = n < 0 ? NULL : CMSG_FIRSTHDR(&msg); c; c = CMSG_NXTHDR(&msg, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		*count = (int)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));
		memcpy(fds, CMSG_DATA(c), (size_t)*count * sizeof(int));
	}
	if (n >= 0)
		line[n] = '\0';
	if (n < 0)
		snprintf(why, KTLS_WHY, "%s", strerror(errno));
	else if (!n)
		snprintf(why, KTLS_WHY, "it closed the connection without an answer");
	else if ((msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) || line[n - 1] != '\n')
		snprintf(why, KTLS_WHY, "its answer was cut off");
	else
		return n;
	return -1;
}

/* Is it a connected TCP socket on which the kernel encrypts, by its own word? 1, or 0 with why. */
static inline int ktls__fit(int fd, char *why)
{
	struct sockaddr_storage sa;
	unsigned short info[2] = { 0, 0 }; /* struct tls_crypto_info: version and cipher, no key */
	int domain = 0, error = 0;
	socklen_t len = sizeof(domain);
	char ulp[16] = "";

	if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) || (domain != AF_INET && domain != AF_INET6)) {
		snprintf(why, KTLS_WHY, "a descriptor that is not a TCP socket");
		return 0;
	}
	len = sizeof(sa);
	if (getpeername(fd, (struct sockaddr *)&sa, &len)) {
		len = sizeof(error);
		getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len);
		snprintf(why, KTLS_WHY, "%s%s", error ? "the connection ended right after the handshake: " :
			 "a descriptor that is not a connected TCP socket", error ? strerror(error) : "");
		return 0;
	}
	len = sizeof(ulp) - 1;
	if (!getsockopt(fd, IPPROTO_TCP, KTLS_TCP_ULP, ulp, &len) && !strcmp(ulp, "tls")) {
		len = sizeof(info);
		if (!getsockopt(fd, KTLS_SOL_TLS, KTLS_TLS_TX, info, &len) && info[1])
			return 1;
	}
	snprintf(why, KTLS_WHY, "the kernel does not encrypt on the socket");
	return 0;
}

/* The socket of an answer; -1 with why. Every other descriptor is closed. */
static inline int ktls__judge(int conn, char *line, char *why)
{
	int fds[KTLS_FDS], count, fd = -1;
	ssize_t n = ktls__receive(conn, line, fds, &count, why);
	const char *said = n < 0 ? NULL : strstr(line, "\"message\":\"");

	if (n >= 0 && !strncmp(line, "{\"ok\":true,", 11) && count == 1)
		fd = ktls__fit(fds[0], why) ? fds[0] : -1;
	else if (n >= 0 && !strncmp(line, "{\"ok\":false,", 12) && count == 0 && said)
		snprintf(why, KTLS_WHY, "%.*s", (int)strcspn(said + 11, "\"\n"), said + 11);
	else if (n >= 0)
		snprintf(why, KTLS_WHY, "an invalid answer with %d descriptors", count);
	for (int i = 0; i < count; i++)
		if (fds[i] != fd)
			close(fds[i]);
	return fd;
}

static inline int ktls__ask(const struct ktls_target *to, const char *digest, int timeout, char *line, char *why)
{
	struct sockaddr_un sa;
	int conn = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), fd = -1;
	struct timeval patience = { timeout / 1000 + 1, 0 };
	char request[1024];

	memset(&sa, 0, sizeof(sa));
	sa.sun_family = AF_UNIX;
	/* connect() waits while the queue of the resident is full */
	setsockopt(conn, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	snprintf(sa.sun_path, sizeof(sa.sun_path), "%s", to->resident);
	snprintf(request, sizeof(request), "connect\n%s\n%s\n--digest\n%s\n--timeout\n%d.%03d\n%s%s%s", to->host,
		 to->port, digest, timeout / 1000, timeout % 1000, to->name ? "--name\n" : "", to->name ? to->name : "", to->name ? "\n" : "");
	if (strlen(to->resident) >= sizeof(sa.sun_path)) {
		snprintf(why, KTLS_WHY, "%s", strerror(ENAMETOOLONG));
	} else if (conn < 0 || connect(conn, (struct sockaddr *)&sa, sizeof(sa))) {
		snprintf(why, KTLS_WHY, "%s", strerror(errno));
	} else {
		/* the resident refuses a client without permission before it asks, so this may fail */
		ssize_t ignored = send(conn, request, strlen(request), MSG_NOSIGNAL);

		(void)ignored;
		if (ktls__wait(conn, ktls__now() + 3LL * timeout + 5000) == 1)
			fd = ktls__judge(conn, line, why);
		else
			snprintf(why, KTLS_WHY, "no answer in time");
	}
	if (conn >= 0)
		close(conn);
	return fd;
}

/* The policy and what else stunnel needs, on a descriptor. Of two lines for a key stunnel takes the last, but of
 * checkHost and checkIP each: a name that was asked for comes in their place. */
static inline int ktls__config(const struct ktls_target *to, const char *text, int timeout)
{
	const char *name = to->name ? to->name : to->host;
	int fd = memfd_create("stunnel.conf", MFD_CLOEXEC), ip, check;
	unsigned char address[16];
	char said[256];

	check = ktls__is(text, "verifyChain", "yes");
	if (!to->name && (ktls__value(text, "checkHost", said, sizeof(said)) || ktls__value(text, "checkIP", said, sizeof(said))))
		name = said, check = 0;
	ip = inet_pton(AF_INET, name, address) == 1 || inet_pton(AF_INET6, name, address) == 1;
	dprintf(fd, "sslVersion = TLSv1.2\nciphers = ECDHE-RSA-AES256-GCM-SHA384\nciphersuites = TLS_AES_256_GCM_SHA384\n"
		"sni = %s\n", ip ? "" : name);
	for (const char *at = text, *line; *at; at += *at == '\n') {
		line = at + strspn(at, " \t\r");
		at += strcspn(at, "\n");
		if (!to->name || (strncmp(line, "checkHost", 9) != 0 && strncmp(line, "checkIP", 7) != 0))
			dprintf(fd, "%.*s\n", (int)(at > line ? at - line : 0), line);
	}
	if (check)
		dprintf(fd, "%s = %s\n", ip ? "checkIP" : "checkHost", name);
	dprintf(fd, "TIMEOUTconnect = %d\nforeground = yes\nsyslog = no\ndebug = info\nclient = yes\nconnect = %s:%s\n",
		(timeout + 999) / 1000, to->host, to->port);
	if (fd >= 0)
		lseek(fd, 0, SEEK_SET);
	return fd;
}

static inline int ktls__spawn(const char *path, int io, int config, int log, pid_t *pid)
{
	extern char **environ;
	char number[12], *argv[] = { (char *)path, (char *)"-fd", number, NULL };
	posix_spawn_file_actions_t acts;
	int rc;

	snprintf(number, sizeof(number), "%d", config);
	posix_spawn_file_actions_init(&acts);
	posix_spawn_file_actions_adddup2(&acts, io, STDIN_FILENO);
	posix_spawn_file_actions_adddup2(&acts, io, STDOUT_FILENO);
	posix_spawn_file_actions_adddup2(&acts, log, STDERR_FILENO);
	posix_spawn_file_actions_adddup2(&acts, config, config); /* same number: takes close-on-exec off */
	rc = posix_spawn(pid, path, &acts, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&acts);
	return rc;
}

/* What a line of its log complains of, or NULL; [!]: said before the log is set up. */
static inline const char *ktls__trouble(const char *text)
{
	const char *at = strstr(text, " LOG"), *said = at ? strstr(at, "]: ") : NULL;

	if (!strncmp(text, "[!] ", 4))
		return text + 4;
	return said && at[4] >= '0' && at[4] <= '4' ? said + 3 : NULL;
}

/* Follow stunnel's log until its handshake is done: 0, the line in *a; -1 with why. */
static inline int ktls__shaken(int log, long long until, const struct ktls_target *to, struct ktls_answer *a, char *why)
{
	char text[512], cipher[64], trouble[400] = "it ended without a message", c;
	const char *at;
	size_t len = 0;

	for (;;) {
		if (ktls__wait(log, until) != 1) {
			snprintf(why, KTLS_WHY, "stunnel: the TLS connection timed out");
			return -1;
		}
		if (read(log, &c, 1) != 1) {
			snprintf(why, KTLS_WHY, "stunnel: %s", trouble);
			return -1;
		}
		if (c != '\n') {
			if (len < sizeof(text) - 1)
				text[len++] = c;
			continue;
		}
		text[len] = '\0', len = 0;
		at = strstr(text, " ciphersuite: ");
		if (at && sscanf(at, " ciphersuite: %63s", cipher) == 1) {
			snprintf(a->line, sizeof(a->line), "{\"ok\":true,\"via\":\"stunnel\",\"version\":\"%s\",\"cipher\":\"%s\","
				 "\"kernel_cipher\":null,\"tx\":\"none\",\"rx\":\"none\",\"tx_by\":null,\"rx_by\":null,"
				 "\"peer\":\"%s:%s\"}\n", strstr(text, "TLSv1.3") ? "1.3" : "1.2", cipher, to->host, to->port);
			return 0;
		}
		at = ktls__trouble(text);
		if (at && strcmp(trouble, "it ended without a message") == 0)
			snprintf(trouble, sizeof(trouble), "%.399s", at);
	}
}

/* A stunnel of our own: its plain side; -1 with why. */
static inline int ktls__stunnel(const struct ktls_target *to, const char *text, int timeout, struct ktls_answer *a, char *why)
{
	const char *path = to->stunnel ? to->stunnel : "/usr/bin/stunnel4";
	int pair[2], log[2] = { -1, -1 }, config = ktls__config(to, text, timeout), rc = config < 0 ? errno : 0, ok;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair)) {
		snprintf(why, KTLS_WHY, "%s", strerror(errno));
		if (config >= 0)
			close(config);
		return -1;
	}
	if (!rc && pipe2(log, O_CLOEXEC))
		rc = errno;
	if (!rc)
		rc = ktls__spawn(path, pair[1], config, log[1], &a->stunnel);
	close(pair[1]);
	if (config >= 0)
		close(config);
	if (log[1] >= 0)
		close(log[1]);
	if (rc)
		snprintf(why, KTLS_WHY, "%s: %s", path, strerror(rc));
	ok = !rc && !ktls__shaken(log[0], ktls__now() + 2LL * timeout, to, a, why);
	if (log[0] >= 0)
		close(log[0]);
	if (ok)
		return pair[0];
	if (!rc) {
		kill(a->stunnel, SIGKILL);
		waitpid(a->stunnel, NULL, 0);
	}
	a->stunnel = 0;
	close(pair[0]);
	return -1;
}

/* A connected socket on which plaintext goes in and comes out, or -1; see the head of this file. */
static inline int ktls_connect(const struct ktls_target *to, struct ktls_answer *a)
{
	char text[KTLS_POLICY + 2], digest[65], why[KTLS_WHY] = "", second[KTLS_WHY] = "";
	int timeout = to->timeout_ms > 0 ? to->timeout_ms : 10000, fd;

	memset(a, 0, sizeof(*a));
	if (!ktls__word(to->host) || !ktls__word(to->port) || (to->name && !ktls__word(to->name))) {
		snprintf(a->warning, sizeof(a->warning), "host, port or name is empty, too long or not a plain word");
		return -1;
	}
	if (!to->policy || !to->resident) {
		snprintf(a->warning, sizeof(a->warning), "policy and resident must be set");
		return -1;
	}
	if (ktls__policy(to, text, a->warning) || ktls__digest(text, digest, a->warning))
		return -1;
	fd = ktls__ask(to, digest, timeout, a->line, why);
	if (fd >= 0)
		return fd;
	a->line[0] = '\0';
	fd = ktls__stunnel(to, text, timeout, a, second);
	snprintf(a->warning, sizeof(a->warning), "%s port %s: no kTLS (resident %s: %.400s)%s%.400s", to->host, to->port,
		 to->resident, why, fd < 0 ? "; the fallback failed too: " : "; the stream goes through stunnel", second);
	for (char *c = a->warning; *c; c++)
		*c = *c >= ' ' && *c <= '~' ? *c : '?';
	if (fd >= 0 && to->warn)
		to->warn(a->warning, to->arg);
	else if (fd >= 0)
		fprintf(stderr, "ktls-connect: warning: %s\n", a->warning);
	return fd;
}

#endif
