/* SPDX-License-Identifier: Apache-2.0 */
/* The card's PCI configuration space: a ConnectX-6 Dx with PCI Express, MSI-X and vendor-specific capabilities. */
#include "cx6.h"

enum { CAP_EXPRESS = 0x60, CAP_MSIX = 0x9c };

static void put16(struct card *c, uint32_t at, uint32_t v)
{
	c->config[at] = (uint8_t)v;
	c->config[at + 1] = (uint8_t)(v >> 8);
}

static void put32(struct card *c, uint32_t at, uint32_t v)
{
	put16(c, at, v);
	put16(c, at + 2, v >> 16);
}

/* Sixteen lanes of 16 GT/s, as far as a driver can see. */
static void express(struct card *c)
{
	c->config[CAP_EXPRESS] = 0x10;
	c->config[CAP_EXPRESS + 1] = CAP_MSIX;
	put16(c, CAP_EXPRESS + 2, 2);
	put32(c, CAP_EXPRESS + 4, 0x8002 | 1 << 28);
	put32(c, CAP_EXPRESS + 0x0c, 4 | 16 << 4);
	put16(c, CAP_EXPRESS + 0x12, 4 | 16 << 4);
	put32(c, CAP_EXPRESS + 0x24, 0x10);
	put32(c, CAP_EXPRESS + 0x2c, 0x1e);
}

void pci_init(struct card *c)
{
	memset(c->config, 0, sizeof(c->config));
	put16(c, 0x00, 0x15b3); /* Mellanox */
	put16(c, 0x02, 0x101d); /* ConnectX-6 Dx */
	put16(c, 0x06, 0x10); /* it has capabilities */
	c->config[0x0b] = 2; /* a network controller */
	put32(c, 0x10, 0xc); /* BAR0: 64 bits, prefetchable */
	put16(c, 0x2c, 0x15b3);
	put16(c, 0x2e, 0x0016);
	c->config[0x34] = CAP_EXPRESS;
	express(c);
	c->config[CAP_MSIX] = 0x11;
	c->config[CAP_MSIX + 1] = CAP_VSC;
	put16(c, CAP_MSIX + 2, VECTORS - 1);
	put32(c, CAP_MSIX + 4, 0x2000);
	put32(c, CAP_MSIX + 8, 0x3000);
	vsc_init(c);
}

/* QEMU keeps BARs and MSI-X itself; what it passes on is kept so that it reads back. */
void pci_write(struct card *c, uint32_t at, const uint8_t *data, uint32_t len)
{
	if (at >= CONFIG_SIZE || len > CONFIG_SIZE - at)
		return;
	memcpy(c->config + at, data, len);
	if (len == 4 && !(at & 3) && at > CAP_VSC && at < CAP_VSC + VSC_SIZE)
		vsc_write(c, at - CAP_VSC);
}
