/* SPDX-License-Identifier: Apache-2.0 */
/* When kTLS cannot be had: one warning line, then stunnel carries a new connection and its plain side is
 * handed over. The TCP connection of the failed attempt is spent. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "handoff.h"

extern char **environ;

/* A running stunnel: its process, and the pipe that its log comes from. */
struct tunnel {
	pid_t pid;
	int log;
};

static bool broken(struct failure *f, const char *step)
{
	return failed(f, RC_INTERNAL, "internal", "%s: %s", step, strerror(errno));
}

/* The configuration on a descriptor of its own: it is in no file and no argument. */
static int config_fd(const struct text *t)
{
	int fd = memfd_create("stunnel.conf", MFD_CLOEXEC);

	if (fd >= 0 && (write(fd, t->buf, t->len) != (ssize_t)t->len || lseek(fd, 0, SEEK_SET) != 0)) {
		close(fd);
		return -1;
	}
	return fd;
}

/* Start PATH -fd CONFIG with `io` as standard input and output, and the log pipe as standard error. */
static int spawn(const char *path, int io, int config, int log, pid_t *pid)
{
	char number[12];
	char *argv[] = { (char *)path, "-fd", number, NULL };
	posix_spawn_file_actions_t acts;
	posix_spawnattr_t attr;
	sigset_t pipe_signal;
	int rc;

	snprintf(number, sizeof(number), "%d", config);
	sigemptyset(&pipe_signal);
	sigaddset(&pipe_signal, SIGPIPE);
	posix_spawn_file_actions_init(&acts);
	posix_spawnattr_init(&attr);
	posix_spawn_file_actions_adddup2(&acts, io, STDIN_FILENO);
	posix_spawn_file_actions_adddup2(&acts, io, STDOUT_FILENO);
	posix_spawn_file_actions_adddup2(&acts, log, STDERR_FILENO);
	posix_spawn_file_actions_adddup2(&acts, config, config); /* same number: takes close-on-exec off */
	posix_spawnattr_setsigdefault(&attr, &pipe_signal);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGDEF);
	rc = posix_spawn(pid, path, &acts, &attr, argv, environ);
	posix_spawn_file_actions_destroy(&acts);
	posix_spawnattr_destroy(&attr);
	return rc;
}

static bool start(const struct options *o, const char *connect_to, int io, struct tunnel *t, struct failure *f)
{
	struct text conf = { .len = 0 };
	int log[2] = { -1, -1 }, config = -1, rc = 0;

	if (!stunnel_config(o, connect_to, &conf, f))
		return false;
	config = config_fd(&conf);
	if (config < 0 || pipe2(log, O_CLOEXEC))
		rc = errno;
	if (!rc)
		rc = spawn(o->fallback, io, config, log[1], &t->pid);
	if (config >= 0)
		close(config);
	if (log[1] >= 0)
		close(log[1]);
	t->log = log[0];
	if (!rc)
		return true;
	if (log[0] >= 0)
		close(log[0]);
	errno = rc;
	return broken(f, o->fallback);
}

/* End a stunnel that is of no use, and reap it. */
static void stop(struct tunnel *t)
{
	if (t->log >= 0)
		close(t->log);
	kill(t->pid, SIGKILL);
	waitpid(t->pid, NULL, 0);
}

/* Follow the log until the handshake is done; else the trouble that it tells is the reason. */
static bool await(struct tunnel *t, const struct options *o, struct result *r, struct failure *f)
{
	long long deadline = now_ms() + 2LL * o->timeout_ms; /* connect and handshake are two steps */
	struct trouble trouble = { .text = "it ended without a message" };
	char line[512];
	size_t len = 0;
	char c;

	for (;;) {
		if (wait_fd(t->log, POLLIN, deadline) == 0)
			return failed(f, RC_TIMEOUT, "timeout", "stunnel: the TLS connection timed out");
		if (read(t->log, &c, 1) != 1)
			return failed(f, RC_HANDSHAKE, "handshake", "stunnel: %s", trouble.text);
		if (c != '\n') {
			if (len < sizeof(line) - 1)
				line[len++] = c;
			continue;
		}
		line[len] = '\0';
		len = 0;
		if (stunnel_read_line(line, r))
			return true;
		stunnel_read_trouble(line, &trouble);
	}
}

