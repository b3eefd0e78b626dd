/* SPDX-License-Identifier: Apache-2.0 */
/* Frames in and out in batches; what the kernel gives with a frame (checksum, size, VLAN tag) goes back into it. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <linux/if_packet.h>
#include <linux/virtio_net.h>

#include "wirebox.h"

#define BATCH 64
#define VLAN_TAG 4
#define PATIENCE_MS 1000

union control {
	struct cmsghdr align;
	char room[CMSG_SPACE(sizeof(struct tpacket_auxdata))];
};

struct taken {
	struct virtio_net_hdr vnet;
	uint8_t room[VLAN_TAG + FRAME_MAX]; /* the frame comes in behind room for a tag that goes back in */
};

struct given {
	struct virtio_net_hdr vnet; /* all zero: whole, with its checksum */
	uint8_t data[FRAME_MAX];
};

struct box {
	struct port *ports;
	struct engine *engine;
	struct taken in[BATCH];
	union control control[BATCH];
	struct mmsghdr in_msg[BATCH], out_msg[DIRECTIONS][BATCH];
	struct iovec in_iov[BATCH][2], out_iov[DIRECTIONS][BATCH];
	struct given out[DIRECTIONS][BATCH];
	unsigned int waiting[DIRECTIONS];
	bool warned[DIRECTIONS]; /* that frames are too big */
};

static void too_big(struct box *b, int direction, size_t len)
{
	char error[ERROR_MAX];

	b->engine->count[direction].too_big++;
	if (b->warned[direction])
		return;
	b->warned[direction] = true;
	snprintf(error, sizeof(error), "%s: a frame of %zu bytes exceeds the MTU of the other port (GRO or LRO is on, or the MTUs differ)",
		 direction_name(direction), len);
	say_error(0, error, NULL);
}

static void not_sent(struct box *b, int direction, size_t len)
{
	if (errno == EMSGSIZE)
		too_big(b, direction, len - sizeof(struct virtio_net_hdr));
	else
		b->engine->count[direction].failed++;
}

/* Send what waits in a direction: a full queue is waited for, a frame that is refused is counted and left out. */
static void flush(struct box *b, int direction)
{
	struct pollfd room = { .fd = b->ports[!direction].fd, .events = POLLOUT };
	struct mmsghdr *msg = b->out_msg[direction];
	unsigned int n = b->waiting[direction], at = 0;

	b->waiting[direction] = 0;
	while (at < n) {
		int sent = sendmmsg(room.fd, msg + at, n - at, 0);

		if (sent > 0) {
			at += (unsigned int)sent;
			b->engine->count[direction].sent += (unsigned int)sent;
		} else if (errno == EAGAIN && poll(&room, 1, PATIENCE_MS) <= 0) {
			b->engine->count[direction].failed += n - at; /* the port is stuck */
			return;
		} else if (errno != EAGAIN && errno != EINTR) {
			not_sent(b, direction, b->out_iov[direction][at].iov_len);
			at++;
		}
	}
}

static void queue(void *to, int direction, const uint8_t *data, uint32_t len)
{
	struct box *b = to;
	unsigned int i = b->waiting[direction]++;

	memcpy(b->out[direction][i].data, data, len);
	b->out_iov[direction][i].iov_len = sizeof(struct virtio_net_hdr) + len;
	if (i + 1 == BATCH)
		flush(b, direction);
}

void box_flush(struct box *b)
{
	for (int i = 0; i < DIRECTIONS; i++)
		flush(b, i);
}

/* NULL without memory. */
struct box *box_new(struct port ports[static DIRECTIONS], struct engine *e)
{
	struct box *b = calloc(1, sizeof(*b));

	if (!b)
		return NULL;
	b->ports = ports;
	b->engine = e;
	e->send = queue;
	e->to = b;
	for (int i = 0; i < BATCH; i++) {
		b->in_iov[i][0] = (struct iovec){ &b->in[i].vnet, sizeof(b->in[i].vnet) };
		b->in_iov[i][1] = (struct iovec){ b->in[i].room + VLAN_TAG, FRAME_MAX };
		b->in_msg[i].msg_hdr.msg_iov = b->in_iov[i];
		b->in_msg[i].msg_hdr.msg_iovlen = 2;
		b->in_msg[i].msg_hdr.msg_control = &b->control[i];
		for (int d = 0; d < DIRECTIONS; d++) {
			b->out_iov[d][i].iov_base = &b->out[d][i];
			b->out_msg[d][i].msg_hdr.msg_iov = &b->out_iov[d][i];
			b->out_msg[d][i].msg_hdr.msg_iovlen = 1;
		}
	}
	return b;
}

