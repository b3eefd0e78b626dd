// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the model counts, and under which names the kernel and its drivers know it.
 */
#include <linux/seq_file.h>

#include "nicsim.h"

/* The minimum set of Documentation/networking/tls-offload.rst, then what only a model knows. */
static const struct nicsim_stat nicsim_own_stats[] = {
	{ "rx_packets", CTR_RX_PACKETS },
	{ "rx_bytes", CTR_RX_BYTES },
	{ "tx_packets", CTR_TX_PACKETS },
	{ "tx_bytes", CTR_TX_BYTES },
	{ "rx_tls_decrypted_packets", CTR_RX_TLS_PACKETS },
	{ "rx_tls_decrypted_bytes", CTR_RX_TLS_BYTES },
	{ "rx_tls_ctx", CTR_RX_TLS_CTX },
	{ "rx_tls_del", CTR_RX_TLS_DEL },
	{ "rx_tls_resync_req_pkt", CTR_RX_TLS_REQ_PKT },
	{ "rx_tls_resync_req_start", CTR_RX_TLS_REQ_START },
	{ "rx_tls_resync_req_end", CTR_RX_TLS_REQ_END },
	{ "rx_tls_resync_req_skip", CTR_RX_TLS_REQ_SKIP },
	{ "rx_tls_resync_res_ok", CTR_RX_TLS_RES_OK },
	{ "rx_tls_resync_res_skip", CTR_RX_TLS_RES_SKIP },
	{ "rx_tls_err", CTR_RX_TLS_ERR },
	{ "tx_tls_encrypted_packets", CTR_TX_TLS_PACKETS },
	{ "tx_tls_encrypted_bytes", CTR_TX_TLS_BYTES },
	{ "tx_tls_ctx", CTR_TX_TLS_CTX },
	{ "tx_tls_ooo", CTR_TX_TLS_OOO },
	{ "tx_tls_skip_no_sync_data", CTR_TX_TLS_SKIP_NO_SYNC },
	{ "tx_tls_drop_no_sync_data", CTR_TX_TLS_DROP_NO_SYNC },
	{ "tx_tls_drop_bypass_req", CTR_DEAD },
	{ "sim_tx_tls_del", CTR_TX_TLS_DEL },
	{ "sim_no_space", CTR_SIM_NO_SPACE },
	{ "sim_tx_dump_packets", CTR_TX_TLS_DUMP_PACKETS },
	{ "sim_tx_dump_bytes", CTR_TX_TLS_DUMP_BYTES },
	{ "sim_refused", CTR_SIM_REFUSED },
	{ "sim_tx_stalled", CTR_SIM_TX_STALLED },
	{ "sim_rx_gaps", CTR_SIM_RX_GAPS },
	{ "sim_rx_hops", CTR_SIM_RX_HOPS },
	{ "sim_rx_lost", CTR_SIM_RX_LOST },
	{ "sim_rx_old", CTR_SIM_RX_OLD },
	{ "sim_rx_bad_csum", CTR_SIM_RX_BAD_CSUM },
	{ "sim_rx_bad_tags", CTR_SIM_RX_BAD_TAGS },
	{ "sim_wire_dropped", CTR_SIM_WIRE_DROPPED },
	{ "sim_wire_flipped", CTR_SIM_WIRE_FLIPPED },
};

/* Names that some drivers have beyond those: mlx5, nfp. */
static const struct nicsim_stat nicsim_driver_stats[] = {
	{ "tx_tls_del", CTR_TX_TLS_DEL },
	{ "tx_tls_dump_packets", CTR_TX_TLS_DUMP_PACKETS },
	{ "tx_tls_dump_bytes", CTR_TX_TLS_DUMP_BYTES },
	{ "tx_tls_pool_alloc", CTR_TX_TLS_CTX },
	{ "tx_tls_pool_free", CTR_TX_TLS_DEL },
	{ "hw_tls_no_space", CTR_SIM_NO_SPACE },
};

static int nicsim_find(const struct nicsim_stat *stats, unsigned int n, const char *name)
{
	unsigned int i;

	for (i = 0; i < n; i++) {
		if (!strcmp(stats[i].name, name))
			return stats[i].counter;
	}
	return -ENOENT;
}

/* What a name counts; negative for one that the model does not know. */
int nicsim_counter(const char *name)
{
	int found = nicsim_find(nicsim_own_stats, ARRAY_SIZE(nicsim_own_stats), name);

	return found >= 0 ? found :
			    nicsim_find(nicsim_driver_stats, ARRAY_SIZE(nicsim_driver_stats), name);
}

/* Give a card all that only a model knows. */
int nicsim_model_stats(struct nicsim_card *card, nicsim_give_t give)
{
	unsigned int i;
	int err = 0;

	for (i = 0; i < ARRAY_SIZE(nicsim_own_stats) && !err; i++) {
		if (!strncmp(nicsim_own_stats[i].name, "sim_", 4))
			err = give(card, nicsim_own_stats[i].name, nicsim_own_stats[i].counter);
	}
	return err;
}

/* mlx5's names (en_accel/ipsec_stats.c), shown after the others while the card has ESP. */
static const struct nicsim_stat nicsim_ipsec_stats[] = {
	{ "ipsec_rx_pkts", CTR_ESP_RX_PACKETS },
	{ "ipsec_rx_bytes", CTR_ESP_RX_BYTES },
	{ "ipsec_rx_drop_pkts", CTR_ESP_RX_DROP_PACKETS },
	{ "ipsec_rx_drop_bytes", CTR_ESP_RX_DROP_BYTES },
	{ "ipsec_tx_pkts", CTR_ESP_TX_PACKETS },
	{ "ipsec_tx_bytes", CTR_ESP_TX_BYTES },
	{ "ipsec_tx_drop_pkts", CTR_ESP_TX_DROP_PACKETS },
	{ "ipsec_tx_drop_bytes", CTR_ESP_TX_DROP_BYTES },
	{ "ipsec_rx_drop_sp_alloc", CTR_ESP_RX_SP_ALLOC },
	{ "ipsec_rx_drop_sadb_miss", CTR_DEAD },
	{ "ipsec_tx_drop_bundle", CTR_ESP_TX_BUNDLE },
	{ "ipsec_tx_drop_no_state", CTR_ESP_TX_NO_STATE },
	{ "ipsec_tx_drop_not_ip", CTR_ESP_TX_NOT_IP },
	{ "ipsec_tx_drop_trailer", CTR_ESP_TX_TRAILER },
};

const struct nicsim_stat *nicsim_esp_stats(const struct nicsim *ns, unsigned int *n)
{
	*n = READ_ONCE(ns->knobs.esp) ? ARRAY_SIZE(nicsim_ipsec_stats) : 0;
	return nicsim_ipsec_stats;
}

/* All that the model counts, whatever the personality shows. */
void nicsim_show_counters(struct nicsim *ns, struct seq_file *m)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(nicsim_own_stats); i++)
		seq_printf(m, "%s %lld\n", nicsim_own_stats[i].name,
			   atomic64_read(&ns->counters[nicsim_own_stats[i].counter]));
	seq_printf(m, "sim_contexts %d\n", atomic_read(&ns->contexts));
	seq_printf(m, "sim_fired %lld\n", atomic64_read(&ns->fault.fired));
}
