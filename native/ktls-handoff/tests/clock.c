/* SPDX-License-Identifier: Apache-2.0 */
/* A toolstack's client with a clock: clock RESIDENT POLICY. Each line of standard input is `ktls PORT` (a socket of the
 * resident, by ktls-connect.h) or `tcp PORT` (an ordinary connection: a stunnel listens there), on 127.0.0.1. The answer
 * is microseconds to the socket and to the first byte that the peer sends on it. benchmarks/handover.py asks. */
#define _GNU_SOURCE
#include "../ktls-connect.h"

static double now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static int by_tcp(const char *port)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port)),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd >= 0 && connect(fd, (struct sockaddr *)&to, sizeof(to)) == 0)
		return fd;
	perror("connect");
	return -1;
}

static int by_kernel(const char *port, const char *resident, const char *policy)
{
	struct ktls_target to = { .host = "127.0.0.1", .port = port, .policy = policy, .resident = resident };
	struct ktls_answer answer;
	int fd = ktls_connect(&to, &answer);

	if (fd >= 0 && !answer.stunnel)
		return fd;
	fprintf(stderr, "%s\n", answer.warning);
	return -1;
}

int main(int argc, char **argv)
{
	char how[8], port[8], byte;

	if (argc != 3)
		return 1;
	while (scanf("%7s %7s", how, port) == 2) {
		double began = now_us(), got;
		int fd = strcmp(how, "tcp") == 0 ? by_tcp(port) : by_kernel(port, argv[1], argv[2]);

		got = now_us();
		if (fd < 0 || read(fd, &byte, 1) != 1)
			return 2;
		printf("%.1f %.1f\n", got - began, now_us() - began);
		fflush(stdout);
		close(fd);
	}
	return 0;
}
