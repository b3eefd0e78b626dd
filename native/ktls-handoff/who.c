/* SPDX-License-Identifier: Apache-2.0 */
/* Who does the crypto: which driver of the kernel (/proc/crypto), or which device (the way to the peer)? */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "handoff.h"

enum { PROC_MAX = 256 * 1024 };

/* One algorithm of /proc/crypto as far as it matters. */
struct algorithm {
	char name[64], driver[64];
	long priority;
	bool internal;
};

/* net/tls/tls_main.c asks the kernel for these names, and gets who has the highest priority. */
static const char *algorithm_of(const char *kernel_cipher)
{
	return !strncmp(kernel_cipher, "aes-gcm", 7)   ? "gcm(aes)"
	       : !strncmp(kernel_cipher, "aes-ccm", 7) ? "ccm(aes)"
						       : "rfc7539(chacha20,poly1305)";
}

/* The word after "key : " in a line; its length in *len. NULL: another key, or nothing. No sscanf() here: with the 600
 * lines of a small kernel that was 0.36 ms of each hand-over. */
static const char *word_of(const char *line, const char *end, const char *key, size_t *len)
{
	size_t size = strlen(key);

	if ((size_t)(end - line) <= size || memcmp(line, key, size) != 0)
		return NULL;
	for (line += size; line < end && *line == ' ';)
		line++;
	if (line == end || *line != ':')
		return NULL;
	for (line++; line < end && *line == ' ';)
		line++;
	for (*len = 0; line + *len < end && line[*len] != ' ';)
		++*len;
	return *len ? line : NULL;
}

static void take_word(const char *line, const char *end, const char *key, char out[64])
{
	size_t len;
	const char *word = word_of(line, end, key, &len);

	if (word)
		snprintf(out, 64, "%.*s", (int)(len < 64 ? len : 64), word);
}

static void read_line(const char *line, const char *end, struct algorithm *a)
{
	char number[64] = "", yes[64] = "";

	switch (*line) {
	case 'n':
		take_word(line, end, "name", a->name);
		break;
	case 'd':
		take_word(line, end, "driver", a->driver);
		break;
	case 'p':
		take_word(line, end, "priority", number);
		if (*number)
			a->priority = strtol(number, NULL, 10);
		break;
	case 'i':
		take_word(line, end, "internal", yes);
		a->internal |= !strcmp(yes, "yes");
		break;
	}
}

/* Find in the text of /proc/crypto who does this cipher; false, and an empty text, if nobody is there. */
bool who_driver(const char *proc_crypto, const char *kernel_cipher, char *out, size_t size)
{
	const char *wanted = algorithm_of(kernel_cipher), *end;
	struct algorithm a = { .priority = 0 };
	long best = -1;

	*out = '\0';
	for (const char *at = proc_crypto;; at = end + 1) {
		end = strchrnul(at, '\n');
		read_line(at, end, &a);
		if (end != at && *end) /* an algorithm ends with an empty line, or with the text */
			continue;
		if (!strcmp(a.name, wanted) && !a.internal && a.priority > best) {
			best = a.priority;
			snprintf(out, size, "%s", a.driver);
		}
		a = (struct algorithm){ .priority = 0 };
		if (!*end)
			return *out;
	}
}

static void fill_driver(const char *kernel_cipher, char *out, size_t size)
{
	int fd = open("/proc/crypto", O_RDONLY | O_CLOEXEC);
	char *text = fd < 0 ? NULL : malloc(PROC_MAX);
	size_t len = 0;
	ssize_t n = 0;

	while (text && (n = read(fd, text + len, PROC_MAX - 1 - len)) > 0)
		len += (size_t)n;
	if (text) {
		text[len] = '\0';
		who_driver(text, kernel_cipher, out, size);
	}
	free(text);
	if (fd >= 0)
		close(fd);
}

/* The outgoing interface in the kernel's answer to RTM_GETROUTE; 0 if it is not there. */
static unsigned int outgoing(const struct nlmsghdr *h, ssize_t n)
{
	unsigned int found = 0;
	const struct rtattr *a;
	int left;

	if (n < (ssize_t)NLMSG_LENGTH(sizeof(struct rtmsg)) || !NLMSG_OK(h, (size_t)n) || h->nlmsg_type != RTM_NEWROUTE)
		return 0;
	left = (int)RTM_PAYLOAD(h);
	for (a = RTM_RTA(NLMSG_DATA(h)); RTA_OK(a, left); a = RTA_NEXT(a, left))
		if (a->rta_type == RTA_OIF && RTA_PAYLOAD(a) == sizeof(found))
			memcpy(&found, RTA_DATA(a), sizeof(found));
	return found;
}

/* Ask the routing table which way the peer's address is: number of the interface, or 0. */
static unsigned int route(const struct sockaddr_storage *to)
{
	const bool v6 = to->ss_family == AF_INET6;
	const void *address = v6 ? (const void *)&((const struct sockaddr_in6 *)to)->sin6_addr
				 : (const void *)&((const struct sockaddr_in *)to)->sin_addr;
	const unsigned short size = v6 ? 16 : 4;
	struct {
		struct nlmsghdr h;
		struct rtmsg m;
		struct rtattr a;
		unsigned char address[16];
	} ask = { .h = { .nlmsg_type = RTM_GETROUTE, .nlmsg_flags = NLM_F_REQUEST,
			 .nlmsg_len = (unsigned int)(NLMSG_LENGTH(sizeof(struct rtmsg)) + RTA_LENGTH(size)) },
		  .m = { .rtm_family = (unsigned char)to->ss_family, .rtm_dst_len = (unsigned char)(8 * size) },
		  .a = { .rta_type = RTA_DST, .rta_len = (unsigned short)RTA_LENGTH(size) } };
	_Alignas(8) char answer[4096];
	int nl = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_ROUTE);
	ssize_t n = -1;

	memcpy(ask.address, address, size);
	if (nl >= 0 && send(nl, &ask, ask.h.nlmsg_len, 0) > 0 && wait_fd(nl, POLLIN, now_ms() + 1000) == 1)
		n = recv(nl, answer, sizeof(answer), MSG_DONTWAIT);
	if (nl >= 0)
		close(nl);
	return outgoing((const void *)answer, n);
}

static void fill_device(int fd, char *out, size_t size)
{
	struct sockaddr_storage to;
	socklen_t len = sizeof(to);
	char name[IF_NAMESIZE];
	unsigned int index = getpeername(fd, (struct sockaddr *)&to, &len) ? 0 : route(&to);

	if (index && if_indextoname(index, name))
		snprintf(out, size, "%s", name);
}

/* Name who does each direction of *r: a driver for sw, a device for hw. */
void who_fill(int fd, struct result *r)
{
	struct { const char *how; char *by; } both[] = { { r->tx, r->tx_by }, { r->rx, r->rx_by } };

	for (int i = 0; i < 2; i++) {
		if (!strcmp(both[i].how, "hw"))
			fill_device(fd, both[i].by, sizeof(r->tx_by));
		else if (!strcmp(both[i].how, "sw") && i && !strcmp(r->tx, "sw"))
			memcpy(r->rx_by, r->tx_by, sizeof(r->rx_by));
		else if (!strcmp(both[i].how, "sw"))
			fill_driver(r->kernel_cipher, both[i].by, sizeof(r->tx_by));
	}
}
