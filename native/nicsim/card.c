// SPDX-License-Identifier: GPL-2.0-only
/*
 * The card that an adapter plays, from a word that card.py of the lab makes of a profile:
 * ID/tx:128:256:tls13:on/rx:128/drops-rules/COUNTER/COUNTER:NAME/...
 */
#include <linux/slab.h>
#include <linux/string.h>

#include "nicsim.h"

static const struct nicsim_stat nicsim_any_stats[] = {
	{ "rx_packets", CTR_RX_PACKETS },
	{ "rx_bytes", CTR_RX_BYTES },
	{ "tx_packets", CTR_TX_PACKETS },
	{ "tx_bytes", CTR_TX_BYTES },
};

static int nicsim_card_stat(struct nicsim_card *card, const char *name, enum nicsim_counter counter)
{
	if (card->n_stats == NICSIM_STATS) {
		pr_err("nicsim: %s has too many counters\n", card->name);
		return -ENOSPC;
	}
	card->stats[card->n_stats++] = (struct nicsim_stat){ name, counter };
	return 0;
}

/* One of the model's own, unless the card has it under that name already. */
static int nicsim_card_own(struct nicsim_card *card, const char *name, enum nicsim_counter counter)
{
	unsigned int i;

	for (i = 0; i < card->n_stats; i++) {
		if (!strcmp(card->stats[i].name, name))
			return 0;
	}
	return nicsim_card_stat(card, name, counter);
}

/* tx:128:256:on */
static int nicsim_card_direction(struct nicsim_card *card, char *options, netdev_features_t feature,
				 u32 *keys)
{
	char *option;

	card->offered |= feature;
	while ((option = strsep(&options, ":"))) {
		if (!strcmp(option, "on"))
			card->initial |= feature;
		else if (!strcmp(option, "128"))
			*keys |= NICSIM_KEY_128;
		else if (!strcmp(option, "256"))
			*keys |= NICSIM_KEY_256;
		else if (!strcmp(option, "tls13"))
			*keys |= NICSIM_TLS_13;
		else
			return -EINVAL;
	}
	return 0;
}

/* NAME, NAME:KERNEL'S NAME, NAME:0, or sim_*: all that only a model knows. */
static int nicsim_card_counter(struct nicsim_card *card, const char *name, const char *counts)
{
	int counter;

	if (!strcmp(name, "sim_*"))
		return nicsim_model_stats(card, nicsim_card_own);
	counter = counts && !strcmp(counts, "0") ? CTR_DEAD : nicsim_counter(counts ?: name);
	/* A name of the driver's own that the model does not know is shown, and never moves. */
	if (counter < 0 && counts)
		return -EINVAL;
	return nicsim_card_stat(card, name, counter < 0 ? CTR_DEAD : counter);
}

static int nicsim_card_word(struct nicsim_card *card, char *word)
{
	char *name = strsep(&word, ":");

	if (!strcmp(name, "tx"))
		return nicsim_card_direction(card, word, NETIF_F_HW_TLS_TX, &card->tx_keys);
	if (!strcmp(name, "rx"))
		return nicsim_card_direction(card, word, NETIF_F_HW_TLS_RX, &card->rx_keys);
	if (!strcmp(name, "drops-rules"))
		card->off_drops_rules = true;
	else if (!strcmp(name, "no-resync-behind-options"))
		card->no_options = true;
	else
		return nicsim_card_counter(card, name, word);
	return 0;
}

int nicsim_card_init(struct nicsim_card *card, const char *said)
{
	char *rest, *word;
	unsigned int i;
	int err = 0;

	card->said = kstrdup(said, GFP_KERNEL);
	if (!card->said)
		return -ENOMEM;
	rest = card->said;
	card->name = strsep(&rest, "/");
	for (i = 0; i < ARRAY_SIZE(nicsim_any_stats) && !err; i++)
		err = nicsim_card_stat(card, nicsim_any_stats[i].name, nicsim_any_stats[i].counter);
	while (!err && (word = strsep(&rest, "/"))) {
		err = nicsim_card_word(card, word);
		if (err)
			pr_err("nicsim: %s: unknown part '%s'\n", card->name, word);
	}
	if (err)
		nicsim_card_exit(card);
	return err;
}

void nicsim_card_exit(struct nicsim_card *card)
{
	kfree(card->said);
	card->said = NULL;
}
