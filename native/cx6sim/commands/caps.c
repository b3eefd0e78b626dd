/* SPDX-License-Identifier: Apache-2.0 */
/* What the card says that it can do, by kind of capability; docs/reference/card-model.md says where each is from. */
#include "cx6.h"

enum { CAP_GENERAL = 0x0, CAP_ETHERNET = 0x1, CAP_FLOW_TABLE = 0x7, CAP_TLS = 0x11 };
#define OBJECT_DEK 0xc

struct cap {
	struct field field;
	uint32_t value;
};

#define I(type, name) { type##__##name } /* F() of an initializer */

static const struct cap general[] = {
	/* how many there may be of each object, and how large; logarithms */
	{ I(cmd_hca_cap, log_max_srq_sz), 15 }, { I(cmd_hca_cap, log_max_qp_sz), 15 }, { I(cmd_hca_cap, log_max_qp), 18 },
	{ I(cmd_hca_cap, log_max_srq), 16 }, { I(cmd_hca_cap, log_max_cq_sz), 22 }, { I(cmd_hca_cap, log_max_cq), 12 },
	{ I(cmd_hca_cap, log_max_eq_sz), 22 }, { I(cmd_hca_cap, log_max_mkey), 16 }, { I(cmd_hca_cap, log_max_eq), 6 },
	{ I(cmd_hca_cap, max_num_eqs), 32 }, { I(cmd_hca_cap, log_max_mrw_sz), 31 },
	{ I(cmd_hca_cap, log_max_bsf_list_size), 6 }, { I(cmd_hca_cap, log_max_klm_list_size), 16 },
	{ I(cmd_hca_cap, log_max_transport_domain), 16 }, { I(cmd_hca_cap, log_max_pd), 16 },
	{ I(cmd_hca_cap, log_max_xrcd), 12 }, { I(cmd_hca_cap, log_max_flow_counter_bulk), 8 },
	{ I(cmd_hca_cap, max_flow_counter_15_0), 0xffff }, { I(cmd_hca_cap, log_max_rq), 12 },
	{ I(cmd_hca_cap, log_max_sq), 12 }, { I(cmd_hca_cap, log_max_tir), 16 }, { I(cmd_hca_cap, log_max_tis), 16 },
	{ I(cmd_hca_cap, log_max_rmp), 12 }, { I(cmd_hca_cap, log_max_rqt), 12 },
	{ I(cmd_hca_cap, log_max_rqt_size), 8 }, { I(cmd_hca_cap, log_max_tis_per_sq), 5 },
	{ I(cmd_hca_cap, log_max_stride_sz_rq), 10 }, { I(cmd_hca_cap, log_min_stride_sz_rq), 4 },
	{ I(cmd_hca_cap, log_max_stride_sz_sq), 10 }, { I(cmd_hca_cap, log_min_stride_sz_sq), 4 },
	{ I(cmd_hca_cap, log_max_wq_sz), 15 }, { I(cmd_hca_cap, log_max_vlan_list), 7 },
	{ I(cmd_hca_cap, log_max_current_mc_list), 7 }, { I(cmd_hca_cap, log_max_current_uc_list), 7 },
	{ I(cmd_hca_cap, log_max_l2_table), 12 }, { I(cmd_hca_cap, gid_table_size), 4 },
	{ I(cmd_hca_cap, log_max_msg), 30 }, { I(cmd_hca_cap, max_wqe_sz_sq), 1024 },
	{ I(cmd_hca_cap, max_wqe_sz_rq), 512 }, { I(cmd_hca_cap, max_sgl_for_optimized_performance), 4 },
	/* one Ethernet port, and what its queues can do */
	{ I(cmd_hca_cap, port_type), 1 }, { I(cmd_hca_cap, num_ports), 1 }, { I(cmd_hca_cap, max_tc), 8 },
	{ I(cmd_hca_cap, cqe_version), 1 }, { I(cmd_hca_cap, eth_net_offloads), 1 },
	{ I(cmd_hca_cap, nic_flow_table), 1 }, { I(cmd_hca_cap, vport_counters), 1 }, { I(cmd_hca_cap, vport_group_manager), 1 },
	{ I(cmd_hca_cap, cq_oi), 1 }, { I(cmd_hca_cap, cq_resize), 1 }, { I(cmd_hca_cap, cq_moderation), 1 },
	{ I(cmd_hca_cap, cq_period_mode_modify), 1 },
	{ I(cmd_hca_cap, scqe_break_moderation), 1 }, { I(cmd_hca_cap, cd), 1 }, { I(cmd_hca_cap, imaicl), 1 },
	{ I(cmd_hca_cap, sho), 1 }, { I(cmd_hca_cap, uar_sz), 5 }, { I(cmd_hca_cap, log_pg_sz), 12 },
	{ I(cmd_hca_cap, bf), 1 }, { I(cmd_hca_cap, log_bf_reg_size), 9 }, { I(cmd_hca_cap, basic_cyclic_rcv_wqe), 1 },
	{ I(cmd_hca_cap, disable_local_lb_uc), 1 }, { I(cmd_hca_cap, disable_local_lb_mc), 1 },
	{ I(cmd_hca_cap, device_frequency_khz), 156250 }, { I(cmd_hca_cap, device_frequency_mhz), 156 },
	{ I(cmd_hca_cap, pcam_reg), 1 }, { I(cmd_hca_cap, mcam_reg), 1 }, { I(cmd_hca_cap, umr_ptr_rlky), 1 },
	{ I(cmd_hca_cap, umr_fence), 2 }, { I(cmd_hca_cap, dump_fill_mkey), 1 }, { I(cmd_hca_cap, driver_version), 1 },
	{ I(cmd_hca_cap, ports_check), 1 }, { I(cmd_hca_cap, repeated_block_disabled), 1 },
	{ I(cmd_hca_cap, port_module_event), 1 }, { I(cmd_hca_cap, fixed_buffer_size), 1 },
	{ I(cmd_hca_cap, out_of_seq_cnt), 1 }, { I(cmd_hca_cap, retransmission_q_counters), 1 },
	{ I(cmd_hca_cap, nic_receive_steering_discard), 1 }, { I(cmd_hca_cap, striding_rq), 1 },
	/* TLS */
	{ I(cmd_hca_cap, tls_tx), 1 }, { I(cmd_hca_cap, tls_rx), 1 }, { I(cmd_hca_cap, log_max_dek), 16 },
};

