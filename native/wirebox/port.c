/* SPDX-License-Identifier: Apache-2.0 */
/* One end of the cable: a raw socket on an interface, and the way out of its bridge and back. */
#include <endian.h>
#include <errno.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/sockios.h>

#include "wirebox.h"

#define RECEIVE_BUFFER (32 << 20)
#define SEND_BUFFER (4 << 20)

#ifndef PACKET_IGNORE_OUTGOING
#define PACKET_IGNORE_OUTGOING 23 /* Linux 4.20 */
#endif

static int broken(const struct port *p, const char *what)
{
	complain("%s: %s: %s", p->name, what, strerror(errno));
	return errno == EPERM || errno == EACCES ? RC_NO_PERMISSION : RC_BROKEN;
}

/* It must be an Ethernet interface that is up. */
static int check(struct port *p)
{
	struct ifreq r = { .ifr_ifindex = 0 };

	if (strlen(p->name) >= sizeof(r.ifr_name) || !*p->name) {
		complain("'%s' is not the name of an interface", p->name);
		return RC_NO_DEVICE;
	}
	strcpy(r.ifr_name, p->name);
	if (ioctl(p->fd, SIOCGIFINDEX, &r)) {
		complain("no interface '%s'", p->name);
		return RC_NO_DEVICE;
	}
	p->index = r.ifr_ifindex;
	if (ioctl(p->fd, SIOCGIFHWADDR, &r))
		return broken(p, "cannot read its hardware address");
	if (r.ifr_hwaddr.sa_family != ARPHRD_ETHER) {
		complain("%s is not an Ethernet interface", p->name);
		return RC_USAGE;
	}
	if (ioctl(p->fd, SIOCGIFFLAGS, &r))
		return broken(p, "its flags");
	if (!(r.ifr_flags & IFF_UP)) {
		complain("%s is down: bring it up first (ip link set %s up)", p->name, p->name);
		return RC_USAGE;
	}
	return RC_OK;
}

static bool option(int fd, int level, int name, int value)
{
	return setsockopt(fd, level, name, &value, sizeof(value)) == 0;
}

/* Everything but listening: nothing is received yet. */
static int prepare(struct port *p)
{
	struct packet_mreq promiscuous = { .mr_ifindex = p->index, .mr_type = PACKET_MR_PROMISC };

	if (!option(p->fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, 1))
		return broken(p, "cannot leave out outgoing frames (needs Linux 4.20)");
	/* Sizes and checksums that the sender left to a card come apart from the frame; so do stripped VLAN tags. */
	if (!option(p->fd, SOL_PACKET, PACKET_VNET_HDR, 1) || !option(p->fd, SOL_PACKET, PACKET_AUXDATA, 1))
		return broken(p, "cannot get the metadata of frames");
	if (!option(p->fd, SOL_SOCKET, SO_RCVBUFFORCE, RECEIVE_BUFFER) ||
	    !option(p->fd, SOL_SOCKET, SO_SNDBUFFORCE, SEND_BUFFER))
		return broken(p, "its buffers");
	if (setsockopt(p->fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &promiscuous, sizeof(promiscuous)))
		return broken(p, "cannot set promiscuous mode");
	return RC_OK;
}

static bool bridged(struct port *p, const char *bridge, bool in)
{
	struct ifreq r = { .ifr_ifindex = p->index };
	bool done;
	int fd;

	if (strlen(bridge) >= sizeof(r.ifr_name)) {
		errno = ENODEV;
		return false;
	}
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	strcpy(r.ifr_name, bridge);
	done = fd >= 0 && ioctl(fd, in ? SIOCBRADDIF : SIOCBRDELIF, &r) == 0;
	if (fd >= 0)
		close(fd);
	return done;
}

/* Open a port, and take it out of its bridge if there is one; the exit code if that is not possible. */
int port_open(struct port *p, const char *name, const char *bridge)
{
	int rc;

	p->name = name;
	p->fd = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (p->fd < 0)
		return broken(p, "cannot open a raw socket (run it as root)");
	rc = check(p);
	if (!rc)
		rc = prepare(p);
	if (!rc && bridge) {
		p->out = bridged(p, bridge, false);
		if (!p->out)
			rc = broken(p, "cannot be taken out of the bridge");
	}
	return rc;
}

/* Undo what port_open did to a bridge. */
bool port_put_back(struct port *p, const char *bridge)
{
	if (!p->out || bridged(p, bridge, true))
		return true;
	broken(p, "cannot be put back into the bridge");
	return false;
}

/* Say whether the interface is still there, up or down. */
bool port_exists(const struct port *p)
{
	struct ifreq r = { .ifr_ifindex = p->index };

	return ioctl(p->fd, SIOCGIFNAME, &r) == 0;
}

/* Receive from now on. */
bool port_listen(struct port *p)
{
	struct sockaddr_ll at = { .sll_family = AF_PACKET, .sll_protocol = htobe16(ETH_P_ALL),
				  .sll_ifindex = p->index };

	if (bind(p->fd, (struct sockaddr *)&at, sizeof(at)) == 0)
		return true;
	broken(p, "cannot listen");
	return false;
}
