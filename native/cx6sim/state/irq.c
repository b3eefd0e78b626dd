/* SPDX-License-Identifier: Apache-2.0 */
/* Interrupts: an event file of the guest's machine for each MSI-X vector. */
#include <unistd.h>

#include "cx6.h"

static void send_irq(struct card *c, uint32_t vector)
{
	uint64_t one = 1;

	c->truth.interrupts++;
	if (write(c->vector[vector], &one, sizeof(one)) != (ssize_t)sizeof(one))
		say(c, 0, "interrupt %u not delivered: QEMU did not accept it", vector);
}

/* QEMU takes all files away and brings them again when it enables one vector more: what comes meanwhile waits. */
void irq_set(struct card *c, uint32_t vector, int fd)
{
	if (vector >= VECTORS) {
		if (fd >= 0)
			close(fd);
		return;
	}
	if (c->vector[vector] >= 0)
		close(c->vector[vector]);
	c->vector[vector] = fd;
	if (fd >= 0 && c->pending >> vector & 1) {
		c->pending &= ~(1u << vector);
		send_irq(c, vector);
	}
}

void irq_raise(struct card *c, uint32_t vector)
{
	if (vector >= VECTORS)
		return;
	if (c->vector[vector] >= 0)
		send_irq(c, vector);
	else
		c->pending |= 1u << vector;
}
