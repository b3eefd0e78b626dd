/* SPDX-License-Identifier: Apache-2.0 */
/* The vfio-user protocol, one message at a time: QEMU's docs/interop/vfio-user.rst; every length is checked. */
#include <errno.h>
#include <linux/vfio.h>
#include <unistd.h>

#include "cx6.h"

enum { VERSION = 1, DMA_MAP, DMA_UNMAP, DEVICE_INFO, REGION_INFO, REGION_IO_FDS, IRQ_INFO, SET_IRQS, REGION_READ,
       REGION_WRITE, DEVICE_RESET = 13 };
enum { FLAG_REPLY = 1, FLAG_NO_REPLY = 0x10, FLAG_ERROR = 0x20 };
#define HEADER 16u
#define ACCESS_MAX 4096u

struct dma {
	uint32_t argsz, flags;
	uint64_t offset, addr, size;
};

struct undma {
	uint32_t argsz, flags;
	uint64_t addr, size;
};

struct access {
	uint64_t offset;
	uint32_t region, count;
};

static const char abilities[] = "{\"capabilities\":{\"max_msg_fds\":16,\"max_data_xfer_size\":4096,"
				"\"pgsizes\":4096,\"max_dma_maps\":64}}";

/* The fixed part of a message. False if it is shorter. */
static bool take(const struct message *m, void *to, uint32_t len)
{
	if (m->len < len)
		return false;
	memcpy(to, m->body, len);
	return true;
}

static int take_fd(struct message *m)
{
	for (uint32_t i = 0; i < m->fds; i++) {
		int fd = m->fd[i];

		if (fd >= 0) {
			m->fd[i] = -1;
			return fd;
		}
	}
	return -1;
}

/* Each answer returns the length of its body, or a negative error number. */
static int version(const struct message *m, uint8_t *body)
{
	uint16_t theirs[2];

	if (!take(m, theirs, sizeof(theirs)) || theirs[0] != 0)
		return -EINVAL;
	memcpy(body, theirs, sizeof(theirs));
	memcpy(body + sizeof(theirs), abilities, sizeof(abilities));
	return (int)(sizeof(theirs) + sizeof(abilities));
}

static int dma_map(struct card *c, struct message *m)
{
	struct dma d;
	bool done;
	int fd;

	if (!take(m, &d, sizeof(d)))
		return -EINVAL;
	fd = take_fd(m);
	done = guest_map(&c->guest, d.addr, d.size, fd, d.offset);
	if (fd >= 0)
		close(fd);
	return done ? 0 : -EINVAL;
}

static int dma_unmap(struct card *c, const struct message *m, uint8_t *body)
{
	struct undma d;

	if (!take(m, &d, sizeof(d)))
		return -EINVAL;
	if (d.flags & VFIO_DMA_UNMAP_FLAG_ALL)
		guest_forget(&c->guest);
	else
		guest_unmap(&c->guest, d.addr, d.size);
	memcpy(body, &d, sizeof(d));
	return (int)sizeof(d);
}

static int device_info(uint8_t *body)
{
	struct vfio_device_info i = { .argsz = 16, .flags = VFIO_DEVICE_FLAGS_PCI | VFIO_DEVICE_FLAGS_RESET,
				      .num_regions = VFIO_PCI_NUM_REGIONS, .num_irqs = VFIO_PCI_NUM_IRQS };

	memcpy(body, &i, 16);
	return 16;
}

static int region_info(const struct message *m, uint8_t *body)
{
	struct vfio_region_info r;

	if (!take(m, &r, sizeof(r)) || r.index >= VFIO_PCI_NUM_REGIONS)
		return -EINVAL;
	r = (struct vfio_region_info){ .argsz = sizeof(r), .index = r.index };
	if (r.index == VFIO_PCI_BAR0_REGION_INDEX)
		r.size = BAR_SIZE;
	else if (r.index == VFIO_PCI_CONFIG_REGION_INDEX)
		r.size = CONFIG_SIZE;
	if (r.size)
		r.flags = VFIO_REGION_INFO_FLAG_READ | VFIO_REGION_INFO_FLAG_WRITE;
	memcpy(body, &r, sizeof(r));
	return (int)sizeof(r);
}

static int irq_info(const struct message *m, uint8_t *body)
{
	struct vfio_irq_info i;

	if (!take(m, &i, sizeof(i)) || i.index >= VFIO_PCI_NUM_IRQS)
		return -EINVAL;
	i = (struct vfio_irq_info){ .argsz = sizeof(i), .index = i.index };
	if (i.index == VFIO_PCI_MSIX_IRQ_INDEX) {
		i.flags = VFIO_IRQ_INFO_EVENTFD | VFIO_IRQ_INFO_NORESIZE;
		i.count = VECTORS;
	}
	memcpy(body, &i, sizeof(i));
	return (int)sizeof(i);
}

