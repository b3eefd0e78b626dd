/* SPDX-License-Identifier: Apache-2.0 */
/* wiretap: every frame of an interface into a pcapng file, and nothing lost when it is told to stop. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "wiretap.h"

#define GRACE_MS 100 /* after the stop: for frames that the kernel has, and has not yet shown to taps */
#define IDLE_MS 200  /* of silence, then what was captured is written, and the interface looked for */
#define REST_MS 5    /* once the queue is empty: a wake for each frame would cost more than the frame */

static const char help[] =
	"usage: wiretap DEV FILE [--snaplen N] [--buffer MIB]\n"
	"\n"
	"Writes every frame that DEV sends and receives to FILE (pcapng, nanoseconds), which must not exist yet.\n"
	"Prints {\"ready\":true} when it captures, and ends on SIGINT, SIGTERM, SIGHUP or the end of standard input:\n"
	"what was on the wire before that is in FILE. Then prints {\"frames\",\"bytes\",\"dropped\",\"truncated\"}.\n"
	"DEV is in promiscuous mode while it runs.\n"
	"\n"
	"  --snaplen N    keep only the first N bytes of a frame, 64 to 1048576; default: all\n"
	"  --buffer MIB   memory in which the kernel queues frames, 1 to 1023; default 64\n"
	"\n"
	"exit: 0 ok (look at \"dropped\"), 1 usage, 2 no such interface, or it disappeared, 4 not permitted, 5 the file,\n"
	"      6 the socket failed\n";

static bool parse_number(const char *text, long min, long max, long *out)
{
	char *end;

	if (!text || *text < '0' || *text > '9')
		return false;
	*out = strtol(text, &end, 10);
	return !*end && *out >= min && *out <= max;
}

static int parse(int argc, char **argv, struct options *o)
{
	const char **words[] = { &o->dev, &o->file };
	size_t given = 0;
	long n;

	*o = (struct options){ .buffer_mib = 64 };
	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--snaplen")) {
			if (!parse_number(argv[++i], 64, FRAME_MAX, &n))
				return fail(RC_USAGE, "--snaplen must be 64 to %u bytes (see --help)", FRAME_MAX);
			o->snaplen = (uint32_t)n;
		} else if (!strcmp(argv[i], "--buffer")) {
			if (!parse_number(argv[++i], 1, 1023, &n))
				return fail(RC_USAGE, "--buffer must be 1 to 1023 MiB (see --help)");
			o->buffer_mib = (int)n;
		} else if (argv[i][0] == '-' || given == 2) {
			return fail(RC_USAGE, "'%s' is not expected (see --help)", argv[i]);
		} else {
			*words[given++] = argv[i];
		}
	}
	return given == 2 && *o->dev && *o->file ? RC_OK : fail(RC_USAGE, "DEV and FILE are required (see --help)");
}

/* Signals become readable like the socket. A file descriptor below 3 must not become the capture. */
static int prepare(int *signals)
{
	sigset_t stop;
	int null;

	do
		null = open("/dev/null", O_RDWR);
	while (null >= 0 && null <= 2);
	if (null > 2)
		close(null);
	signal(SIGPIPE, SIG_IGN); /* the reader of our lines may leave; the capture must be whole */
	signal(SIGXFSZ, SIG_IGN); /* write() says EFBIG then */
	sigemptyset(&stop);
	sigaddset(&stop, SIGINT);
	sigaddset(&stop, SIGTERM);
	sigaddset(&stop, SIGHUP);
	if (sigprocmask(SIG_BLOCK, &stop, NULL))
		return fail(RC_SOCKET, "sigprocmask: %s", strerror(errno));
	*signals = signalfd(-1, &stop, SFD_CLOEXEC | SFD_NONBLOCK);
	return *signals < 0 ? fail(RC_SOCKET, "signalfd: %s", strerror(errno)) : RC_OK;
}

