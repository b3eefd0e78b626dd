/* SPDX-License-Identifier: Apache-2.0 */
/* cx6sim SOCKET SOCKET [SOCKET SOCKET] [--control PATH] [--verbose N]: cards for QEMU, joined by cables. */
#include <errno.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "cx6.h"

enum { RC_OK, RC_BROKEN, RC_USAGE };
#ifndef WAIT_MS
#define WAIT_MS 300000 /* for the first QEMU: whoever started us may be gone */
#endif

static const char usage[] =
	"usage: cx6sim [--control PATH] [--verbose 0|1|2] SOCKET SOCKET [SOCKET SOCKET]\n"
	"\n"
	"Emulates a ConnectX-6 Dx at each SOCKET, for QEMU's vfio-user-pci. Cables join two cards to each other;\n"
	"of four cards, the first to the third and the second to the fourth. cx6sim ends when every QEMU has\n"
	"disconnected, if none connects within five minutes, or on SIGTERM.\n";

static struct card cards[CARDS_MAX];
static struct server servers[CARDS_MAX];
static struct control control = { -1, -1, { 0 }, 0 };
static volatile sig_atomic_t ended;

static void end(int number)
{
	(void)number;
	ended = 1;
}

static bool options(int argc, char **argv, const char **path)
{
	static const struct option known[] = {
		{ "control", required_argument, NULL, 'c' },
		{ "verbose", required_argument, NULL, 'v' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	int found;

	while ((found = getopt_long(argc, argv, "", known, NULL)) != -1) {
		if (found == 'h') {
			fputs(usage, stdout);
			exit(RC_OK);
		}
		if (found == '?')
			return false;
		if (found == 'c')
			*path = optarg;
		else
			log_level = atoi(optarg);
	}
	return argc - optind == 2 || argc - optind == CARDS_MAX;
}

static bool open_all(char **paths, int count, const char *control_path)
{
	for (int i = 0; i < count; i++) {
		card_init(&cards[i], i);
		cards[i].far_end = &cards[(i + count / 2) % count];
		if (!server_listen(&servers[i], paths[i])) {
			fprintf(stderr, "cx6sim: %s: %s\n", paths[i], strerror(errno));
			return false;
		}
	}
	if (control_path && !control_listen(&control, control_path)) {
		fprintf(stderr, "cx6sim: %s: %s\n", control_path, strerror(errno));
		return false;
	}
	return true;
}

/* Milliseconds to wait for the next message: a slow command may be due before. */
static int patience(int count, bool came)
{
	int most = came ? -1 : WAIT_MS;

	for (int i = 0; i < count; i++) {
		int wait = commands_wait(&cards[i]);

		if (wait >= 0 && (most < 0 || wait < most))
			most = wait;
	}
	return most;
}

/* One turn: whoever has something to say is heard. False when the last guest has gone. */
static bool turn(int count)
{
	struct pollfd p[CARDS_MAX + 1] = { 0 };
	static bool came;
	bool left = false, any = false;
	int ready;

	for (int i = 0; i < count; i++)
		p[i] = (struct pollfd){ .fd = servers[i].fd >= 0 ? servers[i].fd : servers[i].listener, .events = POLLIN };
	p[count] = (struct pollfd){ .fd = control_fd(&control), .events = POLLIN };
	ready = poll(p, (nfds_t)count + 1, patience(count, came));
	if (!ready && !came) {
		fputs("cx6sim: no QEMU connected in time\n", stderr);
		return false;
	}
	if (ready < 0)
		return errno == EINTR;
	for (int i = 0; i < count; i++) {
		commands_run_slow(&cards[i]);
		if (p[i].revents && servers[i].fd < 0) {
			came |= server_accept(&servers[i], &cards[i]);
		} else if (p[i].revents && !server_serve(&servers[i], &cards[i])) {
			server_close(&servers[i], &cards[i]);
			left = true;
		}
		any |= servers[i].fd >= 0;
	}
	if (p[count].revents)
		control_serve(&control, cards, (uint32_t)count);
	return any || !left;
}

int main(int argc, char **argv)
{
	struct sigaction act = { .sa_handler = end };
	const char *control_path = NULL;

	if (!options(argc, argv, &control_path)) {
		fputs(usage, stderr);
		return RC_USAGE;
	}
	sigaction(SIGTERM, &act, NULL);
	sigaction(SIGINT, &act, NULL);
	signal(SIGPIPE, SIG_IGN);
	if (!open_all(argv + optind, argc - optind, control_path))
		return RC_BROKEN;
	puts("ready");
	fflush(stdout);
	while (!ended && turn(argc - optind))
		;
	for (int i = 0; i < argc - optind; i++)
		if (servers[i].fd >= 0)
			server_close(&servers[i], &cards[i]);
	return RC_OK;
}
