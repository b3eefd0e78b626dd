/* SPDX-License-Identifier: Apache-2.0 */
/* What does a byte of payload cost the sender, the receiver and the card? A line of JSON per row.
 *
 *   costload [--bytes N] [--warm N] [--dut NS,ADDRESS] [--peer NS,ADDRESS] [--poll FILE=NANOSECONDS]
 *            ARM/DIRECTION[/CHANNELS][/file] ...
 *
 * ARM: plain, user, sw, hw, hw-zc. DIRECTION, as the DUT sees it: tx, rx, both. CHANNELS: connections of
 * a direction at once, 2, 4 or 8, which share its bytes. file: the DUT sends from a file (tx only). --poll: the
 * gro_flush_timeout of a port that raises no interrupts, up to four times (poll.c). Which card does
 * TLS is switched by the caller. Meant for a machine of its own (cost-mode.md): it reads the time of every task. What cannot
 * be done ends it with a line on standard error and exit code 1, wrong usage with 2. */
#define _GNU_SOURCE
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "costload.h"

#define MOST (64UL << 20)
#define LIMIT 120	/* seconds of the machine's own clock that a row may take */

static const char *const arm_names[ARMS] = { "plain", "user", "sw", "hw", "hw-zc" };

static _Noreturn void usage(const char *what, const char *why)
{
	fprintf(stderr, "costload: %s: %s\n", what, why);
	exit(2);
}

static size_t number(const char *text)
{
	char *end = NULL;
	unsigned long n = strtoul(text, &end, 10);

	if (*text < '0' || *text > '9' || *end || !n || n > MOST || n % CHUNK)
		usage(text, "expected a multiple of 16384, up to 64 MiB");
	return n;
}

static void place(struct load *load, enum side side, char *text)
{
	char *comma = strchr(text, ',');

	if (!comma)
		usage(text, "expected NAMESPACE,ADDRESS");
	*comma = 0;
	load->ns[side] = text;
	load->address[side] = comma + 1;
}

/* The same bytes in every run: xorshift64 (Marsaglia 2003). */
static void make_data(struct load *load)
{
	uint64_t x = 88172645463325252ULL;
	size_t size = load->bytes > load->warm ? load->bytes : load->warm;

	load->file = memfd_create("payload", MFD_CLOEXEC);
	need(load->file >= 0 && !ftruncate(load->file, (off_t)size), "memfd");
	load->data = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, load->file, 0);
	need(load->data != MAP_FAILED, "mmap");
	for (size_t i = 0; i + sizeof(x) <= size; i += sizeof(x)) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		memcpy(load->data + i, &x, sizeof(x));
	}
}

/* A connection's part of what a direction moves: whole chunks. */
static size_t part(size_t size, int channels)
{
	size_t chunks = size / CHUNK / (size_t)channels;

	return (chunks ? chunks : 1) * CHUNK;
}

static void start(struct end *e, const struct load *load, const struct kind *kind, int flow, bool sends)
{
	static const char number[CHANNELS][3] = { "", "-2", "-3", "-4", "-5", "-6", "-7", "-8" };
	int down[2], up[2];

	*e = (struct end){ .load = load, .kind = kind, .rx_row = flow % FLOWS, .sends = sends };
	e->channel = flow / FLOWS;
	e->warm = part(load->warm, kind->channels);
	e->bytes = part(load->bytes, kind->channels);
	e->side = sends == e->rx_row ? PEER : DUT;
	snprintf(e->name, sizeof(e->name), "%s-%s", e->side == DUT ? "dut" : "peer", sends ? "send" : "receive");
	if (e->channel)
		strncat(e->name, number[e->channel], sizeof(e->name) - strlen(e->name) - 1);
	need(!pipe(down) && !pipe(up), "pipe");
	e->pid = fork();
	need(e->pid >= 0, "fork");
	if (!e->pid) {
		e->orders = down[0];
		e->answers = up[1];
		close(down[1]);
		close(up[0]);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		prctl(PR_SET_NAME, e->name);
		alarm(LIMIT);
		end_run(e);
	}
	close(down[0]);
	close(up[1]);
	e->orders = down[1];
	e->answers = up[0];
}

static void hear(struct end *e, void *what, size_t size)
{
	if (read(e->answers, what, size) != (ssize_t)size)
		die(e->name, "exited early");
}

/* Everything of a pass has arrived; the last acknowledgement is allowed to. `start`: of the polls. */
static void pass(struct end *ends, int n, struct timespec start)
{
	const struct timespec settle = { .tv_nsec = 50000000 };
	char done;

	poll_wait(start);
	for (int i = 0; i < n; i++)
		need(write(ends[i].orders, "g", 1) == 1, "order");
	for (int i = 0; i < n; i++)
		hear(&ends[i], &done, 1);
	nanosleep(&settle, NULL);
}

