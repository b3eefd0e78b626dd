/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of wiretap share: options, the tap on an interface, the pcapng file, and exit codes. */
#ifndef WIRETAP_H
#define WIRETAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

#include <linux/if_packet.h>

/* Larger than any frame that the kernel makes: GSO_MAX_SIZE is 8 * 65535 (include/linux/netdevice.h). */
#define FRAME_MAX (1u << 20)
#define HEAD_MAX 20 /* what is put before a frame: a VLAN tag, or the header of Linux cooked v2 */

enum exit_code { RC_OK = 0, RC_USAGE = 1, RC_DEVICE = 2, RC_PERMISSION = 4, RC_FILE = 5, RC_SOCKET = 6 };
enum link_type { LINK_ETHERNET = 1, LINK_COOKED = 276 }; /* https://www.tcpdump.org/linktypes.html */

struct options {
	const char *dev, *file;
	uint32_t snaplen; /* 0: whole frames */
	int buffer_mib;
};

/* A packet socket on one interface. */
struct tap {
	int fd;
	unsigned int index;
	enum link_type link;
	bool down;
	uint64_t dropped;
};

/* One frame as the socket gave it; the bytes are where tap_next() was told to put them. */
struct frame {
	uint32_t captured, length;
	struct timespec when;
	struct sockaddr_ll from;
	bool tagged; /* a VLAN tag was taken out of the frame */
	uint16_t tpid, tci;
};

enum next { NEXT_FRAME, NEXT_NONE, NEXT_BROKEN };

/* The pcapng file and what waits to be written to it. */
struct file {
	int fd;
	const char *path;
	unsigned char *buf;
	size_t used;
	uint32_t snaplen;
	enum link_type link;
	uint64_t frames, bytes, truncated;
};

/* fail.c */
int fail(int code, const char *fmt, ...) __attribute__((format(printf, 2, 3))); /* returns the code */

/* tap.c: functions that can fail return an exit code, after a line on standard error */
int tap_open(struct tap *t, const struct options *o);
int tap_start(struct tap *t, const char *dev);
enum next tap_next(struct tap *t, void *into, size_t size, struct frame *f);
bool tap_gone(const struct tap *t);
int tap_silence(const struct tap *t);
void tap_count_drops(struct tap *t);

/* file.c */
int file_create(struct file *f, const struct options *o, enum link_type link);
unsigned char *file_room(struct file *f, size_t *size);
void file_add(struct file *f, struct frame *frame);
int file_flush(struct file *f);
int file_finish(struct file *f, uint64_t dropped);

#endif
