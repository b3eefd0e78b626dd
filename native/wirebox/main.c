/* SPDX-License-Identifier: Apache-2.0 */
/* wirebox is the cable between two interfaces: every frame goes on in order, unless a rule or a random impairment acts on it. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "wirebox.h"

#define ROUNDS_AT_END 64

static const char help[] =
	"usage: wirebox PORT_A PORT_B [--seed N] [--rules FILE|-] [--bridge NAME] [--join]\n"
	"       wirebox --check\n"
	"Carries every frame between two Ethernet interfaces, as a cable does, and applies rules to those that match.\n"
	"  --seed N       for impairments that name no seed (default 1)\n"
	"  --rules FILE   initial rules, one per line; standard input takes more at any time\n"
	"  --bridge NAME  take both ports out of this bridge, and put them back at the end\n"
	"  --join         a connection whose SYN was not seen begins with its first frame, at a record\n"
	"  --check        only read rules from standard input and say what is wrong with them\n"
	"Ends with SIGTERM, SIGINT or the end of standard input. Exit codes: 0 ok, 1 failure, 2 usage or rules,\n"
	"3 no such interface, 4 no permission. The rules are described in native/wirebox/README.md.\n";

struct options {
	const char *port[DIRECTIONS], *rules, *bridge;
	uint64_t seed;
	bool join;
};

/* Lines that come in pieces; `path` is NULL for standard input. */
struct lines {
	const char *path;
	char text[LINE_MAX_LEN + 2];
	size_t len;
	uint32_t number, wrong;
};

static struct engine engine;

static bool parse_seed(const char *text, uint64_t *out)
{
	char *end;

	errno = 0;
	*out = strtoull(text, &end, 10);
	return *text >= '0' && *text <= '9' && !*end && !errno;
}

static bool parse_options(int argc, char **argv, struct options *o)
{
	int names = 0;

	o->seed = 1;
	for (int i = 1; i < argc; i++) {
		const char *word = argv[i], *value = argv[i + 1];

		if (word[0] != '-' && names < DIRECTIONS) {
			o->port[names++] = word;
			continue;
		}
		if (!strcmp(word, "--seed") && value && parse_seed(value, &o->seed))
			i++;
		else if (!strcmp(word, "--rules") && value)
			o->rules = argv[++i];
		else if (!strcmp(word, "--bridge") && value)
			o->bridge = argv[++i];
		else if (!strcmp(word, "--join"))
			o->join = true;
		else {
			complain("unexpected '%s', or its value is missing (see --help)", word);
			return false;
		}
	}
	if (names < DIRECTIONS || !strcmp(o->port[0], o->port[1])) {
		complain("expected two different ports (see --help)");
		return false;
	}
	return true;
}

/* Take one line into the rules; false with the reason. */
static bool obey(const struct lines *l, char error[static ERROR_MAX])
{
	struct command c;

	if (l->len > LINE_MAX_LEN) {
		snprintf(error, ERROR_MAX, "the line is longer than %d characters", LINE_MAX_LEN);
		return false;
	}
	if (!rules_parse(l->text, &c, error) || !rules_apply(&engine.rules, &c, error))
		return false;
	if (!l->path && c.kind != CMD_NOTHING)
		say_added(c.kind == CMD_CLEAR ? 0 : engine.rules.last_id, l->text);
	return true;
}

static void end_of_line(struct lines *l)
{
	char error[ERROR_MAX];

	l->number++;
	l->text[l->len] = '\0';
	if (!obey(l, error)) {
		l->wrong++;
		if (l->path)
			complain("%s:%u: %s, in \"%s\"", l->path, l->number, error, l->text);
		else
			say_error(l->number, error, l->text);
	}
	l->len = 0;
}

/* Read what is there; false at the end. */
static bool read_lines(int fd, struct lines *l)
{
	char part[1024];
	ssize_t n = read(fd, part, sizeof(part));

	if (n < 0)
		return errno == EINTR || errno == EAGAIN;
	for (ssize_t i = 0; i < n; i++) {
		if (part[i] == '\n')
			end_of_line(l);
		else if (l->len <= LINE_MAX_LEN)
			l->text[l->len++] = part[i] ? part[i] : '\x01'; /* NUL is no text either */
	}
	if (!n && l->len)
		end_of_line(l);
	return n > 0;
}

