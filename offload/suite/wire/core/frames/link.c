/* SPDX-License-Identifier: Apache-2.0 */
/* Where in the frame does IP begin? Ethernet with VLAN tags, Linux cooked, BSD loopback, raw IP. */
#include "capture.h"

enum { LINK_NULL = 0, LINK_ETHERNET = 1, LINK_RAW = 101, LINK_LOOP = 108, LINK_SLL = 113, LINK_IPV4 = 228,
       LINK_IPV6 = 229, LINK_SLL2 = 276 };
enum { TAGS_MAX = 4 };

static int version_of(uint16_t ethertype)
{
	return ethertype == 0x0800 ? 4 : ethertype == 0x86dd ? 6 : 0;
}

static bool is_tag(uint16_t ethertype)
{
	return ethertype == 0x8100 || ethertype == 0x88a8 || ethertype == 0x9100 || ethertype == 0x9200;
}

/* The ethertype is at `type`, what it announces at `next`; tags in between are passed over. */
static enum kind by_ethertype(const struct frame *f, uint32_t type, uint32_t next, uint32_t *l3, int *version)
{
	uint16_t ethertype;

	if (f->cap < next)
		return KIND_OTHER;
	ethertype = be16(f->at + type);
	for (int tags = 0; is_tag(ethertype); tags++, next += 4) {
		if (tags == TAGS_MAX || f->cap < next + 4)
			return KIND_OTHER;
		ethertype = be16(f->at + next + 2);
	}
	*l3 = next;
	*version = version_of(ethertype);
	return *version ? KIND_TCP : KIND_OTHER;
}

/* IP at a fixed place. A family number before it is not looked at: each system has its own for IPv6. */
static enum kind ip_at(const struct frame *f, uint32_t at, int only, uint32_t *l3, int *version)
{
	*l3 = at;
	*version = f->cap > at ? f->at[at] >> 4 : 0;
	return (*version == 4 || *version == 6) && (!only || *version == only) ? KIND_TCP : KIND_OTHER;
}

/* Has the link's header fewer than 16 free bytes in a row? */
bool link_is_tight(const struct frame *f)
{
	return f->link != LINK_SLL2;
}

/* KIND_TCP if it is IP of that version at l3, KIND_OTHER if not, KIND_LINK for an unknown link type. */
enum kind link_strip(const struct frame *f, uint32_t *l3, int *version)
{
	switch (f->link) {
	case LINK_NULL:
	case LINK_LOOP:
		return ip_at(f, 4, 0, l3, version);
	case LINK_ETHERNET:
		return by_ethertype(f, 12, 14, l3, version);
	case LINK_SLL:
		return by_ethertype(f, 14, 16, l3, version);
	case LINK_SLL2:
		return by_ethertype(f, 0, 20, l3, version);
	case LINK_RAW:
		return ip_at(f, 0, 0, l3, version);
	case LINK_IPV4:
		return ip_at(f, 0, 4, l3, version);
	case LINK_IPV6:
		return ip_at(f, 0, 6, l3, version);
	default:
		return KIND_LINK;
	}
}
