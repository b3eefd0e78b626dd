/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting with a deadline; iperf3-tls is built with it, too. */
#include <errno.h>
#include <poll.h>
#include <time.h>

#include "handoff.h"

long long now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000LL + t.tv_nsec / 1000000;
}

/* Wait for events: 1 ready, 0 the deadline passed, -1 errno. */
int wait_fd(int fd, short events, long long deadline)
{
	struct pollfd p = { .fd = fd, .events = events };

	for (;;) {
		long long left = deadline - now_ms();
		int n = poll(&p, 1, left > 0 ? (int)left : 0);

		if (n >= 0)
			return n;
		if (errno != EINTR)
			return -1;
	}
}
