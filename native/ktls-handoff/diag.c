/* SPDX-License-Identifier: Apache-2.0 */
/* Software or card? Only inet_diag tells: INET_DIAG_ULP_INFO (kernel 6.1 and 6.12: CAP_NET_ADMIN is needed). */
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/tls.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "handoff.h"

/* Find one attribute in a sequence of attributes: its payload and length, or NULL. */
static const void *attribute(const void *at, size_t len, unsigned short type, size_t *size)
{
	const char *p = at;

	while (len >= sizeof(struct rtattr)) {
		struct rtattr a;

		memcpy(&a, p, sizeof(a));
		if (a.rta_len < sizeof(a) || a.rta_len > len)
			return NULL;
		if ((a.rta_type & NLA_TYPE_MASK) == type) {
			*size = a.rta_len - sizeof(a);
			return p + sizeof(a);
		}
		if (RTA_ALIGN(a.rta_len) >= len)
			return NULL;
		p += RTA_ALIGN(a.rta_len);
		len -= RTA_ALIGN(a.rta_len);
	}
	return NULL;
}

/* The word for one direction (TLS_INFO_TXCONF, TLS_INFO_RXCONF) among the attributes of the tls ULP. */
static const char *conf_name(const void *at, size_t len, unsigned short type)
{
	size_t size = 0;
	const void *value = attribute(at, len, type, &size);
	uint16_t conf;

	if (!value || size < sizeof(conf))
		return "none";
	memcpy(&conf, value, sizeof(conf));
	return conf == TLS_CONF_SW ? "sw" : conf == TLS_CONF_HW ? "hw" : "none";
}

/* Take tx and rx out of the kernel's answer; false (and known = false) if it does not hold them. */
bool diag_parse(const void *answer, size_t len, struct diag *out)
{
	const size_t head = NLMSG_HDRLEN + NLMSG_ALIGN(sizeof(struct inet_diag_msg));
	struct nlmsghdr h;
	size_t size = 0;
	const void *at;

	*out = (struct diag){ .known = false, .tx = "unknown", .rx = "unknown" };
	if (len < sizeof(h))
		return false;
	memcpy(&h, answer, sizeof(h));
	if (h.nlmsg_type != SOCK_DIAG_BY_FAMILY || h.nlmsg_len > len || h.nlmsg_len < head)
		return false;
	at = attribute((const char *)answer + head, h.nlmsg_len - head, INET_DIAG_ULP_INFO, &size);
	at = at ? attribute(at, size, INET_ULP_INFO_TLS, &size) : NULL;
	if (!at)
		return false;
	out->tx = conf_name(at, size, TLS_INFO_TXCONF);
	out->rx = conf_name(at, size, TLS_INFO_RXCONF);
	out->known = true;
	return true;
}

static bool fill_id(int fd, struct inet_diag_req_v2 *q)
{
	struct sockaddr_storage me, you;
	socklen_t len = sizeof(me);

	if (getsockname(fd, (struct sockaddr *)&me, &len))
		return false;
	len = sizeof(you);
	if (getpeername(fd, (struct sockaddr *)&you, &len))
		return false;
	q->sdiag_family = (uint8_t)me.ss_family;
	if (me.ss_family == AF_INET) {
		const struct sockaddr_in *a = (const void *)&me, *b = (const void *)&you;

		q->id.idiag_sport = a->sin_port, q->id.idiag_dport = b->sin_port;
		memcpy(q->id.idiag_src, &a->sin_addr, sizeof(a->sin_addr));
		memcpy(q->id.idiag_dst, &b->sin_addr, sizeof(b->sin_addr));
	} else {
		const struct sockaddr_in6 *a = (const void *)&me, *b = (const void *)&you;

		q->id.idiag_sport = a->sin6_port, q->id.idiag_dport = b->sin6_port;
		q->id.idiag_if = a->sin6_scope_id;
		memcpy(q->id.idiag_src, &a->sin6_addr, sizeof(a->sin6_addr));
		memcpy(q->id.idiag_dst, &b->sin6_addr, sizeof(b->sin6_addr));
	}
	return me.ss_family == AF_INET || me.ss_family == AF_INET6;
}

/* Ask about one connected socket; out->known stays false where the kernel does not or may not say. */
void diag_query(int fd, struct diag *out)
{
	struct {
		struct nlmsghdr h;
		struct inet_diag_req_v2 q;
	} ask = {
		.h = { .nlmsg_len = sizeof(ask), .nlmsg_type = SOCK_DIAG_BY_FAMILY, .nlmsg_flags = NLM_F_REQUEST },
		.q = { .sdiag_protocol = IPPROTO_TCP, .idiag_states = ~0U,
		       .idiag_ext = 1 << (INET_DIAG_INFO - 1),
		       .id.idiag_cookie = { INET_DIAG_NOCOOKIE, INET_DIAG_NOCOOKIE } },
	};
	struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };
	char answer[8192];
	ssize_t n;
	int nl;

	*out = (struct diag){ .known = false, .tx = "unknown", .rx = "unknown" };
	if (!fill_id(fd, &ask.q))
		return;
	nl = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
	if (nl < 0)
		return;
	/* The kernel answers inside sendto(); the wait is only for a kernel that does not answer at all. */
	if (sendto(nl, &ask, sizeof(ask), 0, (struct sockaddr *)&kernel, sizeof(kernel)) == sizeof(ask) &&
	    wait_fd(nl, POLLIN, now_ms() + 1000) == 1) {
		n = recv(nl, answer, sizeof(answer), MSG_DONTWAIT);
		if (n > 0)
			diag_parse(answer, (size_t)n, out);
	}
	close(nl);
}
