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

static void read_line(const char *at, size_t len, struct algorithm *a)
{
	char key[16] = "", value[64] = "", line[160];

	snprintf(line, sizeof(line), "%.*s", (int)(len < sizeof(line) ? len : sizeof(line)), at);
	if (sscanf(line, "%15s : %63s", key, value) != 2)
		return;
	if (!strcmp(key, "name"))
		memcpy(a->name, value, sizeof(value));
	else if (!strcmp(key, "driver"))
		memcpy(a->driver, value, sizeof(value));
	else if (!strcmp(key, "priority"))
		a->priority = strtol(value, NULL, 10);
	else if (!strcmp(key, "internal"))
		a->internal = !strcmp(value, "yes");
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
		read_line(at, (size_t)(end - at), &a);
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