static const struct tpacket_auxdata *auxdata(struct msghdr *m)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c))
		if (c->cmsg_level == SOL_PACKET && c->cmsg_type == PACKET_AUXDATA)
			return (const struct tpacket_auxdata *)CMSG_DATA(c);
	return NULL;
}

/* Put a VLAN tag that the kernel took out back in; where the frame now begins. */
static uint8_t *with_tag(struct taken *t, struct msghdr *m)
{
	const struct tpacket_auxdata *a = auxdata(m);
	uint8_t *data = t->room + VLAN_TAG;

	if (!a || !(a->tp_status & TP_STATUS_VLAN_VALID))
		return data;
	data -= VLAN_TAG;
	memmove(data, data + VLAN_TAG, 12);
	data[12] = a->tp_status & TP_STATUS_VLAN_TPID_VALID ? (uint8_t)(a->tp_vlan_tpid >> 8) : 0x81;
	data[13] = a->tp_status & TP_STATUS_VLAN_TPID_VALID ? (uint8_t)a->tp_vlan_tpid : 0x00;
	data[14] = (uint8_t)(a->tp_vlan_tci >> 8);
	data[15] = (uint8_t)a->tp_vlan_tci;
	return data;
}

static void take_one(struct box *b, int direction, int i)
{
	struct taken *t = &b->in[i];
	struct msghdr *m = &b->in_msg[i].msg_hdr;
	uint32_t len = b->in_msg[i].msg_len;
	uint8_t *data;
	uint8_t kind = t->vnet.gso_type & (uint8_t)~VIRTIO_NET_HDR_GSO_ECN;
	bool large = kind == VIRTIO_NET_HDR_GSO_TCPV4 || kind == VIRTIO_NET_HDR_GSO_TCPV6;

	if (m->msg_flags & MSG_TRUNC || len <= sizeof(t->vnet)) {
		too_big(b, direction, len);
		return;
	}
	len -= (uint32_t)sizeof(t->vnet);
	if (t->vnet.flags & VIRTIO_NET_HDR_F_NEEDS_CSUM && !large)
		frame_finish(t->room + VLAN_TAG, len, t->vnet.csum_start, t->vnet.csum_offset);
	data = with_tag(t, m);
	len += (uint32_t)(t->room + VLAN_TAG - data);
	if (len > FRAME_MAX)
		too_big(b, direction, len);
	else if (large)
		engine_cut(b->engine, direction, data, len, t->vnet.gso_size);
	else
		engine_take(b->engine, direction, data, len);
}

/* Take a batch from a port: how many frames; 0: none now; -1: the port is gone. */
int box_take(struct box *b, int from)
{
	int n;

	for (int i = 0; i < BATCH; i++)
		b->in_msg[i].msg_hdr.msg_controllen = sizeof(b->control[i]);
	n = recvmmsg(b->ports[from].fd, b->in_msg, BATCH, MSG_DONTWAIT, NULL);
	if (n < 0 && errno == EINVAL) { /* a large frame that is not TCP: the kernel cannot describe it */
		b->engine->count[from].too_big++;
		return 1;
	}
	if (n < 0 && errno == ENETDOWN) /* down may come up again, gone may not */
		return port_exists(&b->ports[from]) ? 0 : -1;
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -1;
	for (int i = 0; i < n; i++)
		take_one(b, from, i);
	return n;
}

void box_close(struct box *b)
{
	for (int i = 0; i < DIRECTIONS; i++) {
		struct tpacket_stats s = { 0 };
		socklen_t len = sizeof(s);

		if (b->ports[i].fd < 0)
			continue;
		if (getsockopt(b->ports[i].fd, SOL_PACKET, PACKET_STATISTICS, &s, &len) == 0)
			b->engine->count[i].missed = s.tp_drops;
		close(b->ports[i].fd);
		b->ports[i].fd = -1;
	}
	free(b);
}
