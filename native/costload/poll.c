/* SPDX-License-Identifier: Apache-2.0 */
/* When do ports look for frames? By the kernel's timer (gro_flush_timeout), which starts at the same moment for all
 * of them before what is measured: interrupts of a card in another process come by the host's clock. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "costload.h"

#define PORTS 4
#define MS 1000000L
#define SECOND 1000000000L
#define TURN (100 * MS)	/* whole ticks of the kernel, so that these begin alike, too */
#define LATE (40 * MS)	/* behind the start of the timers: by then the tasks have been counted */

static struct {
	const char *file, *interval;
} ports[PORTS];
static int count;

/* FILE=NANOSECONDS */
bool poll_add(char *text)
{
	char *equals = strrchr(text, '=');

	if (!equals || count == PORTS || equals[1] < '1' || equals[1] > '9')
		return false;
	*equals = 0;
	ports[count].file = text;
	ports[count++].interval = equals + 1;
	return true;
}

static void put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	need(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text), path);
	close(fd);
}

static struct timespec later(struct timespec at, long ns)
{
	at.tv_sec += (at.tv_nsec + ns) / SECOND;
	at.tv_nsec = (at.tv_nsec + ns) % SECOND;
	return at;
}

static void sleep_until(struct timespec at)
{
	need(!clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL), "clock_nanosleep");
}

/* Every port polls all the time until a round moment, and from there on at its interval. */
struct timespec poll_start(void)
{
	struct timespec at = { 0 };

	if (!count)
		return at;
	for (int i = 0; i < count; i++)
		put(ports[i].file, "1000");
	clock_gettime(CLOCK_MONOTONIC, &at);
	at = later(at, TURN / 4);	/* a timer that runs is over by then */
	at.tv_nsec -= at.tv_nsec % TURN;
	at = later(at, TURN);
	sleep_until(at);
	for (int i = 0; i < count; i++)
		put(ports[i].file, ports[i].interval);
	return at;
}

void poll_wait(struct timespec start)
{
	if (count)
		sleep_until(later(start, LATE));
}