/* Take what is queued; at most a buffer full, so that a busy interface does not keep us from hearing the stop. */
static int drain(struct tap *t, struct file *f, const char *dev, bool *empty)
{
	struct frame frame;
	unsigned char *into;
	size_t size;

	*empty = false;
	for (;;) {
		into = file_room(f, &size);
		if (!into) {
			tap_count_drops(t);
			return file_flush(f);
		}
		switch (tap_next(t, into, size, &frame)) {
		case NEXT_FRAME:
			file_add(f, &frame);
			break;
		case NEXT_NONE:
			*empty = true;
			return RC_OK;
		case NEXT_BROKEN:
			return fail(RC_SOCKET, "the capture on %s failed: %s", dev, strerror(errno));
		}
	}
}

/* The end of standard input is the wish to stop; what comes before it means nothing. */
static bool input_ended(void)
{
	char ignored[256];
	ssize_t n = read(STDIN_FILENO, ignored, sizeof(ignored));

	return n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
}

static int capture(struct tap *t, struct file *f, const char *dev, int signals)
{
	struct pollfd fds[] = {
		{ .fd = t->fd, .events = POLLIN }, { .fd = signals, .events = POLLIN },
		{ .fd = STDIN_FILENO, .events = POLLIN },
	};
	bool empty;
	int rc = RC_OK;

	while (!rc) {
		int n;

		empty = false;
		n = poll(fds, 3, f->used || t->down ? IDLE_MS : -1);

		if (n < 0 && errno != EINTR)
			return fail(RC_SOCKET, "poll: %s", strerror(errno));
		if (n == 0)
			rc = tap_gone(t) ? fail(RC_DEVICE, "%s disappeared during the capture", dev) : file_flush(f);
		if (n > 0 && fds[0].revents)
			rc = drain(t, f, dev, &empty);
		if (n > 0 && (fds[1].revents || (fds[2].revents && input_ended())))
			break;
		if (!rc && empty)
			poll(fds + 1, 2, REST_MS);
	}
	return rc;
}

static long long now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000LL + now.tv_nsec / 1000000;
}

/* After the wish to stop: capture a little longer, let nothing more in, take what is queued. */
static int finish(struct tap *t, struct file *f, const char *dev)
{
	const long long end = now_ms() + GRACE_MS;
	struct pollfd readable = { .fd = t->fd, .events = POLLIN };
	bool empty = false;
	int rc = RC_OK;

	for (long long left = GRACE_MS; !rc && left > 0; left = end - now_ms()) {
		poll(&readable, 1, (int)left);
		rc = drain(t, f, dev, &empty);
	}
	if (!rc)
		rc = tap_silence(t);
	for (empty = false; !rc && !empty;)
		rc = drain(t, f, dev, &empty);
	return rc;
}

static int say(const char *line)
{
	return fputs(line, stdout) < 0 || fflush(stdout) ? fail(RC_FILE, "cannot write to standard output") : RC_OK;
}

static int run(const struct options *o, struct tap *t, struct file *f, int signals)
{
	char line[160];
	int rc, closed;

	say("{\"ready\":true}\n"); /* a reader that left has closed our input as well */
	rc = capture(t, f, o->dev, signals);
	if (!rc)
		rc = finish(t, f, o->dev);
	if (rc == RC_FILE)
		return rc;
	tap_count_drops(t);
	closed = file_finish(f, t->dropped);
	if (closed)
		return closed;
	snprintf(line, sizeof(line), "{\"frames\":%llu,\"bytes\":%llu,\"dropped\":%llu,\"truncated\":%llu}\n",
		 (unsigned long long)f->frames, (unsigned long long)f->bytes, (unsigned long long)t->dropped,
		 (unsigned long long)f->truncated);
	closed = say(line);
	return rc ? rc : closed;
}

int main(int argc, char **argv)
{
	struct options o;
	struct tap tap;
	struct file file;
	int signals = -1, rc;

	if (argc == 2 && !strcmp(argv[1], "--help"))
		return fputs(help, stdout) < 0;
	rc = parse(argc, argv, &o);
	if (!rc)
		rc = prepare(&signals);
	if (!rc)
		rc = tap_open(&tap, &o);
	if (!rc)
		rc = file_create(&file, &o, tap.link);
	if (rc)
		return rc;
	rc = tap_start(&tap, o.dev);
	if (rc) {
		unlink(o.file);
		return rc;
	}
	return run(&o, &tap, &file, signals);
}
