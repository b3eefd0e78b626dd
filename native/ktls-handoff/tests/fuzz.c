/* SPDX-License-Identifier: Apache-2.0 */
/* libFuzzer: the parsers of other people's bytes: options, requests to the resident,
 * its answers, policies, the kernel's netlink answer and list of crypto drivers, stunnel's log, JSON text. */
#define _GNU_SOURCE
#include "../ktls-connect.h"

#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>

#include "../handoff.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Words are split at NUL bytes; each is a heap block of its own, so that reading past its end is seen. */
static void options(const char *data, size_t size)
{
	char *argv[64] = { NULL };
	struct options o;
	struct failure f = { 0 };
	struct text t = { .len = 0 };
	int argc = 0;

	argv[argc++] = strdup("ktls-handoff");
	while (size && argc < 63) {
		size_t len = strnlen(data, size);

		argv[argc++] = strndup(data, len);
		data += len, size -= len;
		if (size)
			data++, size--;
	}
	options_find_fd(argc, argv);
	if (!options_parse(argc, argv, &o, &f)) {
		if (f.exit != RC_USAGE || strcmp(f.cause, "usage") != 0)
			abort();
		text_failure(&t, &f);
	} else if (o.verb == VERB_CONNECT || o.verb == VERB_ACCEPT) {
		if (!o.host || !o.port || o.timeout_ms < 1 || !o.ciphers)
			abort();
		stunnel_config(&o, "/plain", &t, &f);
	}
	for (int i = 0; i < argc; i++)
		free(argv[i]);
}

static const struct options resident = { .verb = VERB_CONNECT, .fd = -1, .ca = "ca.pem", .want = WANT_TX,
					 .timeout_ms = 5000, .clients = 64, .user = -1, .socket = "/s" };

/* What a client of the resident sends: nothing of it may reach the files and ciphers of the policy. */
static void request(const char *data, size_t size)
{
	struct options o = resident;
	struct failure f = { 0 };
	struct text t = { .len = 0 };
	char *copy = malloc(size + 1);

	memcpy(copy, data, size);
	if (!request_parse(copy, size, &o, &f)) {
		if (f.exit != RC_USAGE)
			abort();
		text_failure(&t, &f);
	} else if (!o.host || !o.port || strchr(o.host, '\n') || o.verb != VERB_CONNECT || o.ca != resident.ca || o.pin ||
		   o.policy || o.fallback || o.cert || o.key || o.fd != -1 || o.no_verify || o.curves ||
		   o.timeout_ms < 1 || o.timeout_ms > resident.timeout_ms) {
		abort();
	}
	free(copy);
}

/* A policy: what is taken verifies somebody, or says plainly that it does not. */
static void policy(const char *data, size_t size)
{
	struct options o = { .verb = VERB_CONNECT, .fd = -1, .host = "h", .port = "1", .want = WANT_TX };
	struct failure f = { 0 };
	struct text t = { .len = 0 };
	char *text = strndup(data, size);

	if (!policy_parse(text, "p", &o, &f)) {
		if (f.exit != RC_USAGE)
			abort();
	} else if (!o.ca && !o.pin && !o.no_verify) {
		abort();
	} else if (options_check(&o, &f)) {
		if (!o.ciphers || !*o.ciphers || (o.ca && !*o.ca) || strchr(o.ciphers, '\n'))
			abort();
		stunnel_config(&o, NULL, &t, &f);
	}
	text_failure(&t, &f);
	free(text);
}

static void crypto(const char *data, size_t size)
{
	char *text = strndup(data, size), out[64];

	if (who_driver(text, "aes-gcm-256", out, sizeof(out)) != !!*out)
		abort();
	free(text);
}

static void answer(const uint8_t *data, size_t size)
{
	struct diag d;
	uint8_t *copy = malloc(size ? size : 1);

	memcpy(copy, data, size);
	if (diag_parse(copy, size, &d) != d.known || !d.tx || !d.rx)
		abort();
	free(copy);
}

/* The same with a head that is right, so that the attributes are reached at once. */
static void attributes(const uint8_t *data, size_t size)
{
	const size_t head = NLMSG_HDRLEN + NLMSG_ALIGN(sizeof(struct inet_diag_msg));
	struct nlmsghdr h = { .nlmsg_type = SOCK_DIAG_BY_FAMILY, .nlmsg_len = (uint32_t)(head + size) };
	uint8_t *message = calloc(1, head + size);

	memcpy(message, &h, sizeof(h));
	memcpy(message + head, data, size);
	answer(message, head + size);
	free(message);
}

static void log_line(const char *data, size_t size)
{
	struct result r = { .sock = -1 };
	struct text t = { .len = 0 };
	struct trouble trouble = { .rank = 0 };
	char *line = strndup(data, size);

	stunnel_read_line(line, &r);
	stunnel_read_trouble(line, &trouble);
	text_result(&t, &r);
	text_json(&t, line);
	if (strchr(t.buf, '\x1b') || memchr(t.buf, '\x7f', t.len))
		abort();
	free(line);
}

/* The client's side: an answer with up to three descriptors, of which none may stay open but the one that is given;
 * and the lines of a policy. */
static void client(const char *data, size_t size)
{
	int pair[2], fds[3] = { open("/dev/null", O_RDONLY), open("/dev/null", O_RDONLY), -1 }, count = data[0] & 3, next, after;
	char line[KTLS_LINE], why[KTLS_WHY] = "", *text = strndup(data, size), value[16];
	union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(sizeof(fds))];
	} control = { .buf = { 0 } };
	struct iovec iov = { (void *)(data + 1), size - 1 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = count ? control.buf : NULL,
			      .msg_controllen = count ? CMSG_SPACE((size_t)count * sizeof(int)) : 0 };

	fds[2] = fds[0];
	if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair))
		abort();
	if (count) {
		*CMSG_FIRSTHDR(&msg) = (struct cmsghdr){ CMSG_LEN((size_t)count * sizeof(int)), SOL_SOCKET, SCM_RIGHTS };
		memcpy(CMSG_DATA(CMSG_FIRSTHDR(&msg)), fds, (size_t)count * sizeof(int));
	}
	next = dup(0), close(next);
	if (sendmsg(pair[0], &msg, MSG_DONTWAIT) >= 0 && ktls__judge(pair[1], line, why) >= 0)
		abort(); /* none of them is a TCP socket */
	after = dup(0), close(after);
	if (!*why || next != after)
		abort();
	ktls__value(text, "CAfile", value, sizeof(value));
	ktls__is(text, "verifyPeer", "yes");
	close(fds[0]), close(fds[1]), close(pair[0]), close(pair[1]);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!size)
		return 0;
	switch (*data % 8) {
	case 0:
		options((const char *)data + 1, size - 1);
		break;
	case 1:
		answer(data + 1, size - 1);
		break;
	case 2:
		attributes(data + 1, size - 1);
		break;
	case 3:
		log_line((const char *)data + 1, size - 1);
		break;
	case 4:
		request((const char *)data + 1, size - 1);
		break;
	case 5:
		policy((const char *)data + 1, size - 1);
		break;
	case 6:
		if (size > 2)
			client((const char *)data + 1, size - 1);
		break;
	default:
		crypto((const char *)data + 1, size - 1);
	}
	return 0;
}
