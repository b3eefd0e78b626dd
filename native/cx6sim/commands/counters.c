/* SPDX-License-Identifier: Apache-2.0 */
/* What the port counted: the groups of register PPCNT for the cable, and the counters of the vport. */
#include "cx6.h"

enum { GROUP_802_3 = 0x00, GROUP_2819 = 0x02, GROUP_LAYER_1 = 0x12 };

static void tell_802_3(const struct cable *p, struct view v)
{
	set64(v, F(eth_802_3_cntrs_grp_data_layout, a_frames_transmitted_ok_high), p->sent.frames);
	set64(v, F(eth_802_3_cntrs_grp_data_layout, a_octets_transmitted_ok_high), p->sent.bytes);
	set64(v, F(eth_802_3_cntrs_grp_data_layout, a_multicast_frames_xmitted_ok_high), p->sent.multicast);
	set64(v, F(eth_802_3_cntrs_grp_data_layout, a_broadcast_frames_xmitted_ok_high), p->sent.broadcast);
	set64(v, F(eth_802_3_cntrs_grp_data_layout, a_frames_received_ok_high), p->came.frames);
	set64(v, F(eth_802_3_cntrs_grp_data_layout, a_octets_received_ok_high), p->came.bytes);
	set64(v, F(eth_802_3_cntrs_grp_data_layout, a_multicast_frames_received_ok_high), p->came.multicast);
	set64(v, F(eth_802_3_cntrs_grp_data_layout, a_broadcast_frames_received_ok_high), p->came.broadcast);
}

/* What came, by its size; the ten sizes lie one behind the other. */
static void tell_2819(const struct cable *p, struct view v)
{
	struct view sizes = view_at(v, A(eth_2819_cntrs_grp_data_layout, ether_stats_pkts64octets_high));

	set64(v, F(eth_2819_cntrs_grp_data_layout, ether_stats_octets_high), p->came.bytes + FCS * p->came.frames);
	set64(v, F(eth_2819_cntrs_grp_data_layout, ether_stats_pkts_high), p->came.frames);
	set64(v, F(eth_2819_cntrs_grp_data_layout, ether_stats_multicast_pkts_high), p->came.multicast);
	set64(v, F(eth_2819_cntrs_grp_data_layout, ether_stats_broadcast_pkts_high), p->came.broadcast);
	for (uint32_t i = 0; i < FRAME_SIZES && view_has(sizes, 8 * i, 8); i++)
		store64(sizes.at + (size_t)8 * i, p->sizes[i]);
}

/* The group that the driver asks for; those that the card lacks are zeros. */
void counter_register(const struct card *c, struct view out)
{
	struct view v = view_at(out, F(ppcnt_reg, counter_set));

	if (v.len)
		memset(v.at, 0, v.len);
	switch (get(out, F(ppcnt_reg, grp))) {
	case GROUP_802_3:
		tell_802_3(&c->cable, v);
		break;
	case GROUP_2819:
		tell_2819(&c->cable, v);
		break;
	case GROUP_LAYER_1:
		set(v, F(phys_layer_cntrs, link_down_events), c->cable.downs);
		break;
	default:
		break;
	}
}

static void put_traffic(struct view v, struct field f, uint64_t frames, uint64_t bytes)
{
	struct view t = view_at(v, f);

	set64(t, F(traffic_counter, packets), frames);
	set64(t, F(traffic_counter, octets), bytes);
}

enum status ask_vport_counter(struct card *c, const struct command *cmd)
{
	const struct truth *t = &c->truth;

	put_traffic(cmd->out, F(query_vport_counter_out, received_eth_unicast), t->rx_frames, t->rx_bytes);
	put_traffic(cmd->out, F(query_vport_counter_out, transmitted_eth_unicast), t->tx_frames, t->tx_bytes);
	return ST_OK;
}