/* Vectors from `start` on get the event files that came along, or lose theirs; none at all: every vector does. */
static int set_irqs(struct card *c, struct message *m)
{
	struct vfio_irq_set s;
	uint32_t size = offsetof(struct vfio_irq_set, data);

	if (!take(m, &s, size))
		return -EINVAL;
	if (s.index != VFIO_PCI_MSIX_IRQ_INDEX || !(s.flags & VFIO_IRQ_SET_ACTION_TRIGGER))
		return 0;
	if (s.start > VECTORS || s.count > VECTORS - s.start)
		return -EINVAL;
	if (!s.count)
		for (uint32_t i = 0; i < VECTORS; i++)
			irq_set(c, i, -1);
	for (uint32_t i = 0; i < s.count; i++)
		irq_set(c, s.start + i, s.flags & VFIO_IRQ_SET_DATA_EVENTFD ? take_fd(m) : -1);
	return 0;
}

static int region_read(struct card *c, const struct message *m, uint8_t *body)
{
	struct access a;

	if (!take(m, &a, sizeof(a)) || a.count > ACCESS_MAX)
		return -EINVAL;
	memcpy(body, &a, sizeof(a));
	memset(body + sizeof(a), 0, a.count);
	if (a.region == VFIO_PCI_CONFIG_REGION_INDEX && a.offset < CONFIG_SIZE && a.count <= CONFIG_SIZE - a.offset)
		memcpy(body + sizeof(a), c->config + a.offset, a.count);
	else if (a.region == VFIO_PCI_BAR0_REGION_INDEX && a.offset < BAR_SIZE && a.count <= BAR_SIZE - a.offset)
		bar_read(c, a.offset, body + sizeof(a), a.count);
	else
		return -EINVAL;
	return (int)(sizeof(a) + a.count);
}

static int region_write(struct card *c, const struct message *m, uint8_t *body)
{
	struct access a;
	const uint8_t *data = m->body + sizeof(a);

	if (!take(m, &a, sizeof(a)) || a.count > ACCESS_MAX || a.count > m->len - sizeof(a))
		return -EINVAL;
	memcpy(body, &a, sizeof(a));
	if (a.region == VFIO_PCI_CONFIG_REGION_INDEX && a.offset < CONFIG_SIZE && a.count <= CONFIG_SIZE - a.offset)
		pci_write(c, (uint32_t)a.offset, data, a.count);
	else if (a.region == VFIO_PCI_BAR0_REGION_INDEX && a.offset < BAR_SIZE && a.count <= BAR_SIZE - a.offset)
		bar_write(c, a.offset, data, a.count);
	else
		return -EINVAL;
	return (int)sizeof(a);
}

static int answer(struct card *c, struct message *m, uint8_t *body)
{
	switch (m->command) {
	case VERSION:
		return version(m, body);
	case DMA_MAP:
		return dma_map(c, m);
	case DMA_UNMAP:
		return dma_unmap(c, m, body);
	case DEVICE_INFO:
		return device_info(body);
	case REGION_INFO:
		return region_info(m, body);
	case IRQ_INFO:
		return irq_info(m, body);
	case SET_IRQS:
		return set_irqs(c, m);
	case REGION_READ:
		return region_read(c, m, body);
	case REGION_WRITE:
		return region_write(c, m, body);
	case DEVICE_RESET:
		card_reset(c);
		return 0;
	}
	return -ENOTSUP;
}

uint32_t vfio_handle(struct card *c, struct message *m, uint8_t out[static MESSAGE_MAX])
{
	int got = answer(c, m, out + HEADER);
	uint32_t len = HEADER + (got > 0 ? (uint32_t)got : 0), flags = FLAG_REPLY | (got < 0 ? FLAG_ERROR : 0);
	uint32_t error = got < 0 ? (uint32_t)-got : 0;

	if (got < 0)
		say(c, 1, "refused message %u (%u bytes) of QEMU: errno %u", m->command, m->len, error);
	if (m->flags & FLAG_NO_REPLY)
		return 0;
	memcpy(out, &m->id, 2);
	memcpy(out + 2, &m->command, 2);
	memcpy(out + 4, &len, 4);
	memcpy(out + 8, &flags, 4);
	memcpy(out + 12, &error, 4);
	return len;
}
