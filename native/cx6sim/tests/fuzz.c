/* SPDX-License-Identifier: Apache-2.0 */
/* A hostile guest for libFuzzer: TARGET is fuzz_messages, fuzz_commands, fuzz_wqes, fuzz_window or fuzz_lines; one program for each. */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../cx6.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
void fuzz_messages(const uint8_t *data, uint32_t size);
void fuzz_commands(const uint8_t *data, uint32_t size);
void fuzz_wqes(const uint8_t *data, uint32_t size);
void fuzz_window(const uint8_t *data, uint32_t size);
void fuzz_lines(const uint8_t *data, uint32_t size);

#define MEMORY 65536u
#define BASE 0x10000u
static struct card cards[2];

static uint32_t take(const uint8_t **data, uint32_t *size, uint32_t bytes)
{
	uint32_t v = 0;

	for (uint32_t i = 0; i < bytes && *size; i++, (*size)--)
		v = v << 8 | *(*data)++;
	return v;
}

static void begin(void)
{
	log_level = -1;
	for (int i = 0; i < 2; i++) {
		card_init(&cards[i], i);
		cards[i].far_end = &cards[!i];
		cards[i].link = true;
	}
}

static void end(void)
{
	for (int i = 0; i < 2; i++) {
		card_reset(&cards[i]);
		guest_forget(&cards[i].guest);
		for (int v = 0; v < VECTORS; v++)
			irq_set(&cards[i], (uint32_t)v, -1);
	}
}

/* Guest memory that holds the input, so that queues and mailboxes have something in them. */
static void map_input(struct card *c, const uint8_t *data, uint32_t size)
{
	static int fd = -1;
	uint8_t page[MEMORY] = { 0 };

	if (fd < 0)
		fd = memfd_create("guest", 0);
	memcpy(page, data, size < MEMORY ? size : MEMORY);
	if (ftruncate(fd, MEMORY) || pwrite(fd, page, MEMORY, 0) != MEMORY || !guest_map(&c->guest, BASE, MEMORY, fd, 0))
		abort();
}

/* Each message: its command, its flags, its length, its body in a buffer of just that size. */
void fuzz_messages(const uint8_t *data, uint32_t size)
{
	static uint8_t out[MESSAGE_MAX];

	map_input(&cards[0], data, size);
	while (size > 4) {
		struct message m = { .command = (uint16_t)(take(&data, &size, 1) % 16), .flags = take(&data, &size, 1) };
		uint32_t len = take(&data, &size, 1);
		int fds[2] = { -1, -1 };
		uint8_t *body;

		m.len = len < size ? len : size;
		body = malloc(m.len + !m.len);
		if (!body)
			return;
		memcpy(body, data, m.len);
		if (m.flags & 2)
			fds[0] = dup(0);
		m.body = body;
		m.fd = fds;
		m.fds = 2;
		vfio_handle(&cards[0], &m, out);
		for (int i = 0; i < 2; i++)
			if (fds[i] >= 0)
				close(fds[i]);
		free(body);
		data += m.len;
		size -= m.len;
	}
}

/* Each command: its number of those that there are, modifier, lengths; the rest of its mailbox is what follows. */
void fuzz_commands(const uint8_t *data, uint32_t size)
{
	static const struct verb *const tables[] = { setup_verbs, queue_verbs, resource_verbs, flow_verbs, port_verbs };

	map_input(&cards[0], data, size);
	for (int turn = 0; size > 6 && turn < 64; turn++) {
		const struct verb *v = tables[take(&data, &size, 1) % 5];
		uint32_t skip = take(&data, &size, 1) % 24, mod = take(&data, &size, 1), in, out, part;
		struct command cmd = { .mod = (uint16_t)mod };

		while (skip-- && v[1].name)
			v++;
		in = 16 + take(&data, &size, 2) % 5000;
		out = 16 + take(&data, &size, 1) * 33;
		cmd.op = v->name ? v->op : (uint16_t)take(&data, &size, 2);
		cmd.in = (struct view){ calloc(1, in), in };
		cmd.out = (struct view){ calloc(1, out), out };
		if (!cmd.in.at || !cmd.out.at)
			abort();
		part = size < in - 8 ? size : in - 8;
		memcpy(cmd.in.at + 8, data, part);
		command_run(&cards[0], &cmd);
		free(cmd.in.at);
		free(cmd.out.at);
		data += part / 4;
		size -= part / 4;
	}
	for (uint32_t at = 0; at < 4; at++)
		sq_doorbell(&cards[0], at);
}

