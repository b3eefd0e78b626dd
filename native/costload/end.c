/* SPDX-License-Identifier: Apache-2.0 */
/* One end of a flow: a connection in a namespace, and one pass of payload per order. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <unistd.h>

#include "costload.h"

#define PORT 4433

/* Names and places of sockets of one flow: a port for each direction. */
static struct sockaddr_in place_of(const struct end *e, enum side side)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons((in_port_t)(PORT + 2 * e->channel + e->rx_row)) };

	if (inet_pton(AF_INET, e->load->address[side], &at.sin_addr) != 1)
		die(e->load->address[side], "not an IPv4 address");
	return at;
}

static void enter(const char *ns)
{
	char path[256];
	int fd;

	snprintf(path, sizeof(path), "/run/netns/%s", ns);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	need(fd >= 0 && !setns(fd, CLONE_NEWNET), path);
	close(fd);
}

static int listening(const struct end *e)
{
	struct sockaddr_in at = place_of(e, e->side);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;

	need(fd >= 0 && !setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)), "socket");
	need(!bind(fd, (struct sockaddr *)&at, sizeof(at)) && !listen(fd, 1), "listen");
	return fd;
}

/* The one who sends is the client. */
static int connected(const struct end *e)
{
	struct sockaddr_in at = place_of(e, e->side == DUT ? PEER : DUT);
	int fd = e->sends ? socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0) : listening(e), on = 1, got;

	need(fd >= 0, "socket");
	if (e->sends) {
		need(!connect(fd, (struct sockaddr *)&at, sizeof(at)), "connect");
	} else {
		need(write(e->answers, "l", 1) == 1, "answer");
		got = accept(fd, NULL, NULL);
		need(got >= 0, "accept");
		close(fd);
		fd = got;
	}
	need(!setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)), "TCP_NODELAY");
	return fd;
}

/* Plain TCP would wake its reader for each packet, where TLS does so for a record: then it is no floor. A read()
 * alone may take a part and then wait for less than that many bytes, for ever (tcp_data_ready, net/ipv4/tcp_input.c):
 * so the reader polls first. */
static void wake_per_chunk(int fd)
{
	int chunk = CHUNK;

	need(!setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &chunk, sizeof(chunk)), "SO_RCVLOWAT");
}

static void send_all(const struct end *e, int fd, void *tls, size_t size)
{
	static unsigned char copy[CHUNK];
	const unsigned char *data = e->load->data;
	off_t at = 0;
	ssize_t n;

	while ((size_t)at < size) {
		size_t left = size - (size_t)at, len = left < CHUNK ? left : CHUNK;

		if (e->side == DUT && !tls && (e->kind->file || e->kind->arm == HW_ZC)) {
			n = sendfile(fd, e->load->file, &at, left);	/* moves `at` itself */
			need(n > 0, "sendfile");
			continue;
		}
		if (e->side == DUT && e->kind->file)	/* libssl cannot send a file: it is read, then written */
			need(pread(e->load->file, copy, len, at) == (ssize_t)len, "pread");
		n = tls ? (ssize_t)user_write(tls, e->kind->file ? copy : data + at, len) : write(fd, data + at, len);
		need(n > 0, "write");
		at += n;
	}
}

static void receive_all(int fd, enum arm arm, void *tls, unsigned char *data, size_t size)
{
	struct pollfd wait = { .fd = fd, .events = POLLIN };
	size_t at = 0;

	while (at < size) {
		size_t len = size - at < CHUNK ? size - at : CHUNK;
		ssize_t n;

		need(arm != PLAIN || poll(&wait, 1, -1) == 1, "poll");
		n = tls ? (ssize_t)user_read(tls, data + at, len) : read(fd, data + at, len);
		need(n > 0, "read");
		at += (size_t)n;
	}
}

static unsigned char *landing(size_t size)
{
	unsigned char *data = mmap(NULL, size, PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	need(data != MAP_FAILED, "mmap");
	return data;
}

static bool same(const struct end *e, const unsigned char *got, size_t size)
{
	return !got || !memcmp(got, e->load->data, size);
}

static void move(const struct end *e, int fd, void *tls, unsigned char *got, size_t size)
{
	if (e->sends)
		send_all(e, fd, tls, size);
	else
		receive_all(fd, e->kind->arm, tls, got, size);
}

static void wait_for(const struct end *e, char wanted)
{
	char what = 0;

	if (read(e->orders, &what, 1) != 1 || what != wanted)
		die(e->name, "the coordinator has exited");
}

/* A connection with what its arm puts on it. */
static void *dressed(const struct end *e, int fd, struct ready *ready)
{
	enum arm arm = e->kind->arm;

	if (arm >= SW)
		ktls_install(fd, e->sends, ready);
	if (arm == HW_ZC && e->side == DUT && e->sends)
		ktls_zerocopy(fd);
	if (arm == PLAIN)
		wake_per_chunk(fd);
	return arm == USER ? user_tls(fd, e->sends) : NULL;
}

/* What arrives in the first pass is compared before it is called done, that of the second at the very end: so
 * neither is in what is measured between them. */
void end_run(struct end *e)
{
	const struct load *load = e->load;
	size_t most = e->warm > e->bytes ? e->warm : e->bytes;
	unsigned char *got = e->sends ? NULL : landing(most);
	struct ready ready = { "none", "none" };
	bool sound;
	void *tls;
	int fd;

	enter(load->ns[e->side]);
	fd = connected(e);
	tls = dressed(e, fd, &ready);
	need(write(e->answers, &ready, sizeof(ready)) == sizeof(ready), "answer");
	wait_for(e, 'g');
	move(e, fd, tls, got, e->warm);
	sound = same(e, got, e->warm);
	if (got)
		memset(got, 0, most);
	need(write(e->answers, "d", 1) == 1, "answer");
	wait_for(e, 'g');
	move(e, fd, tls, got, e->bytes);
	need(write(e->answers, "d", 1) == 1, "answer");
	wait_for(e, 'e');
	sound = sound && same(e, got, e->bytes);
	need(write(e->answers, sound ? "y" : "n", 1) == 1, "answer");
	_exit(0);
}