static bool as_client(const struct options *o, struct result *r, struct failure *f, struct tunnel *t)
{
	int pair[2];
	bool ok;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
		return broken(f, "socketpair");
	ok = start(o, NULL, pair[1], t, f);
	close(pair[1]);
	if (ok) {
		ok = await(t, o, r, f);
		if (!ok)
			stop(t);
	}
	if (ok)
		r->sock = pair[0];
	else
		close(pair[0]);
	return ok;
}

/* A unix socket in a folder of our own, where stunnel brings the plain side; removed right after. */
static int plain_listener(char *folder, struct sockaddr_un *sa)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	const char *base = getenv("TMPDIR");

	*sa = (struct sockaddr_un){ .sun_family = AF_UNIX };
	snprintf(folder, 80, "%.60s/handoff-XXXXXX", base && *base == '/' ? base : P_tmpdir);
	if (fd < 0 || !mkdtemp(folder))
		goto err_close;
	snprintf(sa->sun_path, sizeof(sa->sun_path), "%.90s/plain", folder);
	if (bind(fd, (struct sockaddr *)sa, sizeof(*sa)) == 0 && listen(fd, 1) == 0)
		return fd;
	unlink(sa->sun_path);
	rmdir(folder);
err_close:
	if (fd >= 0)
		close(fd);
	return -1;
}

static bool serve(const struct options *o, int conn, struct result *r, struct failure *f, struct tunnel *t)
{
	struct sockaddr_un sa;
	char folder[80];
	int plain = plain_listener(folder, &sa);
	bool ok;

	if (plain < 0)
		return broken(f, "unix socket for stunnel");
	ok = start(o, sa.sun_path, conn, t, f);
	if (ok) {
		ok = await(t, o, r, f);
		if (ok && wait_fd(plain, POLLIN, now_ms() + o->timeout_ms) == 1)
			r->sock = accept4(plain, NULL, NULL, SOCK_CLOEXEC);
		if (ok && r->sock < 0)
			ok = failed(f, RC_INTERNAL, "internal", "stunnel did not connect its plaintext side");
		if (!ok)
			stop(t);
	}
	unlink(sa.sun_path);
	rmdir(folder);
	close(plain);
	return ok;
}

static bool as_server(const struct options *o, int listener, struct result *r, struct failure *f, struct tunnel *t)
{
	int conn = listener < 0 ? -1 : net_accept(listener, o, f);
	char peer[80] = "";
	bool ok;

	if (conn < 0)
		return listener < 0 ? failed(f, RC_CONNECT, "connect", "stunnel: there is no listening socket") : false;
	peer_name(conn, peer, sizeof(peer));
	ok = set_blocking(conn) && serve(o, conn, r, f, t);
	close(conn);
	memcpy(r->peer, peer, sizeof(peer));
	return ok;
}

/* Carry the connection by stunnel: true with *r filled and *child set. If that fails too, *f names both causes
 * and keeps the exit code of the first. */
bool fallback_run(const struct options *o, int listener, const struct failure *why,
		  struct result *r, struct failure *f, pid_t *child)
{
	struct failure second = { 0 };
	struct tunnel t = { .pid = -1, .log = -1 };
	bool ok = access(o->fallback, X_OK) == 0;

	*f = *why;
	*r = (struct result){ .via = "stunnel", .tx = "none", .rx = "none", .sock = -1 };
	if (!ok) {
		broken(&second, o->fallback);
	} else {
		say("warning: %s port %s: no kTLS (%s); falling back to stunnel", o->host, o->port, why->message);
		ok = o->verb == VERB_CONNECT ? as_client(o, r, &second, &t) : as_server(o, listener, r, &second, &t);
	}
	if (!ok)
		return failed(f, why->exit, why->cause, "%.240s; the fallback failed too: %.240s",
			      why->message, second.message);
	close(t.log);
	*child = t.pid;
	return true;
}
