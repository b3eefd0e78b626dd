/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of the guest: which parts of it the card may touch, and queues that lie in its pages. */
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "cx6.h"

#define RING_PAGES_MAX (1u << 20)

static bool overlaps(const struct range *r, uint64_t addr, uint64_t size)
{
	return addr < r->addr + r->size && r->addr < addr + size;
}

/* The file must have these bytes: touching what it lacks would kill us. A range without a file is only known. */
static uint8_t *map_file(int fd, uint64_t offset, uint64_t size)
{
	struct stat st;
	void *host;

	if (fstat(fd, &st) || offset > (uint64_t)st.st_size || size > (uint64_t)st.st_size - offset)
		return NULL;
	host = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)offset);
	return host == MAP_FAILED ? NULL : host;
}

bool guest_map(struct guest *g, uint64_t addr, uint64_t size, int fd, uint64_t offset)
{
	struct range r = { .addr = addr, .size = size };

	if (!size || size > UINT64_MAX - addr || g->count == RANGES_MAX)
		return false;
	for (uint32_t i = 0; i < g->count; i++)
		if (overlaps(&g->range[i], addr, size))
			return false;
	if (fd >= 0) {
		r.host = map_file(fd, offset, size);
		if (!r.host)
			return false;
	}
	g->range[g->count++] = r;
	return true;
}

static void drop(struct guest *g, uint32_t i)
{
	if (g->range[i].host)
		munmap(g->range[i].host, g->range[i].size);
	g->range[i] = g->range[--g->count];
}

/* Every range that lies wholly in these bytes. */
void guest_unmap(struct guest *g, uint64_t addr, uint64_t size)
{
	for (uint32_t i = g->count; i-- > 0;)
		if (g->range[i].addr >= addr && g->range[i].addr - addr < size &&
		    g->range[i].size <= size - (g->range[i].addr - addr))
			drop(g, i);
}

void guest_forget(struct guest *g)
{
	while (g->count)
		drop(g, g->count - 1);
}

/* Bytes of guest memory, or NULL where there are none, or not all of them in one range. */
void *guest_at(struct guest *g, uint64_t addr, uint64_t len)
{
	for (uint32_t i = 0; i < g->count; i++) {
		const struct range *r = &g->range[i];

		if (r->host && addr >= r->addr && addr - r->addr <= r->size && len <= r->size - (addr - r->addr))
			return r->host + (addr - r->addr);
	}
	return NULL;
}

/* A queue of this many bytes in the pages that a command lists. */
bool ring_make(struct ring *r, struct view pas, uint64_t bytes, uint32_t shift, uint32_t offset)
{
	uint64_t count;

	if (shift < 12 || shift > 31 || offset >= 1u << shift || bytes > 1ULL << 32)
		return false;
	count = (bytes + offset + (1ULL << shift) - 1) >> shift;
	if (!count || count > RING_PAGES_MAX || count * 8 > pas.len)
		return false;
	r->page = calloc(count, sizeof(*r->page));
	if (!r->page)
		return false;
	for (uint32_t i = 0; i < count; i++)
		r->page[i] = load64(pas.at + 8 * i) & ~0xfffULL;
	r->count = (uint32_t)count;
	r->shift = shift;
	r->offset = offset;
	return true;
}

/* Bytes of a queue; what is asked for never crosses a page of a queue that a driver makes. */
void *ring_at(struct guest *g, const struct ring *r, uint64_t at, uint32_t len)
{
	uint64_t page = (at + r->offset) >> r->shift, within = (at + r->offset) & ((1ULL << r->shift) - 1);

	if (page >= r->count || len > (1ULL << r->shift) - within)
		return NULL;
	return guest_at(g, r->page[page] + within, len);
}

void ring_free(struct ring *r)
{
	free(r->page);
	*r = (struct ring){ 0 };
}