static void print_row(const struct end *ends, int n, const char *name, const struct shot *shots)
{
	printf("{\"row\": \"%s\", \"bytes\": %zu, \"ends\": {", name, ends[0].bytes);
	for (int i = 0; i < n; i++)
		printf("%s\"%s\": {\"tx\": \"%s\", \"rx\": \"%s\"}", i ? ", " : "", ends[i].name,
		       ends[i].ready.tx, ends[i].ready.rx);
	printf("}, ");
	print_moved(&shots[0], &shots[1]);
	printf("}\n");
	fflush(stdout);
}

/* Receivers first, for they listen. A receiver that says it is ready has compared nothing yet; at the end each
 * compares what it got, in a time that is not measured. */
static void row(const struct load *load, const struct kind *kind, const char *name)
{
	static struct shot shots[2];
	static struct end ends[2 * FLOWS * CHANNELS];
	struct timespec started;
	int n = 0, status;
	char sound;

	for (int flow = 0; flow < FLOWS * kind->channels; flow++) {
		if (!(flow % FLOWS ? kind->rx : kind->tx))
			continue;
		start(&ends[n], load, kind, flow, false);
		hear(&ends[n], &sound, 1);
		poll_wait(poll_start());	/* so that each handshake takes the same time */
		start(&ends[n + 1], load, kind, flow, true);
		hear(&ends[n + 1], &ends[n + 1].ready, sizeof(struct ready));
		hear(&ends[n], &ends[n].ready, sizeof(struct ready));
		n += 2;
	}
	pass(ends, n, poll_start());
	started = poll_start();
	shoot(&shots[0]);
	pass(ends, n, started);
	shoot(&shots[1]);
	for (int i = 0; i < n; i++) {
		need(write(ends[i].orders, "e", 1) == 1, "order");
		hear(&ends[i], &sound, 1);
		if (sound != 'y')
			die(ends[i].name, "it received other bytes than were sent");
	}
	for (int i = 0; i < n; i++) {
		close(ends[i].orders);
		close(ends[i].answers);
		need(waitpid(ends[i].pid, &status, 0) == ends[i].pid, "wait");
	}
	print_row(ends, n, name, shots);
}

/* The next word of a row's name, up to a slash; "" at its end. */
static const char *word(const char **name, char out[8])
{
	size_t len = strcspn(*name, "/");

	snprintf(out, 8, "%.*s", (int)(len < 8 ? len : 7), *name);
	*name += len + ((*name)[len] == '/');
	return out;
}

/* ARM/DIRECTION[/CHANNELS][/file] */
static bool understood(const char *name, struct kind *kind)
{
	size_t len = strlen(name);
	char text[8];

	if (len && name[len - 1] == '/')
		return false;
	word(&name, text);
	for (kind->arm = 0; kind->arm < ARMS && strcmp(text, arm_names[kind->arm]); kind->arm++)
		;
	word(&name, text);
	kind->tx = !strcmp(text, "tx") || !strcmp(text, "both");
	kind->rx = !strcmp(text, "rx") || !strcmp(text, "both");
	kind->channels = 1;
	word(&name, text);
	if (*text > '1' && *text <= '0' + CHANNELS && !text[1]) {
		kind->channels = *text - '0';
		word(&name, text);
	}
	kind->file = !strcmp(text, "file");
	if (kind->arm == ARMS || !(kind->tx || kind->rx) || (kind->file && kind->rx))
		return false;
	return !*name && (kind->file || !*text) && !(kind->channels & (kind->channels - 1));
}

static void named_row(const struct load *load, const char *name)
{
	struct kind kind = { 0 };

	if (!understood(name, &kind))
		usage(name, "expected ARM/DIRECTION[/CHANNELS][/file], as in sw/tx or hw/tx/4");
	row(load, &kind, name);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "bytes", required_argument, NULL, 'b' }, { "warm", required_argument, NULL, 'w' },
		{ "dut", required_argument, NULL, 'd' },   { "peer", required_argument, NULL, 'p' },
		{ "poll", required_argument, NULL, 'l' },  { NULL, 0, NULL, 0 },
	};
	struct load load = { .warm = 32 * CHUNK, .bytes = 128 * CHUNK, .ns = { "dut", "peer" },
			     .address = { "192.0.2.1", "192.0.2.2" } };
	int which;

	signal(SIGPIPE, SIG_IGN);
	while ((which = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (which) {
		case 'b': load.bytes = number(optarg); break;
		case 'w': load.warm = number(optarg); break;
		case 'd': place(&load, DUT, optarg); break;
		case 'p': place(&load, PEER, optarg); break;
		case 'l':
			if (!poll_add(optarg))
				usage(optarg, "expected FILE=NANOSECONDS, four times at most");
			break;
		default: return 2;
		}
	}
	if (optind == argc)
		usage("no row", "expected ARM/DIRECTION[/CHANNELS][/file], as in sw/tx");
	make_data(&load);
	for (int i = optind; i < argc; i++)
		named_row(&load, argv[i]);
	return 0;
}
