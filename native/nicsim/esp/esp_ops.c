// SPDX-License-Identifier: GPL-2.0-only
/* What xfrm asks of a card that has ESP crypto offload. */
#include <net/xfrm.h>

#include "compat.h"
#include "nicsim.h"

/* Options of IP stand in front of ESP: left to software, as mlx5 does. */
static bool nicsim_esp_offload_ok(struct sk_buff *skb, struct xfrm_state *x)
{
	if (x->props.family == AF_INET6)
		return !ipv6_ext_hdr(ipv6_hdr(skb)->nexthdr);
	return ip_hdr(skb)->ihl == 5;
}

static const struct xfrmdev_ops nicsim_xfrmdev_ops = {
	.xdo_dev_state_add = nicsim_xdo_add,
	.xdo_dev_state_delete = nicsim_xdo_delete,
	.xdo_dev_state_free = nicsim_xdo_free,
	.xdo_dev_offload_ok = nicsim_esp_offload_ok,
	.xdo_dev_state_advance_esn = nicsim_esp_advance,
};

/* Before register_netdevice(). */
void nicsim_esp_attach(struct nicsim *ns)
{
	ns->host->xfrmdev_ops = &nicsim_xfrmdev_ops;
}