static int read_rules(int fd, const char *name)
{
	struct lines l = { .path = name };

	while (read_lines(fd, &l))
		;
	return l.wrong ? RC_USAGE : RC_OK;
}

static int load_rules(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), rc;

	if (fd < 0) {
		complain("%s: %s", path, strerror(errno));
		return RC_USAGE;
	}
	rc = read_rules(fd, path);
	close(fd);
	return rc;
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000ULL + (uint64_t)t.tv_nsec;
}

/* Send what is due, then wait for something to do. False after a signal. */
static bool wait_for_work(struct pollfd polls[static 4], struct box *b)
{
	struct timespec span = { 0, 0 };
	uint64_t due;

	engine.now = now_ns();
	due = hold_due(&engine);
	box_flush(b);
	fflush(stdout);
	if (due) {
		span.tv_sec = (time_t)((due - engine.now) / 1000000000ULL);
		span.tv_nsec = (long)((due - engine.now) % 1000000000ULL);
	}
	if (ppoll(polls, 4, due ? &span : NULL, NULL) < 0 && errno != EINTR)
		return false;
	engine.now = now_ns();
	return !polls[3].revents;
}

/* Carry frames until told to end; the exit code. */
static int carry(struct box *b, struct port ports[static DIRECTIONS], int signals)
{
	struct pollfd polls[4] = { { ports[0].fd, POLLIN, 0 }, { ports[1].fd, POLLIN, 0 },
				   { STDIN_FILENO, POLLIN, 0 }, { signals, POLLIN, 0 } };
	struct lines lines = { .len = 0 };

	while (wait_for_work(polls, b)) {
		for (int i = 0; i < DIRECTIONS; i++)
			if (polls[i].revents && box_take(b, i) < 0) {
				complain("%s: %s", ports[i].name, strerror(errno));
				return RC_BROKEN;
			}
		if (polls[2].revents && !read_lines(STDIN_FILENO, &lines))
			break;
	}
	for (int i = 0; i < ROUNDS_AT_END; i++)
		if (box_take(b, A_TO_B) + box_take(b, B_TO_A) <= 0)
			break;
	return RC_OK;
}

static int catch_signals(void)
{
	sigset_t set;

	signal(SIGPIPE, SIG_IGN);
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigprocmask(SIG_BLOCK, &set, NULL);
	return signalfd(-1, &set, SFD_CLOEXEC);
}

static int run(const struct options *o, struct port ports[static DIRECTIONS])
{
	struct box *b = box_new(ports, &engine);
	int signals = catch_signals(), rc = RC_BROKEN;
	bool ready;

	if (!b || signals < 0) {
		complain("no memory");
		return RC_BROKEN;
	}
	for (int i = 0; i < DIRECTIONS; i++) {
		rc = port_open(&ports[i], o->port[i], o->bridge);
		if (rc)
			break;
	}
	if (!rc && (!port_listen(&ports[0]) || !port_listen(&ports[1])))
		rc = RC_BROKEN;
	ready = !rc;
	if (ready) {
		say_ready();
		rc = carry(b, ports, signals);
		hold_flush(&engine);
		box_flush(b);
		box_close(b);
	}
	for (int i = 0; i < DIRECTIONS; i++)
		if (!port_put_back(&ports[i], o->bridge))
			rc = RC_BROKEN;
	if (ready)
		say_summary(&engine);
	return rc;
}

int main(int argc, char **argv)
{
	struct port ports[DIRECTIONS] = { { .fd = -1 }, { .fd = -1 } };
	struct options o = { .bridge = NULL };
	int rc;

	if (argc > 1 && !strcmp(argv[1], "--help")) {
		fputs(help, stdout);
		return RC_OK;
	}
	if (argc == 2 && !strcmp(argv[1], "--check"))
		return read_rules(STDIN_FILENO, "rules");
	if (!parse_options(argc, argv, &o))
		return RC_USAGE;
	engine.rules.seed = o.seed;
	engine.flows.join = o.join;
	rc = o.rules && strcmp(o.rules, "-") != 0 ? load_rules(o.rules) : RC_OK;
	return rc ? rc : run(&o, ports);
}
