/* SPDX-License-Identifier: Apache-2.0 */
/* A card as it is after power-on and after a reset of its function. */
#include <stdlib.h>

#include "cx6.h"

void card_init(struct card *c, int number)
{
	static const uint8_t mac[6] = { 0x0c, 0x42, 0xa1, 0, 0, 0 };

	*c = (struct card){ .number = number, .mtu = 1522 };
	memcpy(c->mac, mac, sizeof(mac));
	c->mac[5] = (uint8_t)(number + 1);
	for (int i = 0; i < VECTORS; i++)
		c->vector[i] = -1;
	pci_init(c);
}

/* The link goes down, all objects go, the firmware starts again. Interrupts and guest memory belong to the bus. */
void card_reset(struct card *c)
{
	objects_drop_all(c);
	wire_forget(c);
	free(c->pages);
	c->pages = NULL;
	c->page_count = c->issi = 0;
	c->command_queue = 0;
	c->command_high = c->nic_state = 0;
	c->capabilities_set = c->link = c->link_wanted = false;
	c->syndrome = 0;
	c->vsc_owner = 0;
	memset(c->semaphore, 0, sizeof(c->semaphore));
	c->pending = c->commands_held = 0;
	c->mtu = 1522;
	c->speeds = c->pause = c->autoneg_off = 0;
	memset(c->root, 0, sizeof(c->root));
	pci_init(c);
	link_settle(c);
}
