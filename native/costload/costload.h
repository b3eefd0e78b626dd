/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of a cost run, its four kinds of process, and the functions that the files share. */
#ifndef COSTLOAD_H
#define COSTLOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

/* Bytes per write, per read, per record and per wake-up: one TLS record of the largest size, in every arm. */
#define CHUNK 16384
#define FLOWS 2
#define CHANNELS 8	/* connections of a direction at most: one digit of a name */

enum arm { PLAIN, USER, SW, HW, HW_ZC, ARMS };
enum side { DUT, PEER };

/* What stays the same through the run. */
struct load {
	const char *ns[2], *address[2];	/* by side */
	size_t warm, bytes;		/* per direction: before, and while it is measured; channels share it */
	unsigned char *data;		/* what is sent, in memory and in a file */
	int file;
};

/* A row: what each of its connections is. */
struct kind {
	enum arm arm;
	bool tx, rx, file;		/* file: the DUT sends from a file, as a web server does */
	int channels;			/* connections of a direction */
};

/* What an end says once it is ready; its kernel TLS as /proc/net/tls_stat counted it. */
struct ready {
	char tx[8], rx[8];		/* hw, sw or none */
};

/* One end of one flow: a process in a namespace, that waits for orders. */
struct end {
	const struct load *load;
	const struct kind *kind;
	enum side side;
	int channel;
	size_t warm, bytes;		/* of this connection */
	bool sends, rx_row;		/* rx_row: the flow goes to the DUT */
	int orders, answers;		/* pipes: its own ends here, the other ends at the coordinator */
	pid_t pid;
	char name[16];			/* as in /proc/PID/comm, so at most 15 letters */
	struct ready ready;
};

/* end.c */
_Noreturn void end_run(struct end *e);

/* tls.c */
void ktls_install(int fd, bool client, struct ready *ready);
void ktls_zerocopy(int fd);
void *user_tls(int fd, bool client);
size_t user_write(void *tls, const unsigned char *data, size_t len);
size_t user_read(void *tls, unsigned char *data, size_t len);

/* tasks.c */
#define TASKS 256
struct task {
	pid_t pid;
	char name[24];
	uint64_t ns;
};
struct shot {
	size_t n;
	struct task tasks[TASKS];
	uint64_t encrypted, decrypted;	/* bytes, as the DUT's card counts */
};
void shoot(struct shot *shot);
void print_moved(const struct shot *before, const struct shot *after);

/* poll.c */
bool poll_add(char *text);
struct timespec poll_start(void);
void poll_wait(struct timespec start);

/* fail.c */
_Noreturn void die(const char *what, const char *why);
void need(bool ok, const char *what);

#endif
