/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of wirebox share: frames, rules, flows, and the engine between the two ports. */
#ifndef WIREBOX_H
#define WIREBOX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FRAME_MAX 65600 /* 64 KiB of IP under an Ethernet header with two VLAN tags */
#define RULES_MAX 32
#define LINE_MAX_LEN 256
#define ERROR_MAX 400
#define HELD_MAX 1024
#define HELD_BYTES (16u << 20)
#ifndef HOLD_NS
#define HOLD_NS 500000000ULL /* a frame whose followers never come is sent on after this */
#endif
#ifndef LINES_MAX
#define LINES_MAX 65536 /* of actions; more are only counted */
#endif

#define TCP_FIN 0x01
#define TCP_SYN 0x02
#define TCP_PSH 0x08
#define TCP_ACK 0x10
#define TCP_CWR 0x80

enum { RC_OK, RC_BROKEN, RC_USAGE, RC_NO_DEVICE, RC_NO_PERMISSION };
enum { A_TO_B, B_TO_A, DIRECTIONS };

struct end {
	uint8_t addr[16];
	uint16_t port;
};

/* A frame as on the cable; the offsets are from its first byte. */
struct frame {
	uint8_t *data;
	uint32_t len;
	uint8_t family; /* 4 or 6: whole TCP over IP; 0: something else */
	uint8_t flags;
	uint32_t l3, l4, at; /* IP header, TCP header, TCP payload */
	uint32_t size; /* TCP payload */
	uint32_t seq;
	struct end src, dst;
};

/* frame.c */
bool frame_parse(uint8_t *data, uint32_t len, struct frame *f);
void frame_checksum(struct frame *f);
bool frame_mark(const struct frame *f);
bool frame_finish(uint8_t *data, uint32_t len, uint32_t start, uint32_t offset);
uint32_t frame_cut(const struct frame *f, uint32_t size, uint32_t i, uint8_t *out);

enum where { AT_HEADER, AT_INSIDE, AT_TAG, AT_FIRST, AT_LAST, AT_OFFSET, AT_FRAME };
enum action { ACT_DROP, ACT_DELAY, ACT_DUPLICATE, ACT_FLIP, ACT_MARK };

/* Acts on one exact frame of each flow, and on that frame's next retransmissions if `times` > 1. */
struct rule {
	uint32_t id;
	uint8_t direction;
	uint16_t port; /* at either end; 0: any */
	enum where where;
	bool app; /* `number` counts records of application data, not all records */
	uint64_t number;
	enum action action;
	uint32_t behind; /* ACT_DELAY: this number of frames goes first */
	bool has_at, repair;
	int32_t at; /* ACT_FLIP: byte of the TCP payload, negative: from its end */
	uint8_t bit;
	uint32_t times;
};

/* Chance for every TCP frame of a direction; shares in parts per million. */
struct impairment {
	uint32_t id; /* 0: fair */
	uint16_t port;
	uint64_t seed;
	uint32_t loss, duplicate, reorder, corrupt;
	uint32_t depth, jitter_us;
	bool repair;
	uint64_t frames; /* that it has decided on */
};

struct rules {
	struct rule rule[RULES_MAX];
	uint32_t count, last_id;
	uint64_t seed; /* of a rule that names none */
	struct impairment impairment[DIRECTIONS];
};

enum command_kind { CMD_NOTHING, CMD_RULE, CMD_IMPAIR, CMD_CLEAR };

struct command {
	enum command_kind kind;
	struct rule rule;
	struct impairment impairment;
	bool to[DIRECTIONS], seeded;
};

/* words.c, rules.c */
struct words {
	char text[LINE_MAX_LEN + 1];
	char *word[LINE_MAX_LEN / 2 + 1];
	uint32_t count, next;
	char *error;
};

bool words_split(struct words *w, const char *line, char *error);
bool words_wrong(struct words *w, const char *what);
const char *words_take(struct words *w);
bool words_if(struct words *w, const char *word);
bool words_number(struct words *w, const char *what, uint64_t min, uint64_t max, uint64_t *out);
bool words_signed(struct words *w, const char *what, int64_t limit, int32_t *out);
bool words_percent(struct words *w, const char *what, uint32_t *ppm);
bool words_end(struct words *w);
bool rules_parse(const char *line, struct command *c, char error[static ERROR_MAX]);
bool rules_apply(struct rules *r, const struct command *c, char error[static ERROR_MAX]);

/* Where a rule aims in one flow. */
struct aim {
	uint32_t rule; /* id; another one: not aimed yet */
	uint32_t fired;
	uint8_t state;
	uint64_t target, end; /* AIM_SET: byte `target`; AIM_WINDOW: a frame within [target, end) */
	uint64_t record;
};

enum { AIM_NONE, AIM_WINDOW, AIM_SET };
#define NO_RECORD UINT64_MAX

