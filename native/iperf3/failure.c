/* SPDX-License-Identifier: Apache-2.0 */
/* What went wrong with TLS, in words and as an exit code? The first failure of a test counts. */
#include <arpa/inet.h>
#include <poll.h>
#include <stdarg.h>
#include <string.h>
#include <sys/socket.h>

#include "original.h"
#include "tls.h"

#define SERVER_ERROR ((signed char)-2) /* iperf.h: two numbers follow, i_errno and errno */

static struct {
	int cause;
	bool said;
	char text[600];
} first;

static const struct {
	int cause, exit;
	const char *remote; /* what a client says when the server gave this number only */
} causes[] = {
	{ C_PEER_OLD, RC_PEER, "the peer is an iperf3 without TLS" },
	{ C_PEER_WANTS_TLS, RC_PEER, "the server accepts only TLS: use --tls with the version that it was started with" },
	{ C_PARAMETERS, RC_PEER, "the server does not understand these TLS parameters: is it another version?" },
	{ C_HANDSHAKE, RC_HANDSHAKE, "the TLS handshake failed on the server; its output gives the reason" },
	{ C_KTLS, RC_KTLS, "kTLS refused on the server (--ktls=require); its output gives the reason" },
	{ C_NOT_HERE, RC_NOT_HERE, "the server's kernel has no TLS for sockets (--ktls=require)" },
	{ C_PAYLOAD, RC_PAYLOAD, "the payload that reached the server differs from what was sent" },
	{ C_RECORD, RC_HANDSHAKE, "the server received a bad TLS record; its output gives the reason" },
	{ C_INTERNAL, RC_IPERF, "the server failed; its output gives the reason" },
};

/* Note a failure and set i_errno; a server tells its client the number. */
void fail(enum cause cause, const char *fmt, ...)
{
	struct {
		int32_t cause, error;
	} __attribute__((packed)) numbers = { htonl(cause), 0 };
	va_list args;

	i_errno = cause;
	if (first.cause)
		return;
	first.cause = cause;
	va_start(args, fmt);
	vsnprintf(first.text, sizeof(first.text), fmt, args);
	va_end(args);
	/* a refused parameter is told by libiperf itself: deal_accept() makes iperf_tcp_listen() fail */
	if (iperf_get_test_role(the_test) == 's' && deal.on && iperf_get_control_socket(the_test) >= 0) {
		iperf_set_send_state(the_test, SERVER_ERROR);
		real_nwrite(iperf_get_control_socket(the_test), (const char *)&numbers, sizeof(numbers), SOCK_STREAM);
		i_errno = cause;
	}
}

static const char *remote_text(int cause)
{
	for (size_t i = 0; i < sizeof(causes) / sizeof(causes[0]); i++)
		if (causes[i].cause == cause)
			return causes[i].remote;
	return NULL;
}

/* Our words for an error number, or libiperf's. What failed first explains what libiperf met later. */
const char *fail_text(int cause)
{
	const char *remote = remote_text(cause);

	first.said = first.cause;
	if (first.cause)
		return first.text;
	return remote ? remote : REAL(iperf_strerror, cause);
}

/* Say it if nobody has asked: a thread of libiperf ends without a word. */
void fail_say(void)
{
	if (first.cause && !first.said)
		iperf_err(the_test, "error - %s", first.text);
	first.said = true;
}

/* A client whose data connection broke: why, if the server has said so on the control connection. */
void fail_ask_server(void)
{
	unsigned char message[5];
	int fd = iperf_get_control_socket(the_test), cause;

	if (iperf_get_test_role(the_test) != 'c' || wait_fd(fd, POLLIN, now_ms() + 500) != 1 ||
	    recv(fd, message, sizeof(message), MSG_PEEK) != sizeof(message) || (signed char)message[0] != SERVER_ERROR)
		return;
	cause = message[1] << 24 | message[2] << 16 | message[3] << 8 | message[4];
	if (remote_text(cause))
		fail(cause, "%s", remote_text(cause));
}

/* The exit code of what failed here or, by i_errno, at the server; 0: nothing of ours. */
int fail_exit(void)
{
	int cause = first.cause ? first.cause : i_errno;

	for (size_t i = 0; i < sizeof(causes) / sizeof(causes[0]); i++)
		if (causes[i].cause == cause)
			return causes[i].exit;
	return RC_OK;
}

/* A server that goes on to its next client forgets. */
void fail_reset(void)
{
	memset(&first, 0, sizeof(first));
	i_errno = 0;
}
