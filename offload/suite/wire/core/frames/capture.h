/* SPDX-License-Identifier: Apache-2.0 */
/* From a capture file to frames, and from a frame to a TCP segment. */
#ifndef WIRE_CAPTURE_H
#define WIRE_CAPTURE_H

#include "bytes.h"
#include "text.h"

enum { FRAME_MAX = 16 << 20 };

struct frame {
	const uint8_t *at;
	uint32_t cap, orig;
	uint32_t link;
	uint64_t number;
};

struct interface {
	uint16_t link;
	uint32_t snap;
};

/* Where the reading is; `damaged` is set when it ended before the file did. */
struct reader {
	const uint8_t *pos, *end;
	bool ng, big, damaged;
	uint32_t link; /* pcap */
	struct interface *interfaces; /* pcapng: of this section */
	uint32_t count, room;
	uint64_t frames;
};

enum { TCP_FIN = 1, TCP_SYN = 2, TCP_RST = 4, TCP_ACK = 16, TCP_URG = 32 };

enum kind { KIND_TCP, KIND_OTHER, KIND_FRAGMENT, KIND_BAD_SUM, KIND_LINK };

/* Addresses are as they lie in the frame, 4 or 16 bytes. plen is what IP claims, cap what was captured of it.
 * plain: nowhere in its headers are 16 bytes in a row that are free. */
struct segment {
	const uint8_t *src, *dst;
	uint8_t alen, flags;
	bool plain;
	uint16_t sport, dport;
	uint32_t seq, ack;
	uint32_t at; /* offset of the payload in the frame */
	uint32_t cap;
	uint64_t plen;
};

/* capture.c, pcapng.c */
int reader_open(struct reader *r, struct bytes file, struct failure *f);
bool reader_next(struct reader *r, struct frame *f);
void reader_close(struct reader *r);
bool pcapng_next(struct reader *r, struct frame *f);

/* link.c, net.c */
bool link_is_tight(const struct frame *f);
enum kind link_strip(const struct frame *f, uint32_t *l3, int *version);
enum kind net_parse(const struct frame *f, bool checksums, struct segment *s);
bool net_may_be_tcp(const struct frame *f, struct segment *s);
bool sums_right(const uint8_t *l3, int version, uint32_t header, const uint8_t *l4, size_t len);

#endif