/* A stream with a key for each side, and a way from the root to a receive queue for whatever is sent. */
static void furnish(struct card *c)
{
	static const uint8_t key[32];
	uint32_t n;
	struct dek *dek = object_make(c, KIND_DEK, &n);
	struct tis *tis = object_make(c, KIND_TIS, &n);
	struct tir *tir = object_make(c, KIND_TIR, &n);
	struct table *t = object_make(c, KIND_TABLE, &n);
	struct group *g = object_make(c, KIND_GROUP, &n);
	struct rq *rq = object_make(c, KIND_RQ, &n);
	struct mkey *mkey = object_make(c, KIND_MKEY, &n);

	dek->size = 16;
	tir->tls_en = true;
	tir->rq = rq->number;
	tir->tls.on = tis->tls.on = tis->tls.open_start = true;
	record_key(&tir->tls.record, key, 16, false);
	record_key(&tis->tls.record, key, 16, true);
	g->table = t->number;
	t->entry = calloc(1, sizeof(*t->entry));
	t->entry[0] = (struct entry){ .group = g->number, .action = 4, .targets = 1, .target = { { 2, tir->number } } };
	t->count = t->room = 1;
	c->root[0] = t->number;
	rq->state = QUEUE_READY;
	rq->log_stride = 6;
	rq->log_size = 2;
	rq->doorbell = BASE;
	mkey->page = calloc(16, 8);
	mkey->count = 16;
}

/* Each WQE is 192 bytes of the input, which is guest memory as well; addresses of four bytes lead there often. */
void fuzz_wqes(const uint8_t *data, uint32_t size)
{
	static uint8_t pas[8] = { 0, 0, 0, 0, 0, 1, 0, 0 };

	for (int i = 0; i < 2; i++) {
		map_input(&cards[i], data, size);
		furnish(&cards[i]);
		ring_make(&((struct rq *)object_find(&cards[i], KIND_RQ, 1))->ring, (struct view){ pas, 8 }, 256, 12, 0);
	}
	while (size >= 16) {
		uint32_t part = size < 192 ? size : 192;
		struct wqe w;

		memset(&w, 0, sizeof(w));
		memcpy(w.byte, data, part);
		tx_parse(&w);
		tx_execute(&cards[0], &w);
		data += part;
		size -= part;
	}
}

/* One write of a word to the vendor-specific capability. */
static void window(uint32_t at, uint32_t value)
{
	uint8_t word[4] = { (uint8_t)value, (uint8_t)(value >> 8), (uint8_t)(value >> 16), (uint8_t)(value >> 24) };

	pci_write(&cards[0], CAP_VSC + at, word, sizeof(word));
}

/* A word of the mailbox for registers, or what runs it. */
static void window_word(uint32_t at, uint32_t value)
{
	window(0x04, 3);
	window(0x14, value);
	window(0x10, 1u << 31 | at);
}

/* Each step: any word of the capability, a word of the mailbox, which register it asks for, or that it runs. */
void fuzz_window(const uint8_t *data, uint32_t size)
{
	static const uint16_t group[] = { 0x9000, 0x9040, 0x5000, 0x5040 };

	map_input(&cards[0], data, size);
	while (size) {
		uint32_t step = take(&data, &size, 1), value = take(&data, &size, step & 1 ? 4 : 2);

		if (step % 8 < 3)
			window((step >> 3) % 6 * 4, value);
		else if (step % 8 < 5)
			window_word(0x100000 + (step >> 3) * 4, value);
		else if (step % 8 == 5)
			window_word(0x100004, (uint32_t)(group[value & 3] | (value >> 2 & 63)) << 16 | (step >> 3 & 3) << 8);
		else if (step % 8 == 6)
			window_word(0x100010, value << 16);
		else
			window_word(0, 0x90010001);
	}
}

/* Lines of the control socket, each in a buffer of just its size; what it changes stays for the next one. */
void fuzz_lines(const uint8_t *data, uint32_t size)
{
	char out[4096];

	while (size) {
		const uint8_t *end = memchr(data, '\n', size);
		uint32_t len = end ? (uint32_t)(end - data) : size;
		char *line = strndup((const char *)data, len);
		uint32_t said;

		if (!line)
			abort();
		said = control_line(cards, 2, line, out, sizeof(out));
		if (!said || said >= sizeof(out) || out[0] != '{' || strcmp(out + said - 2, "}\n"))
			abort();
		free(line);
		len += end != NULL;
		data += len;
		size -= len;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	begin();
	TARGET(data, (uint32_t)size);
	end();
	return 0;
}
