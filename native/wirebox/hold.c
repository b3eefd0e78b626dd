/* SPDX-License-Identifier: Apache-2.0 */
/* Frames that wait: for others to go first, or for a time. What cannot be held goes on at once and is counted. */
#include <stdlib.h>
#include <string.h>

#include "wirebox.h"

void hold(struct engine *e, int direction, const struct frame *f, struct held h)
{
	uint8_t *copy = NULL;

	if (e->held_count < HELD_MAX && e->held_bytes + f->len <= HELD_BYTES)
		copy = malloc(f->len);
	if (!copy) {
		e->count[direction].not_held++;
		e->send(e->to, direction, f->data, f->len);
		return;
	}
	memcpy(copy, f->data, f->len);
	h.data = copy;
	h.len = f->len;
	h.direction = direction;
	e->held_bytes += f->len;
	e->held[e->held_count++] = h;
}

static void let_go(struct engine *e, uint32_t i)
{
	struct held h = e->held[i];

	e->held_count--;
	memmove(&e->held[i], &e->held[i + 1], (e->held_count - i) * sizeof(h));
	e->held_bytes -= h.len;
	e->send(e->to, h.direction, h.data, h.len);
	free(h.data);
}

/* Send what waited for the frames that have gone by now, in the order in which it came. */
void hold_release(struct engine *e, int direction)
{
	for (uint32_t i = 0; i < e->held_count;) {
		const struct held *h = &e->held[i];

		if (h->direction == direction && h->chosen && h->after <= e->count[direction].tcp)
			let_go(e, i);
		else
			i++;
	}
}

static uint32_t earliest(const struct engine *e)
{
	uint32_t best = 0;

	for (uint32_t i = 1; i < e->held_count; i++)
		if (e->held[i].due < e->held[best].due)
			best = i;
	return best;
}

/* Send what is due by the clock; when the next one will be, or 0. */
uint64_t hold_due(struct engine *e)
{
	while (e->held_count) {
		uint32_t i = earliest(e);

		if (e->held[i].due > e->now)
			return e->held[i].due;
		if (e->held[i].chosen) {
			e->count[e->held[i].direction].late++;
			say_late(e, &e->held[i]);
		}
		let_go(e, i);
	}
	return 0;
}

/* Send everything: the end. */
void hold_flush(struct engine *e)
{
	while (e->held_count)
		let_go(e, 0);
}