/* One direction of a flow: where its TLS records begin, as far as every byte was seen in order. */
struct track {
	bool known, not_tls;
	uint32_t base; /* sequence number of stream offset 0 */
	uint64_t next; /* end of the stream seen without a gap */
	uint64_t record, record_at, record_end; /* of the record that is under way or comes next */
	uint64_t app, ccs; /* records of application data before; number of ChangeCipherSpec */
	uint64_t frames, top; /* data frames that brought something new; the highest offset */
	uint8_t head[5];
	uint32_t have;
};

struct flow {
	bool used;
	uint64_t touched;
	struct end a, b;
	struct track track[DIRECTIONS];
	struct aim aim[RULES_MAX];
};

#define FLOW_SETS 128
#define FLOW_WAYS 8

struct flows {
	struct flow flow[FLOW_SETS][FLOW_WAYS];
	uint64_t clock, seen, unknown; /* connections whose SYN was seen; frames of others */
	uint64_t gaps; /* frames that came before bytes that had not come */
	bool join; /* a connection whose SYN was not seen begins with its first frame, at a record */
};

/* What a data frame is in its flow. */
struct place {
	struct flow *flow;
	struct track *track;
	uint64_t start, end; /* stream offsets; FIN counts as one byte at the end */
	uint64_t record; /* that holds `start`; NO_RECORD if that is not known any more */
};

/* flow.c, aim.c */
bool flow_place(struct flows *fs, struct rules *r, int direction, const struct frame *f, struct place *p);
const struct rule *flow_match(struct rules *r, int direction, const struct place *p, struct aim **aim);
bool rule_has_port(uint16_t port, const struct end *a, const struct end *b);
void aim_record_begins(struct flow *f, struct rules *r, int direction, uint8_t type);
void aim_record_known(struct flow *f, struct rules *r, int direction, uint8_t type);
void aim_frame(struct flow *f, struct rules *r, int direction, const struct place *p, bool fresh, bool fin);

struct counts {
	uint64_t frames, bytes, tcp, cut; /* taken in; `cut`: frames that were larger than the cable takes */
	uint64_t dropped, duplicated, delayed, flipped, marked, jittered;
	uint64_t late, not_held; /* delayed: sent by the clock; could not be held */
	uint64_t sent, too_big, failed; /* given out */
	uint64_t missed; /* that the kernel lost before we took them */
	uint64_t gaps; /* that came before bytes which had not come */
};

struct held {
	uint8_t *data;
	uint32_t len;
	uint32_t rule;
	int direction;
	bool chosen; /* waits for frames; the clock is only its last resort */
	uint64_t frame, order, after, due; /* number; sequence; frame number to follow; nanoseconds */
};

struct engine {
	struct rules rules;
	struct flows flows;
	struct counts count[DIRECTIONS];
	struct held held[HELD_MAX];
	uint32_t held_count;
	uint64_t held_bytes, order, actions;
	uint64_t now; /* monotonic nanoseconds; the caller keeps it */
	void (*send)(void *to, int direction, const uint8_t *data, uint32_t len);
	void *to;
};

/* engine.c, hold.c */
void engine_take(struct engine *e, int direction, uint8_t *data, uint32_t len);
void engine_cut(struct engine *e, int direction, uint8_t *data, uint32_t len, uint32_t size);
uint64_t chance_roll(uint64_t seed, int direction, uint64_t frame, int what);
void hold(struct engine *e, int direction, const struct frame *f, struct held h);
void hold_release(struct engine *e, int direction);
uint64_t hold_due(struct engine *e);
void hold_flush(struct engine *e);

/* What was done to a frame, for the line that says so. */
struct deed {
	uint32_t rule;
	int direction;
	const struct frame *frame;
	const struct place *place; /* NULL: no data, or a flow whose beginning was not seen */
	const char *action;
	uint64_t number, record, target;
	uint32_t behind, time; /* `time`: how often the rule has acted in this flow; 0 for random impairment */
	bool flip, repair;
	int32_t at;
	uint8_t bit;
};

/* say.c */
const char *direction_name(int direction);
void say_ready(void);
void say_added(uint32_t id, const char *line);
void say_error(uint32_t line, const char *error, const char *text);
void say_deed(struct engine *e, const struct deed *d);
void say_late(struct engine *e, const struct held *h);
void say_summary(struct engine *e);
void complain(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* port.c */
struct port {
	const char *name;
	int fd, index;
	bool out; /* of its bridge, by us */
};

int port_open(struct port *p, const char *name, const char *bridge);
bool port_put_back(struct port *p, const char *bridge);
bool port_exists(const struct port *p);
bool port_listen(struct port *p);

/* traffic.c */
struct box;
struct box *box_new(struct port ports[static DIRECTIONS], struct engine *e);
int box_take(struct box *b, int from);
void box_flush(struct box *b);
void box_close(struct box *b);

#endif
