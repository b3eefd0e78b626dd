/* SPDX-License-Identifier: Apache-2.0 */
/* The place of the resident's socket: a folder that only we and root can change, and one resident there at a time. In such
 * a folder nobody can put a link, or something of his, in the way between our look and our act. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "handoff.h"

enum { QUEUE = 512 };

/* One folder of the path, from the one before it. In /tmp (sticky) others cannot move what is ours: it may be on the way,
 * but a name in it may be theirs before it is ours. */
static int step(int from, const char *name, bool last, struct failure *f)
{
	int fd = openat(from, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	const char *why = errno == ENOTDIR ? "a symbolic link, which is not followed, or not a directory" : strerror(errno);
	struct stat st;

	if (fd >= 0 && fstat(fd, &st) == 0) {
		const bool many = st.st_mode & (S_IWGRP | S_IWOTH);

		if ((st.st_uid == 0 || st.st_uid == geteuid()) && (!many || (!last && st.st_mode & S_ISVTX)))
			return fd;
		why = many ? "other users can write to it" : "another user owns it and can write to it";
	}
	if (fd >= 0)
		close(fd);
	return failed(f, RC_USAGE, "usage", "folder '%s' of the socket: %s", name, why) - 1;
}

/* The folder of an absolute path, walked from the root; the name in it in *name. */
static int walk(char *path, const char **name, struct failure *f)
{
	char *last = strrchr(path, '/'), *rest = path, *word;
	int dir, next;

	*name = last + 1;
	*last = '\0';
	if (!**name || !strcmp(*name, ".") || !strcmp(*name, ".."))
		return failed(f, RC_USAGE, "usage", "the path of the socket does not end in a file name") - 1;
	dir = step(AT_FDCWD, "/", strspn(path, "/") == strlen(path), f);
	while (dir >= 0 && *(rest += strspn(rest, "/"))) {
		word = rest;
		rest += strcspn(rest, "/");
		if (*rest)
			*rest++ = '\0';
		next = step(dir, word, !rest[strspn(rest, "/")], f);
		close(dir);
		dir = next;
	}
	return dir;
}

static int open_folder(const char *path, struct place *p, struct failure *f)
{
	char *at = p->path;

	if (*path != '/') {
		if (!getcwd(at, PATH_MAX - 1))
			return failed(f, RC_USAGE, "usage", "%s: current directory: %s", path, strerror(errno)) - 1;
		at += strlen(at);
		*at++ = '/';
	}
	snprintf(at, (size_t)(p->path + sizeof(p->path) - at), "%s", path);
	return walk(p->path, &p->name, f);
}

/* Hold NAME.lock as long as we live: of several that start at once, or find a socket that a killed one left, one serves.
 * Who ends removes the file: a lock on one that is no longer there is none. */
static bool hold(struct place *p, const char *path, struct failure *f)
{
	struct stat mine, there;

	snprintf(p->lock_name, sizeof(p->lock_name), "%.200s.lock", p->name);
	for (;;) {
		p->lock = openat(p->dir, p->lock_name, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
		if (p->lock < 0 || fstat(p->lock, &mine))
			return failed(f, RC_CONNECT, "connect", "cannot lock %s.lock: %s", path, strerror(errno));
		if (!S_ISREG(mine.st_mode) || mine.st_uid != geteuid() || mine.st_nlink > 1)
			return failed(f, RC_CONNECT, "connect", "%s.lock is not a file of this user", path);
		if (flock(p->lock, LOCK_EX | LOCK_NB))
			return failed(f, RC_USAGE, "usage", "%s: another process already serves there", path);
		if (!fstatat(p->dir, p->lock_name, &there, AT_SYMLINK_NOFOLLOW) && there.st_dev == mine.st_dev &&
		    there.st_ino == mine.st_ino)
			return p->locked = true;
		close(p->lock);
	}
}

/* With the lock: a socket that nobody listens on any more is removed, one that somebody serves is not. */
static bool remove_stale(struct place *p, const struct sockaddr_un *sa, struct failure *f)
{
	struct stat st;

	if (fstatat(p->dir, p->name, &st, AT_SYMLINK_NOFOLLOW) || !S_ISSOCK(st.st_mode))
		return true;
	if (connect(p->listener, (const struct sockaddr *)sa, sizeof(*sa)) == 0 || errno == EAGAIN)
		return failed(f, RC_USAGE, "usage", "%s: another process already serves there", sa->sun_path);
	if (errno == ECONNREFUSED) /* another errno: it is somebody's, of another type or not for us */
		unlinkat(p->dir, p->name, 0);
	return true;
}

/* The file of the socket that we have bound goes to --user: by a handle, and only if it is one of ours. */
static bool give(struct place *p, const struct options *o)
{
	int file = openat(p->dir, p->name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	bool ok = file >= 0 && fstat(file, &p->made) == 0;

	if (ok && (!S_ISSOCK(p->made.st_mode) || p->made.st_uid != geteuid() || p->made.st_nlink != 1)) {
		errno = EEXIST;
		ok = false;
	}
	if (ok && o->user >= 0)
		ok = fchownat(file, "", (uid_t)o->user, (gid_t)-1, AT_EMPTY_PATH) == 0;
	if (file >= 0)
		close(file);
	return ok;
}

static bool listen_there(const struct options *o, struct place *p, struct failure *f)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	mode_t before;

	memcpy(sa.sun_path, o->socket, strlen(o->socket));
	if (!remove_stale(p, &sa, f))
		return false;
	before = umask(0177);
	p->bound = bind(p->listener, (struct sockaddr *)&sa, sizeof(sa)) == 0;
	umask(before);
	return (p->bound && give(p, o) && listen(p->listener, QUEUE) == 0) ||
	       failed(f, RC_CONNECT, "connect", "cannot listen on %s: %s", o->socket, strerror(errno));
}

/* Listen on o->socket, alone; false with *f, and nothing of ours is left there. */
bool place_take(const struct options *o, struct place *p, struct failure *f)
{
	bool ok = false;

	*p = (struct place){ .dir = -1, .lock = -1 };
	p->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (p->listener < 0 || strlen(o->socket) >= sizeof(((struct sockaddr_un *)0)->sun_path)) {
		failed(f, RC_USAGE, "usage", "%s: no socket, or more than %zu bytes", o->socket,
		       sizeof(((struct sockaddr_un *)0)->sun_path) - 1);
	} else {
		p->dir = open_folder(o->socket, p, f);
		ok = p->dir >= 0 && hold(p, o->socket, f) && listen_there(o, p, f);
	}
	if (!ok)
		place_leave(p);
	return ok;
}

/* Remove the socket, if it is still the one that we made, and let the next one in. */
void place_leave(struct place *p)
{
	struct stat st;

	if (p->bound && !fstatat(p->dir, p->name, &st, AT_SYMLINK_NOFOLLOW) && st.st_dev == p->made.st_dev &&
	    st.st_ino == p->made.st_ino)
		unlinkat(p->dir, p->name, 0);
	if (p->locked)
		unlinkat(p->dir, p->lock_name, 0);
	for (int i = 0, *fd[] = { &p->listener, &p->lock, &p->dir }; i < 3; i++)
		if (*fd[i] >= 0)
			close(*fd[i]);
	*p = (struct place){ .listener = -1, .dir = -1, .lock = -1 };
}
