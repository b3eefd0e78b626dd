/* SPDX-License-Identifier: Apache-2.0 */
/* What the driver made on the card: objects by kind and number. */
#include <stdlib.h>

#include <openssl/crypto.h>

#include "cx6.h"

struct shape {
	size_t size;
	uint32_t first, limit;
};

/*
 * UARs begin behind the page of the initialization segment; an EQ's number has eight bits. A memory key of number 1
 * would be 0x100 to the driver, which it takes for "no key", and 5 and 6 are the keys of QUERY_SPECIAL_CONTEXTS.
 */
static const struct shape shapes[KINDS] = {
	[KIND_UAR] = { sizeof(uint32_t), 0x20, 0x1000 }, [KIND_PD] = { sizeof(uint32_t), 1, 1 << 16 },
	[KIND_TD] = { sizeof(uint32_t), 1, 1 << 16 }, [KIND_MKEY] = { sizeof(struct mkey), 0x10, 1 << 16 },
	[KIND_EQ] = { sizeof(struct eq), 1, 64 }, [KIND_CQ] = { sizeof(struct cq), 1, 1 << 12 },
	[KIND_SQ] = { sizeof(struct sq), 1, 1 << 12 }, [KIND_RQ] = { sizeof(struct rq), 1, 1 << 12 },
	[KIND_TIS] = { sizeof(struct tis), 1, 1 << 16 }, [KIND_TIR] = { sizeof(struct tir), 1, 1 << 16 },
	[KIND_RQT] = { sizeof(struct rqt), 1, 1 << 12 }, [KIND_TABLE] = { sizeof(struct table), 1, 1 << 12 },
	[KIND_GROUP] = { sizeof(struct group), 1, 1 << 14 }, [KIND_DEK] = { sizeof(struct dek), 1, 1 << 16 },
	[KIND_QCOUNTER] = { sizeof(uint32_t), 1, 255 }, [KIND_COUNTER] = { sizeof(struct counter), 1, 1 << 16 },
};

static bool grow(struct shelf *s)
{
	uint32_t count = s->count ? s->count * 2 : 64;
	void **slot = realloc(s->slot, count * sizeof(*slot));

	if (!slot)
		return false;
	memset(slot + s->count, 0, (count - s->count) * sizeof(*slot));
	s->slot = slot;
	s->count = count;
	return true;
}

/* The first slot that is free, or the number of slots. */
static uint32_t free_slot(const struct shelf *s)
{
	for (uint32_t i = s->next; i < s->count; i++)
		if (!s->slot[i])
			return i;
	return s->count;
}

/* A new object, all zeros; every kind begins with its own number. NULL if the card has no room for one more. */
void *object_make(struct card *c, enum kind kind, uint32_t *number)
{
	struct shelf *s = &c->shelf[kind];
	uint32_t i = free_slot(s);
	void *made;

	if (i + shapes[kind].first >= shapes[kind].limit || (i == s->count && !grow(s)))
		return NULL;
	made = calloc(1, shapes[kind].size);
	if (!made)
		return NULL;
	s->slot[i] = made;
	s->next = i + 1;
	s->used++;
	*number = i + shapes[kind].first;
	memcpy(made, number, sizeof(*number));
	return made;
}

static void **slot_of(struct card *c, enum kind kind, uint32_t number)
{
	uint32_t i = number - shapes[kind].first;

	return number >= shapes[kind].first && i < c->shelf[kind].count ? &c->shelf[kind].slot[i] : NULL;
}

void *object_find(struct card *c, enum kind kind, uint32_t number)
{
	void **slot = slot_of(c, kind, number);

	return slot ? *slot : NULL;
}

/* The first object from *number on, and the number behind it; NULL at the end. Begin with 0. */
void *object_next(struct card *c, enum kind kind, uint32_t *number)
{
	uint32_t last = c->shelf[kind].count + shapes[kind].first;

	while (*number < last) {
		void *found = object_find(c, kind, (*number)++);

		if (found)
			return found;
	}
	return NULL;
}

static void empty(enum kind kind, void *object)
{
	if (kind == KIND_EQ)
		ring_free(&((struct eq *)object)->ring);
	else if (kind == KIND_CQ)
		ring_free(&((struct cq *)object)->ring);
	else if (kind == KIND_SQ)
		ring_free(&((struct sq *)object)->ring);
	else if (kind == KIND_RQ)
		ring_free(&((struct rq *)object)->ring);
	else if (kind == KIND_TIS)
		record_free(&((struct tis *)object)->tls.record);
	else if (kind == KIND_TIR)
		record_free(&((struct tir *)object)->tls.record);
	else if (kind == KIND_MKEY)
		free(((struct mkey *)object)->page);
	else if (kind == KIND_TABLE)
		free(((struct table *)object)->entry);
	OPENSSL_cleanse(object, shapes[kind].size);
	free(object);
}

/* False if there is no such object. */
bool object_drop(struct card *c, enum kind kind, uint32_t number)
{
	void **slot = slot_of(c, kind, number);

	if (!slot || !*slot)
		return false;
	empty(kind, *slot);
	*slot = NULL;
	c->shelf[kind].used--;
	if (number - shapes[kind].first < c->shelf[kind].next)
		c->shelf[kind].next = number - shapes[kind].first;
	return true;
}

void objects_drop_all(struct card *c)
{
	for (int kind = 0; kind < KINDS; kind++) {
		for (uint32_t i = 0; i < c->shelf[kind].count; i++)
			object_drop(c, (enum kind)kind, i + shapes[kind].first);
		free(c->shelf[kind].slot);
		c->shelf[kind] = (struct shelf){ 0 };
	}
}
