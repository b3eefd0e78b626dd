/* SPDX-License-Identifier: Apache-2.0 */
/* The socket of a card: it cuts what QEMU sends into messages, and takes the files that come along. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "cx6.h"

#define HEADER 16u
enum { DMA_MAP = 2, SET_IRQS = 8 }; /* the messages that bring files */

bool server_listen(struct server *s, const char *path)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };

	s->fd = -1;
	if (strlen(path) >= sizeof(a.sun_path)) {
		errno = ENAMETOOLONG;
		return false;
	}
	strcpy(a.sun_path, path);
	s->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	unlink(path);
	return s->listener >= 0 && !bind(s->listener, (void *)&a, sizeof(a)) && !listen(s->listener, 1);
}

bool server_accept(struct server *s, struct card *c)
{
	s->fd = accept4(s->listener, NULL, NULL, SOCK_CLOEXEC);
	s->len = s->fd_count = 0;
	say(c, 1, "QEMU connected");
	return s->fd >= 0;
}

/* The guest has gone: the card is as after power-on. */
void server_close(struct server *s, struct card *c)
{
	close(s->fd);
	s->fd = -1;
	while (s->fd_count)
		close(s->fds[--s->fd_count]);
	for (uint32_t i = 0; i < VECTORS; i++)
		irq_set(c, i, -1);
	card_reset(c);
	guest_forget(&c->guest);
	say(c, 1, "QEMU disconnected; the card is reset");
}

static void keep_fds(struct server *s, struct msghdr *m)
{
	for (struct cmsghdr *h = CMSG_FIRSTHDR(m); h; h = CMSG_NXTHDR(m, h)) {
		uint32_t count = (uint32_t)((h->cmsg_len - CMSG_LEN(0)) / sizeof(int));

		if (h->cmsg_level != SOL_SOCKET || h->cmsg_type != SCM_RIGHTS)
			continue;
		for (uint32_t i = 0; i < count; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(h) + i * sizeof(int), sizeof(fd));
			if (s->fd_count < FDS_MAX)
				s->fds[s->fd_count++] = fd;
			else
				close(fd);
		}
	}
}

/* Bytes and files that have come. False if there is nobody any more. */
static bool receive(struct server *s)
{
	char ancillary[CMSG_SPACE(sizeof(int) * FDS_MAX)];
	struct iovec io = { s->in + s->len, sizeof(s->in) - s->len };
	struct msghdr m = { .msg_iov = &io, .msg_iovlen = 1, .msg_control = ancillary, .msg_controllen = sizeof(ancillary) };
	ssize_t got = recvmsg(s->fd, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

	if (got < 0)
		return errno == EAGAIN || errno == EINTR;
	keep_fds(s, &m);
	s->len += (uint32_t)got;
	return got > 0;
}

static bool reply(struct server *s, uint32_t len)
{
	uint32_t done = 0;

	while (done < len) {
		ssize_t put = send(s->fd, s->out + done, len - done, MSG_NOSIGNAL);

		if (put < 0 && errno != EINTR)
			return false;
		done += put > 0 ? (uint32_t)put : 0;
	}
	return true;
}

/*
 * A message without files may come in one piece with the next one, which has some: what has come is kept for the
 * message that takes files, and what that one leaves is closed.
 */
static bool one(struct server *s, struct card *c, uint32_t at, uint32_t size)
{
	struct message m = { .body = s->in + at + HEADER, .len = size - HEADER, .fd = s->fds, .fds = s->fd_count };
	uint32_t len;

	memcpy(&m.id, s->in + at, 2);
	memcpy(&m.command, s->in + at + 2, 2);
	memcpy(&m.flags, s->in + at + 8, 4);
	len = vfio_handle(c, &m, s->out);
	if (m.command == DMA_MAP || m.command == SET_IRQS) {
		for (uint32_t i = 0; i < s->fd_count; i++)
			if (s->fds[i] >= 0)
				close(s->fds[i]);
		s->fd_count = 0;
	}
	return !len || reply(s, len);
}

/* Everything that has come as a whole. False if the peer is gone or does not speak the protocol. */
bool server_serve(struct server *s, struct card *c)
{
	uint32_t at = 0, size;

	if (!receive(s))
		return false;
	while (s->len - at >= HEADER) {
		memcpy(&size, s->in + at + 4, 4);
		if (size < HEADER || size > MESSAGE_MAX)
			return false;
		if (s->len - at < size)
			break;
		if (!one(s, c, at, size))
			return false;
		at += size;
	}
	memmove(s->in, s->in + at, s->len - at);
	s->len -= at;
	return true;
}