static const struct cap ethernet[] = {
	{ I(per_protocol_networking_offload_caps, csum_cap), 1 },
	{ I(per_protocol_networking_offload_caps, vlan_cap), 1 },
	{ I(per_protocol_networking_offload_caps, max_lso_cap), 18 },
	{ I(per_protocol_networking_offload_caps, rss_ind_tbl_cap), 8 },
	{ I(per_protocol_networking_offload_caps, reg_umr_sq), 1 },
	{ I(per_protocol_networking_offload_caps, wqe_vlan_insert), 1 },
	{ I(per_protocol_networking_offload_caps, self_lb_en_modifiable), 1 },
};

static const struct cap flow_table[] = {
	{ I(flow_table_prop_layout, ft_support), 1 }, { I(flow_table_prop_layout, flow_counter), 1 },
	{ I(flow_table_prop_layout, flow_modify_en), 1 }, { I(flow_table_prop_layout, modify_root), 1 },
	{ I(flow_table_prop_layout, identified_miss_table_mode), 1 },
	{ I(flow_table_prop_layout, flow_table_modify), 1 }, { I(flow_table_prop_layout, log_max_ft_size), 20 },
	{ I(flow_table_prop_layout, max_ft_level), 64 }, { I(flow_table_prop_layout, log_max_ft_num), 10 },
	{ I(flow_table_prop_layout, log_max_flow_counter), 16 }, { I(flow_table_prop_layout, log_max_destination), 3 },
	{ I(flow_table_prop_layout, log_max_flow), 20 },
};

static void fill(struct view v, const struct cap *caps, size_t count)
{
	for (size_t i = 0; i < count; i++)
		set(v, caps[i].field, caps[i].value);
}

#define FILL(v, caps) fill(v, caps, sizeof(caps) / sizeof(*(caps)))

static void fill_general(const struct card *c, struct view v)
{
	FILL(v, general);
	set(v, F(cmd_hca_cap, vhca_id), (uint32_t)c->number + 1);
	set64(v, F(cmd_hca_cap, general_obj_types), 1ULL << OBJECT_DEK);
}

static void fill_flow_table(struct view v)
{
	struct view rx = view_at(v, F(flow_table_nic_cap, flow_table_properties_nic_receive));
	static const uint8_t all[4] = { 0xff, 0xff, 0xff, 0xff };

	set(v, F(flow_table_nic_cap, nic_rx_multi_path_tirs), 1);
	set(v, F(flow_table_nic_cap, nic_rx_multi_path_tirs_fts), 1);
	FILL(rx, flow_table);
	copy_in(rx, F(flow_table_prop_layout, ft_field_support).bit / 8, all, sizeof(all));
	copy_in(rx, F(flow_table_prop_layout, ft_field_bitmask_support).bit / 8, all, sizeof(all));
}

/* A kind that is not here is all zeros: the card can do nothing of it. */
void caps_fill(struct card *c, uint32_t type, struct view v)
{
	if (type == CAP_GENERAL) {
		fill_general(c, v);
	} else if (type == CAP_ETHERNET) {
		FILL(v, ethernet);
	} else if (type == CAP_FLOW_TABLE) {
		fill_flow_table(v);
	} else if (type == CAP_TLS) {
		set(v, F(tls_cap, tls_1_2_aes_gcm_128), 1);
		set(v, F(tls_cap, tls_1_2_aes_gcm_256), 1);
	}
}
