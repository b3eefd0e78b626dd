/* SPDX-License-Identifier: Apache-2.0 */
/* Frames into a pcapng file with nanoseconds: https://www.ietf.org/archive/id/draft-ietf-opsawg-pcapng-03.html */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "wiretap.h"

#define BUFFER ((size_t)8 << 20)
#define BLOCK_MAX (FRAME_MAX + 64)

enum block { BLOCK_SECTION = 0x0a0d0d0a, BLOCK_INTERFACE = 1, BLOCK_STATISTICS = 5, BLOCK_PACKET = 6 };
enum option { OPTION_END = 0, IF_NAME = 2, IF_TSRESOL = 9, ISB_IFRECV = 4, ISB_IFDROP = 5 };

struct packet {
	uint32_t type, total, interface, high, low, captured, length;
};

static size_t padded(size_t n)
{
	return (n + 3) & ~(size_t)3;
}

/* Append an option: code, length, value, padding. */
static void add_option(unsigned char *block, size_t *at, uint16_t code, const void *value, uint16_t len)
{
	const uint16_t head[2] = { code, len };

	memcpy(block + *at, head, sizeof(head));
	memset(block + *at + 4, 0, padded(len));
	memcpy(block + *at + 4, value, len);
	*at += 4 + padded(len);
}

/* Give a block of `at` bytes its length, before and after; it becomes part of what is to be written. */
static void end_block(struct file *f, unsigned char *block, size_t at)
{
	const uint32_t total = (uint32_t)at + 4;

	memcpy(block + 4, &total, sizeof(total));
	memcpy(block + at, &total, sizeof(total));
	f->used += total;
}

static void add_head(struct file *f, const char *dev)
{
	const uint32_t section[] = { BLOCK_SECTION, 0, 0x1a2b3c4d, 1, UINT32_MAX, UINT32_MAX };
	const uint32_t interface[] = { BLOCK_INTERFACE, 0, f->link, f->snaplen };
	const unsigned char nanoseconds = 9;
	unsigned char *block = f->buf + f->used;
	size_t at = sizeof(interface);

	memcpy(block, section, sizeof(section));
	end_block(f, block, sizeof(section));
	block = f->buf + f->used;
	memcpy(block, interface, sizeof(interface));
	add_option(block, &at, IF_NAME, dev, (uint16_t)strlen(dev));
	add_option(block, &at, IF_TSRESOL, &nanoseconds, 1);
	add_option(block, &at, OPTION_END, "", 0);
	end_block(f, block, at);
}

/* Make the file, which must not exist, and its first two blocks. */
int file_create(struct file *f, const struct options *o, enum link_type link)
{
	int rc;

	*f = (struct file){ .path = o->file, .snaplen = o->snaplen, .link = link };
	f->buf = mmap(NULL, BUFFER, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (f->buf == MAP_FAILED)
		return fail(RC_SOCKET, "no memory for a buffer of %zu MiB", BUFFER >> 20);
	f->fd = open(o->file, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (f->fd < 0 && errno == EEXIST)
		return fail(RC_FILE, "'%s' already exists, and a capture never overwrites a file", o->file);
	if (f->fd < 0)
		return fail(RC_FILE, "cannot create '%s': %s", o->file, strerror(errno));
	add_head(f, o->dev);
	rc = file_flush(f);
	if (rc)
		unlink(o->file);
	return rc;
}

/* Where the next frame goes: in its place in the file, less what may be put before it. NULL: flush. */
unsigned char *file_room(struct file *f, size_t *size)
{
	const size_t head = sizeof(struct packet) + (f->link == LINK_COOKED ? HEAD_MAX : 0);

	*size = f->snaplen ? f->snaplen : FRAME_MAX;
	return BUFFER - f->used < BLOCK_MAX ? NULL : f->buf + f->used + head;
}

/* Put the tag back where it was: after the two addresses. */
static void restore_tag(unsigned char *data, struct frame *frame)
{
	const uint16_t tag[2] = { htons(frame->tpid), htons(frame->tci) };

	if (!frame->tagged || frame->captured < 12)
		return;
	memmove(data + 16, data + 12, frame->captured - 12);
	memcpy(data + 12, tag, sizeof(tag));
	frame->captured += 4;
	frame->length += 4;
}

/* LINKTYPE_LINUX_SLL2, big endian: an interface without an Ethernet header still has direction and protocol. */
static void add_cooked(unsigned char *data, struct frame *frame)
{
	const uint32_t index = htonl((uint32_t)frame->from.sll_ifindex);
	const uint16_t kind = htons(frame->from.sll_hatype);

	memset(data, 0, 20);
	memcpy(data, &frame->from.sll_protocol, 2); /* is big endian already */
	memcpy(data + 4, &index, 4);
	memcpy(data + 8, &kind, 2);
	data[10] = frame->from.sll_pkttype;
	data[11] = frame->from.sll_halen < 8 ? frame->from.sll_halen : 8;
	memcpy(data + 12, frame->from.sll_addr, data[11]);
	frame->captured += 20;
	frame->length += 20;
}

/* The frame lies where file_room() said: make it a block. */
void file_add(struct file *f, struct frame *frame)
{
	const uint64_t when = (uint64_t)frame->when.tv_sec * 1000000000u + (uint64_t)frame->when.tv_nsec;
	unsigned char *block = f->buf + f->used, *data = block + sizeof(struct packet);
	struct packet head = { .type = BLOCK_PACKET, .high = (uint32_t)(when >> 32), .low = (uint32_t)when };

	if (f->link == LINK_COOKED)
		add_cooked(data, frame);
	else
		restore_tag(data, frame);
	if (f->snaplen && frame->captured > f->snaplen)
		frame->captured = f->snaplen;
	head.captured = frame->captured;
	head.length = frame->length;
	memcpy(block, &head, sizeof(head));
	memset(data + frame->captured, 0, 3);
	end_block(f, block, sizeof(head) + padded(frame->captured));
	f->frames++;
	f->bytes += frame->captured;
	f->truncated += frame->captured < frame->length;
}

/* Write what waits. */
int file_flush(struct file *f)
{
	size_t done = 0;

	while (done < f->used) {
		ssize_t n = write(f->fd, f->buf + done, f->used - done);

		if (n < 0 && errno != EINTR)
			return fail(RC_FILE, "cannot write to '%s', which ends after %llu frames or earlier: %s", f->path,
				    (unsigned long long)f->frames, strerror(errno));
		done += n > 0 ? (size_t)n : 0;
	}
	f->used = 0;
	return RC_OK;
}

/* The last block tells readers what is missing; close() may report what write() did not. */
int file_finish(struct file *f, uint64_t dropped)
{
	struct timespec now;
	uint32_t head[5] = { BLOCK_STATISTICS };
	const uint64_t seen = f->frames + dropped;
	unsigned char *block = f->buf;
	size_t at = sizeof(head);
	uint64_t when;
	int rc = file_flush(f);

	if (rc)
		return rc;
	clock_gettime(CLOCK_REALTIME, &now);
	when = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
	head[3] = (uint32_t)(when >> 32);
	head[4] = (uint32_t)when;
	memcpy(block, head, sizeof(head));
	add_option(block, &at, ISB_IFRECV, &seen, sizeof(seen));
	add_option(block, &at, ISB_IFDROP, &dropped, sizeof(dropped));
	add_option(block, &at, OPTION_END, "", 0);
	end_block(f, block, at);
	rc = file_flush(f);
	if (!rc && close(f->fd))
		rc = fail(RC_FILE, "cannot write to '%s': %s", f->path, strerror(errno));
	return rc;
}
