/* SPDX-License-Identifier: Apache-2.0 */
/* The control socket: JSON lines. What a card did by its own count, and the knobs that make it a bad one. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "cx6.h"

#define NUMBER(name) { #name, offsetof(struct truth, name) }
static const struct {
	const char *name;
	size_t at;
} numbers[] = {
	NUMBER(commands), NUMBER(unknown), NUMBER(doorbells), NUMBER(interrupts), NUMBER(tx_frames), NUMBER(tx_bytes),
	NUMBER(rx_frames), NUMBER(rx_bytes), NUMBER(rx_no_table), NUMBER(rx_no_buffer), NUMBER(rx_bad_checksum),
	NUMBER(own_frames), NUMBER(sealed), NUMBER(tx_tls_frames), NUMBER(tx_tls_bytes), NUMBER(tx_out_of_step),
	NUMBER(dumps), NUMBER(opened), NUMBER(rx_tls_frames), NUMBER(tags_failed), NUMBER(searches), NUMBER(found),
	NUMBER(confirmed), NUMBER(psv),
};

struct text {
	char *at;
	uint32_t room, len;
};

static void put(struct text *t, const char *name, uint64_t value)
{
	int len = snprintf(t->at + t->len, t->room - t->len, "%s\"%s\":%llu", t->len > 1 ? "," : "", name,
			   (unsigned long long)value);

	if (len > 0 && (uint32_t)len < t->room - t->len)
		t->len += (uint32_t)len;
}

static uint32_t tell(const struct card *c, char *out, uint32_t room)
{
	struct text t = { out, room - 3, 1 };

	out[0] = '{';
	put(&t, "card", (uint64_t)c->number);
	put(&t, "link", c->link);
	put(&t, "tis", c->shelf[KIND_TIS].used);
	put(&t, "tir", c->shelf[KIND_TIR].used);
	put(&t, "keys", c->shelf[KIND_DEK].used);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
		uint64_t value;

		memcpy(&value, (const char *)&c->truth + numbers[i].at, sizeof(value));
		put(&t, numbers[i].name, value);
	}
	for (int i = 0; i < FAULTS; i++)
		if (c->fault[i].every || c->fault[i].hit)
			put(&t, fault_name((enum fault)i), c->fault[i].hit);
	memcpy(out + t.len, "}\n", 3);
	return t.len + 2;
}

static uint32_t refuse(char *out, uint32_t room, const char *why)
{
	return (uint32_t)snprintf(out, room, "{\"error\":\"%s\"}\n", why);
}

/*
 * {"card":0}                         what it did
 * {"card":0,"fault":"NAME","every":N}   every Nth time; 0: never
 */
uint32_t control_line(struct card *cards, uint32_t count, const char *line, char *out, uint32_t room)
{
	unsigned int card;
	unsigned long long every;
	char name[32];
	int end = -1, got = sscanf(line, " {\"card\":%u,\"fault\":\"%31[a-z-]\",\"every\":%llu}%n", &card, name, &every, &end);

	if (got < 1)
		return refuse(out, room, "wanted: {\\\"card\\\":N} or {\\\"card\\\":N,\\\"fault\\\":\\\"NAME\\\",\\\"every\\\":N}");
	if (card >= count)
		return refuse(out, room, "there is no such card");
	if (got == 3 && end > 0 && !fault_set(&cards[card], name, every))
		return refuse(out, room, "there is no such fault");
	if (got == 2 || (got == 3 && end < 0))
		return refuse(out, room, "a fault wants \\\"every\\\":N");
	return tell(&cards[card], out, room);
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
	char out[2048], *end;

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
