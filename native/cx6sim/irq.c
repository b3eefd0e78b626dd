/* SPDX-License-Identifier: Apache-2.0 */
/* Interrupts: an event file of the guest's machine for each MSI-X vector. */
#include <unistd.h>

#include "cx6.h"

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
}

void irq_raise(struct card *c, uint32_t vector)
{
	uint64_t one = 1;

	if (vector >= VECTORS || c->vector[vector] < 0 || fault_hit(c, FAULT_IRQ))
		return;
	c->truth.interrupts++;
	if (write(c->vector[vector], &one, sizeof(one)) != (ssize_t)sizeof(one))
		say(c, 0, "interrupt %u is lost", vector);
}
