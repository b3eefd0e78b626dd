/* SPDX-License-Identifier: Apache-2.0 */
/* Preloaded into an unmodified program: at which sequence number do its TCP connections begin? At this one.
 *
 *   LD_PRELOAD=isn.so KTLS_ISN=4294926336 PROGRAM
 *
 * Needs CAP_NET_ADMIN. It is the number of the SYN; the first byte of the stream has the next one. What cannot
 * be done ends the program with one line on standard error and exit code 125. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define VARIABLE "KTLS_ISN"
#define REFUSED 125

static _Noreturn void refuse(const char *what, const char *why)
{
	fprintf(stderr, "isn: %s: %s\n", what, why);
	_exit(REFUSED);
}

static uint32_t wanted(void)
{
	const char *text = secure_getenv(VARIABLE);
	char *end = NULL;
	unsigned long long number;

	if (!text || *text < '0' || *text > '9')
		refuse(VARIABLE, "not set, or not a number: set it to the initial sequence number");
	errno = 0;
	number = strtoull(text, &end, 10);
	/* 0 is what tells the kernel to choose one (tcp_v4_connect, net/ipv4/tcp_ipv4.c) */
	if (*end || errno || !number || number > UINT32_MAX)
		refuse(VARIABLE, "expected 1 to 4294967295");
	return (uint32_t)number;
}

static void set(int fd, int option, int value, const char *name)
{
	if (setsockopt(fd, IPPROTO_TCP, option, &value, sizeof(value)))
		refuse(name, strerror(errno));
}

/* A socket under repair takes a number for its send queue; connect() leaves one alone that is there. */
static void begin_at(int fd, uint32_t number)
{
	set(fd, TCP_REPAIR, TCP_REPAIR_ON, "TCP_REPAIR");
	set(fd, TCP_REPAIR_QUEUE, TCP_SEND_QUEUE, "TCP_REPAIR_QUEUE");
	set(fd, TCP_QUEUE_SEQ, (int)number, "TCP_QUEUE_SEQ");
	set(fd, TCP_REPAIR, TCP_REPAIR_OFF_NO_WP, "TCP_REPAIR");
}

static bool is_tcp(int fd, const struct sockaddr *addr)
{
	int protocol = 0;
	socklen_t size = sizeof(protocol);

	return (addr->sa_family == AF_INET || addr->sa_family == AF_INET6) &&
	       !getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &size) && protocol == IPPROTO_TCP;
}

int connect(int fd, const struct sockaddr *addr, socklen_t len)
{
	int (*real)(int, const struct sockaddr *, socklen_t);
	bool tcp = is_tcp(fd, addr);

	*(void **)&real = dlsym(RTLD_NEXT, "connect");
	if (!real)
		refuse("connect", "the C library does not have it");
	if (tcp)
		begin_at(fd, wanted());
	return real(fd, addr, len);
}
