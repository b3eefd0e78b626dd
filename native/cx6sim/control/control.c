/* SPDX-License-Identifier: Apache-2.0 */
/* The control socket: a line of JSON asks what a card did, or turns a knob that makes it a bad one. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "cx6.h"

static uint32_t refuse(char *out, uint32_t room, const char *why)
{
	return (uint32_t)snprintf(out, room, "{\"error\":\"%s\"}\n", why);
}

/*
 * {"card":0}                            what it did
 * {"card":0,"fault":"NAME","every":N}   every Nth time; 0: never
 */
uint32_t control_line(struct card *cards, uint32_t count, const char *line, char *out, uint32_t room)
{
	struct request wanted;
	const char *wrong = request_read(line, &wanted);

	if (wrong)
		return refuse(out, room, wrong);
	if (wanted.card >= count)
		return refuse(out, room, "no such card");
	if (wanted.has_fault && !fault_set(&cards[wanted.card], wanted.fault, wanted.every))
		return refuse(out, room, "no such fault");
	return truth_tell(&cards[wanted.card], out, room);
}

bool control_listen(struct control *k, const char *path)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };

	if (strlen(path) >= sizeof(a.sun_path)) {
		errno = ENAMETOOLONG;
		return false;
	}
	strcpy(a.sun_path, path);
	unlink(path);
	k->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	return k->listener >= 0 && !bind(k->listener, (void *)&a, sizeof(a)) && !listen(k->listener, 1);
}

int control_fd(const struct control *k)
{
	return k->fd >= 0 ? k->fd : k->listener;
}

static void hang_up(struct control *k)
{
	close(k->fd);
	k->fd = -1;
	k->len = 0;
}

static void answer(struct control *k, struct card *cards, uint32_t count)
{
	char out[4096], *end;

	while ((end = memchr(k->line, '\n', k->len))) {
		uint32_t used = (uint32_t)(end - k->line) + 1, len;

		*end = 0;
		len = control_line(cards, count, k->line, out, sizeof(out));
		k->len -= used;
		memmove(k->line, k->line + used, k->len);
		if (send(k->fd, out, len, MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)len) {
			hang_up(k);
			return;
		}
	}
}

/* One client at a time; a line that is too long ends the talk. */
void control_serve(struct control *k, struct card *cards, uint32_t count)
{
	ssize_t got;

	if (k->fd < 0) {
		k->fd = accept4(k->listener, NULL, NULL, SOCK_CLOEXEC);
		return;
	}
	got = recv(k->fd, k->line + k->len, sizeof(k->line) - k->len, MSG_DONTWAIT);
	if (got <= 0) {
		hang_up(k);
		return;
	}
	k->len += (uint32_t)got;
	answer(k, cards, count);
}
