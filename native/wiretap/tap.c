/* SPDX-License-Identifier: Apache-2.0 */
/* A packet socket that sees every frame of one interface, both directions. Plain recvmsg(): a frame of any
 * size comes whole, and nothing waits in a half-filled block, which is how a ring loses its end. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <linux/filter.h>
#include <linux/if_arp.h>
#include <linux/if_ether.h>

#include "wiretap.h"

static int set(int fd, int level, int name, const void *value, socklen_t size)
{
	return setsockopt(fd, level, name, value, size);
}

/* What the frames of this interface begin with; also whether they would be seen twice, as on loopback. */
static int look(const char *dev, enum link_type *link, bool *loopback)
{
	struct ifreq request = { 0 };
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0), rc;

	if (fd < 0)
		return fail(RC_SOCKET, "socket: %s", strerror(errno));
	memcpy(request.ifr_name, dev, strlen(dev)); /* its length was checked by if_nametoindex() */
	rc = ioctl(fd, SIOCGIFHWADDR, &request);
	close(fd);
	if (rc)
		return fail(RC_DEVICE, "%s: %s", dev, strerror(errno));
	*loopback = request.ifr_hwaddr.sa_family == ARPHRD_LOOPBACK;
	*link = request.ifr_hwaddr.sa_family == ARPHRD_ETHER || *loopback ? LINK_ETHERNET : LINK_COOKED;
	return RC_OK;
}

static int refused(const char *what)
{
	if (errno == EPERM || errno == EACCES)
		return fail(RC_PERMISSION, "not permitted: %s needs root (CAP_NET_RAW)", what);
	return fail(RC_SOCKET, "%s: %s", what, strerror(errno));
}

/* As much queue as was asked for: beyond the system's limit where that is allowed, else with a warning. */
static void enlarge(int fd, int mib)
{
	int want = mib << 20, got = 0;
	socklen_t size = sizeof(got);

	if (!set(fd, SOL_SOCKET, SO_RCVBUFFORCE, &want, sizeof(want)))
		return;
	set(fd, SOL_SOCKET, SO_RCVBUF, &want, sizeof(want));
	getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &got, &size);
	if (got / 2 < want)
		fail(RC_OK, "warning: the buffer is %d KiB instead of %d MiB (more needs CAP_NET_ADMIN)", got >> 11,
		     mib);
}

static int configure(struct tap *t, const struct options *o, bool loopback)
{
	struct packet_mreq all = { .mr_ifindex = (int)t->index, .mr_type = PACKET_MR_PROMISC };
	int on = 1;

	enlarge(t->fd, o->buffer_mib);
	if (set(t->fd, SOL_PACKET, PACKET_AUXDATA, &on, sizeof(on)) ||
	    set(t->fd, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof(on)))
		return refused("setsockopt");
	/* Ends with the socket. A mirror port sends frames that are for others. */
	if (set(t->fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &all, sizeof(all)))
		return refused("promiscuous mode");
	/* Every frame on loopback goes out and comes in; libpcap leaves out the same one. */
	if (loopback && set(t->fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &on, sizeof(on)))
		return refused("PACKET_IGNORE_OUTGOING");
	return RC_OK;
}

/* Everything but the first frame: that waits for tap_start(). */
int tap_open(struct tap *t, const struct options *o)
{
	bool loopback = false;
	int rc;

	*t = (struct tap){ .fd = -1, .index = if_nametoindex(o->dev) };
	if (!t->index)
		return fail(RC_DEVICE, "no such interface: '%s' (`ip link` lists them)", o->dev);
	rc = look(o->dev, &t->link, &loopback);
	if (rc)
		return rc;
	/* Protocol 0: nothing arrives before the bind, so no frame of another interface does. */
	t->fd = socket(AF_PACKET, (t->link == LINK_COOKED ? SOCK_DGRAM : SOCK_RAW) | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	return t->fd < 0 ? refused("capturing") : configure(t, o, loopback);
}

/* From here on frames are queued. */
int tap_start(struct tap *t, const char *dev)
{
	struct sockaddr_ll at = {
		.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL), .sll_ifindex = (int)t->index,
	};

	if (bind(t->fd, (struct sockaddr *)&at, sizeof(at)))
		return errno == ENODEV ? fail(RC_DEVICE, "no such interface: '%s'", dev) : refused("bind");
	return RC_OK;
}

static void read_control(struct msghdr *msg, struct frame *f)
{
	struct tpacket_auxdata aux;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SO_TIMESTAMPNS)
			memcpy(&f->when, CMSG_DATA(c), sizeof(f->when));
		if (c->cmsg_level != SOL_PACKET || c->cmsg_type != PACKET_AUXDATA)
			continue;
		memcpy(&aux, CMSG_DATA(c), sizeof(aux));
		f->tagged = aux.tp_status & TP_STATUS_VLAN_VALID;
		f->tci = aux.tp_vlan_tci;
		f->tpid = aux.tp_status & TP_STATUS_VLAN_TPID_VALID ? aux.tp_vlan_tpid : ETH_P_8021Q;
	}
}

/* Take the next frame out of the queue, at most `size` bytes of it. */
enum next tap_next(struct tap *t, void *into, size_t size, struct frame *f)
{
	union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(sizeof(struct tpacket_auxdata)) + CMSG_SPACE(sizeof(struct timespec))];
	} control;
	struct iovec iov = { into, size };
	struct msghdr msg = { .msg_name = &f->from, .msg_namelen = sizeof(f->from), .msg_iov = &iov, .msg_iovlen = 1,
			      .msg_control = control.buf, .msg_controllen = sizeof(control.buf) };
	ssize_t n = recvmsg(t->fd, &msg, MSG_TRUNC); /* MSG_TRUNC: the answer is the frame's length, cut or not */

	if (n >= 0) {
		*f = (struct frame){ .from = f->from, .length = (uint32_t)n };
		f->captured = (size_t)n < size ? (uint32_t)n : (uint32_t)size;
		read_control(&msg, f);
		t->down = false;
		return NEXT_FRAME;
	}
	/* A link that goes down says so once, and frames come again after it is up (packet_notifier()). */
	t->down |= errno == ENETDOWN;
	return errno == EAGAIN || errno == EINTR || errno == ENETDOWN ? NEXT_NONE : NEXT_BROKEN;
}

/* Has the interface been removed? The socket hears only that it went down first. */
bool tap_gone(const struct tap *t)
{
	char name[IF_NAMESIZE];

	return t->down && !if_indextoname(t->index, name);
}

/* Let no more frames in: what is queued is then all there is, however busy the interface. */
int tap_silence(const struct tap *t)
{
	struct sock_filter nothing = BPF_STMT(BPF_RET | BPF_K, 0);
	struct sock_fprog program = { 1, &nothing };

	return set(t->fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)) ? refused("filter") : RC_OK;
}

/* Reading the counter sets it to 0, and it has 32 bits. */
void tap_count_drops(struct tap *t)
{
	struct tpacket_stats since;
	socklen_t size = sizeof(since);

	if (!getsockopt(t->fd, SOL_PACKET, PACKET_STATISTICS, &since, &size))
		t->dropped += since.tp_drops;
}
