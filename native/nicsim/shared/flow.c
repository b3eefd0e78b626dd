// SPDX-License-Identifier: GPL-2.0-only
/* The name of a connection: addresses and ports, as a card's table of streams has them. */
#include <linux/jhash.h>
#include <net/inet_sock.h>
#include <net/ipv6.h>

#include "nicsim.h"

u32 nicsim_flow_hash(const struct nicsim_flow *flow)
{
	BUILD_BUG_ON(sizeof(*flow) != 36);
	return jhash(flow, sizeof(*flow), 0);
}

void nicsim_flow_of(struct nicsim_flow *flow, const struct sock *sk)
{
	const struct inet_sock *inet = inet_sk(sk);

	memset(flow, 0, sizeof(*flow));
	if (sk->sk_family == AF_INET6 && !ipv6_addr_v4mapped(&sk->sk_v6_daddr)) {
		flow->local = sk->sk_v6_rcv_saddr;
		flow->remote = sk->sk_v6_daddr;
	} else {
		ipv6_addr_set_v4mapped(inet->inet_rcv_saddr, &flow->local);
		ipv6_addr_set_v4mapped(inet->inet_daddr, &flow->remote);
	}
	flow->local_port = inet->inet_sport;
	flow->remote_port = inet->inet_dport;
}
