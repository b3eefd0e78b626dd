/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of cx6sim share: guest memory, the card's objects, and the way of a frame through it. */
#ifndef CX6_H
#define CX6_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bits.h"
#include "layout.h"

#define CARDS_MAX 4
#define VECTORS 16
#define BAR_SIZE (32u << 20)
#define CONFIG_SIZE 4096
#define SEMAPHORES 64
#define BOARD "SIM0000000015" /* at most 15 characters */
#define TOOL_BOX 1024 /* bytes of the mailbox for programs such as mstflint */
#define RANGES_MAX 64
#define FRAME_MAX 66000 /* a TSO frame: 64 KiB of IP, Ethernet and VLAN headers */
#define MAILBOX_MAX (1u << 20) /* bytes of a command: far above the longest that mlx5_core sends */
#define PAGES_MAX 65536
#define MATCH_WORDS 64 /* fte_match_param in 64-bit words */

/* state/guest.c: memory of the guest that it gave us */
struct range {
	uint64_t addr, size;
	uint8_t *host;
};

struct guest {
	struct range range[RANGES_MAX];
	uint32_t count;
};

bool guest_map(struct guest *g, uint64_t addr, uint64_t size, int fd, uint64_t offset);
void guest_unmap(struct guest *g, uint64_t addr, uint64_t size);
void guest_forget(struct guest *g);
void *guest_at(struct guest *g, uint64_t addr, uint64_t len);

/* A queue in guest memory: pages of 1 << shift bytes. */
struct ring {
	uint64_t *page;
	uint32_t count, shift, offset;
};

bool ring_make(struct ring *r, struct view pas, uint64_t bytes, uint32_t shift, uint32_t offset);
void *ring_at(struct guest *g, const struct ring *r, uint64_t at, uint32_t len);
void ring_free(struct ring *r);

/* state/objects.c: what the driver made on the card, by kind and number */
enum kind {
	KIND_UAR, KIND_PD, KIND_TD, KIND_MKEY, KIND_EQ, KIND_CQ, KIND_SQ, KIND_RQ, KIND_TIS, KIND_TIR, KIND_RQT,
	KIND_TABLE, KIND_GROUP, KIND_DEK, KIND_QCOUNTER, KIND_COUNTER, KINDS
};

struct shelf {
	void **slot;
	uint32_t count, next, used;
};

struct eq {
	uint32_t number;
	struct ring ring;
	uint32_t log_size, made, seen, vector;
	uint64_t mask[4];
	bool armed;
};

struct cq {
	uint32_t number;
	struct ring ring;
	uint32_t log_size, made, eq;
	bool armed;
};

enum { QUEUE_RESET, QUEUE_READY, QUEUE_ERROR = 3 };

struct sq {
	uint32_t number, cq, state, log_size;
	struct ring ring;
	uint64_t doorbell;
	uint16_t at;
};

struct rq {
	uint32_t number, cq, state, log_size, log_stride;
	struct ring ring;
	uint64_t doorbell;
	uint16_t at;
	bool striding, strips_vlan;
	uint32_t strides, stride_size, current, used; /* of a striding queue: the block and how much of it is used */
};

struct mkey {
	uint32_t number;
	uint64_t *page;
	uint32_t count, shift;
};

struct dek {
	uint32_t number, size;
	uint8_t key[32];
};

/* state/record.c: AES-GCM over a stream of TLS 1.2 records, any piece at a time */
struct record {
	void *cipher; /* EVP_CIPHER_CTX */
	uint8_t salt[4], head[13], number[8], tag[16];
	uint32_t at, size; /* bytes done of the record; of its payload, with nonce and tag */
	bool sealing;
};

enum rx_state { RX_IN_STEP, RX_SEARCHING, RX_TRACKING, RX_CONFIRMED, RX_FAILED };

struct tls {
	bool on;
	uint8_t key[32];
	uint8_t first[8]; /* initial_record_number */
	struct record record;
	uint32_t next; /* TCP sequence number that comes next */
	bool open_start; /* the next SEND or DUMP tells where the stream begins */
	bool again; /* what comes next was sent before */
	uint64_t used; /* when it last sent, as the card counts; 0: never since its parameters came */
	enum rx_state state;
	uint32_t found, follow, resync; /* header found at, the next one is at, what the driver confirms */
	uint64_t passed; /* headers seen since `found` */
	uint8_t part[5];
	uint32_t have;
};

struct tis {
	uint32_t number;
	struct tls tls;
};

struct tir {
	uint32_t number, rq, rqt, takes_own, fields;
	bool tls_en, symmetric;
	uint8_t hash_key[40];
	struct tls tls;
};

struct rqt {
	uint32_t number, count, rq[256];
};

enum target { TARGET_TABLE = 1, TARGET_TIR = 2 };

#define ENTRY_TARGETS 8
struct entry {
	uint32_t index, group, tag, action, targets, counter;
	struct {
		uint32_t type, id;
	} target[ENTRY_TARGETS];
	uint64_t value[MATCH_WORDS];
};

struct group {
	uint32_t number, table, words;
	uint8_t word[MATCH_WORDS]; /* those that the mask has bits in */
	uint64_t mask[MATCH_WORDS];
};

struct table {
	uint32_t number, miss;
	bool miss_goes_on;
	struct entry *entry; /* by index */
	uint32_t count, room;
};

struct counter {
	uint32_t number;
	uint64_t frames, bytes;
};

/* state/faults.c: what a bad card does; a knob of 0 is off, N: every Nth time */
enum fault {
	FAULT_TX_DROP, FAULT_TX_REORDER, FAULT_TX_TWICE, FAULT_TX_SUM, FAULT_TX_TAG, FAULT_TX_NONCE, FAULT_TX_SALT,
	FAULT_TX_FORGET, FAULT_TX_CACHE, FAULT_TX_LEAK, FAULT_TX_AGAIN, FAULT_TX_PAGE, FAULT_TX_ERROR, FAULT_RX_DROP,
	FAULT_RX_NO_RULE, FAULT_RX_NO_ROOM, FAULT_RX_FALSE_ERROR, FAULT_RX_FALSE_OPENED, FAULT_RX_FALSE_TAG, FAULT_RX_BYTE, FAULT_RX_FORGET,
	FAULT_RX_NO_RESYNC, FAULT_RX_NUMBER, FAULT_RX_NO_ANSWER, FAULT_RX_ANSWER, FAULT_IRQ, FAULT_COMMAND, FAULT_DELAY, FAULT_TIMEOUT, FAULT_KEY,
	FAULT_HALF_KEY, FAULT_NO_KEY, FAULT_NO_STREAM, FAULT_HEALTH, FAULTS
};

struct knob {
	uint64_t every, seen, hit;
};

/* What the card knows of its own work; control.c tells it. */
struct truth {
	uint64_t commands, unknown, doorbells, interrupts;
	uint64_t tx_frames, tx_bytes, rx_frames, rx_bytes, rx_no_table, rx_no_buffer, rx_bad_checksum, own_frames;
	uint64_t sealed, tx_tls_frames, tx_tls_bytes, tx_out_of_sync, dumps, dumps_over_page;
	uint64_t opened, rx_tls_frames, rx_tls_bytes, tags_failed, searches, found, confirmed, psv;
};

/* What went over the cable, as a port counts it: not what goes round within the card. */
#define FRAME_SIZES 10
#define FCS 4u /* bytes of the checksum at a frame's end, which RFC 2819 counts, and the model does not carry */
struct moved {
	uint64_t frames, bytes, multicast, broadcast;
};
struct cable {
	struct moved sent, came;
	uint64_t sizes[FRAME_SIZES]; /* of what came */
	uint32_t downs;
};

struct card {
	int number;
	struct card *far_end;
	struct guest guest;
	int vector[VECTORS];
	uint32_t pending; /* interrupts that had no event file yet, a bit for each vector */
	uint8_t config[CONFIG_SIZE];
	uint32_t vsc_counter, vsc_owner, semaphore[SEMAPHORES], tool_control;
	uint8_t tool_box[TOOL_BOX];
	struct shelf shelf[KINDS];
	uint64_t command_queue;
	uint32_t command_high, nic_state;
	uint64_t *pages;
	uint32_t page_count, issi;
	uint8_t mac[6], capabilities[4096];
	bool capabilities_set, link, link_wanted;
	uint32_t mtu, root[8], pause, speeds, autoneg_off;
	uint8_t syndrome;
	uint32_t looks; /* at the health counter */
	uint32_t commands_held; /* doorbells of slow commands, which run when it is `commands_due` */
	uint64_t commands_due;
	uint8_t *held; /* a frame that lets the next one pass */
	uint32_t held_len;
	struct knob fault[FAULTS];
	uint64_t uses; /* of TLS streams that send */
	struct truth truth;
	struct cable cable;
};

void *object_make(struct card *c, enum kind kind, uint32_t *number);
void *object_find(struct card *c, enum kind kind, uint32_t number);
void *object_next(struct card *c, enum kind kind, uint32_t *number);
bool object_drop(struct card *c, enum kind kind, uint32_t number);
void objects_drop_all(struct card *c);

/* pci/card.c */
void card_init(struct card *c, int number);
void card_reset(struct card *c);

/* state/log.c */
extern int log_level; /* 0: what goes wrong; 1: objects; 2: every command */
void say(const struct card *c, int level, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* state/clock.c */
uint64_t nanoseconds(void);

/* state/irq.c */
void irq_set(struct card *c, uint32_t vector, int fd);
void irq_raise(struct card *c, uint32_t vector);

/* state/event.c */
enum { EVENT_COMPLETION = 0x00, EVENT_PORT = 0x09, EVENT_COMMAND = 0x0a };
void event_post(struct card *c, struct eq *eq, uint8_t type, uint8_t subtype, const uint8_t *data, uint32_t len);
void event_say(struct card *c, uint8_t type, uint8_t subtype, const uint8_t *data, uint32_t len);
bool event_heard(struct card *c, uint8_t type);
void eq_doorbell(struct card *c, uint32_t value, bool arm);
void cq_doorbell(struct card *c, uint32_t value, uint32_t number);
void completion(struct card *c, uint32_t cq, const uint8_t entry[static 64], uint8_t opcode);

/* pci/vfio.c: one message of the protocol */
#define MESSAGE_MAX (1u << 16)
#define FDS_MAX 32
struct message {
	uint16_t id, command;
	uint32_t flags;
	const uint8_t *body;
	uint32_t len;
	int *fd; /* that came with it; -1: taken */
	uint32_t fds;
};

/* The answer is written to `out`, header included; its length, 0 for none. */
uint32_t vfio_handle(struct card *c, struct message *m, uint8_t out[static MESSAGE_MAX]);

/* pci/server.c: the socket of a card */
struct server {
	int listener, fd;
	uint8_t in[2 * MESSAGE_MAX], out[MESSAGE_MAX];
	uint32_t len;
	int fds[FDS_MAX];
	uint32_t fd_count;
};

bool server_listen(struct server *s, const char *path);
bool server_accept(struct server *s, struct card *c);
bool server_serve(struct server *s, struct card *c);
void server_close(struct server *s, struct card *c);

/* pci/pci.c, pci/vsc.c, pci/tool.c, pci/segment.c, pci/registers.c */
enum { UARS = 0x20000 }; /* where the doorbell pages begin */
enum { CAP_VSC = 0xc0, VSC_SIZE = 0x18 };
enum { FW_MAJOR = 22, FW_MINOR = 41, FW_SUB = 1000, HW_ID = 0x212 };
void pci_init(struct card *c);
void pci_write(struct card *c, uint32_t at, const uint8_t *data, uint32_t len);
void vsc_init(struct card *c);
void vsc_write(struct card *c, uint32_t at);
bool tool_read(struct card *c, uint32_t at, uint32_t *value);
bool tool_write(struct card *c, uint32_t at, uint32_t value);
void bar_read(struct card *c, uint64_t at, uint8_t *data, uint32_t len);
void bar_write(struct card *c, uint64_t at, const uint8_t *data, uint32_t len);

/* commands/command.c: the firmware's commands */
enum status {
	ST_OK = 0, ST_INTERNAL = 1, ST_BAD_OP = 2, ST_BAD_PARAM = 3, ST_BAD_STATE = 4, ST_BAD_RESOURCE = 5,
	ST_LIMIT = 8, ST_NO_RESOURCES = 0xf, ST_BAD_INPUT = 0x50
};

struct command {
	struct view in, out;
	uint16_t op, mod;
};

struct verb {
	uint16_t op;
	const char *name;
	enum status (*run)(struct card *c, const struct command *cmd);
};

extern const struct verb setup_verbs[], queue_verbs[], resource_verbs[], flow_verbs[], port_verbs[];
void command_doorbell(struct card *c, uint32_t vector);
int commands_wait(const struct card *c); /* milliseconds until slow ones must run; -1: there are none */
void commands_run_slow(struct card *c);
enum status command_run(struct card *c, const struct command *cmd);
void caps_fill(struct card *c, uint32_t type, struct view v);
bool firmware_register(const struct card *c, uint32_t id, bool write, struct view out, bool *known);
void counter_register(const struct card *c, struct view out);
enum status ask_vport_counter(struct card *c, const struct command *cmd);
enum status register_access(struct card *c, uint32_t id, bool write, struct view in, struct view out, bool *known);

/* frames/frame.c: headers and checksums */
struct frame {
	uint8_t *data;
	uint32_t len;
	uint32_t l3, l4, payload, end; /* where they begin; 0: none. `end`: of the IP packet */
	uint8_t version, protocol; /* of IP; 6 or 17, else 0 */
	uint16_t ethertype, vlan;
	bool tagged, fragment;
};

void frame_parse(struct frame *f, uint8_t *data, uint32_t len);
void frame_skip_options(struct frame *f);
uint32_t sum_add(const uint8_t *p, uint32_t len, uint32_t sum);
uint16_t sum_fold(uint32_t sum);
bool frame_l4_right(const struct frame *f);
void frame_fill_sums(const struct frame *f, bool l3, bool l4);

/* frames/tx.c, frames/send.c, tls/tls_tx.c */
struct wqe {
	uint8_t byte[1024];
	uint32_t len; /* that the WQE says of itself */
	uint32_t opcode, modifier, target;
};

void sq_doorbell(struct card *c, uint32_t number);
void tx_parse(struct wqe *w);
bool tx_execute(struct card *c, const struct wqe *w);
bool send_frame(struct card *c, const struct wqe *w, bool tso);
bool send_dump(struct card *c, const struct wqe *w);
bool tls_tx(struct card *c, uint32_t tis, struct frame *f, uint32_t mss);
void tls_dump(struct card *c, uint32_t tis, uint8_t *data, uint32_t len, uint32_t in_page);

/* tls/tls_wqe.c: the parameters of a TLS stream */
void tls_static(struct card *c, const struct wqe *w, bool tx);
void tls_progress(struct card *c, const struct wqe *w, bool tx);
void tls_ask(struct card *c, const struct wqe *w);

/* state/record.c */
bool record_key(struct record *r, const uint8_t *key, uint32_t size, bool sealing);
int record_run(struct card *c, struct record *r, uint8_t *data, uint32_t len);
bool record_head_right(const uint8_t head[static 5]);
void record_free(struct record *r);

/* frames/cable.c, frames/wire.c, frames/steer.c, frames/rx.c, frames/rx_complete.c, frames/stride.c, tls/tls_rx.c */
enum rx_mark { MARK_NONE, MARK_DECRYPTED, MARK_RESYNC, MARK_ERROR };
struct arrival {
	struct frame *frame;
	uint32_t tag, hash;
	bool sums_right;
	enum rx_mark mark;
};

void cable_count(struct card *from, struct card *to, const uint8_t *data, uint32_t len);
void wire_send(struct card *c, uint8_t *data, uint32_t len);
void wire_forget(struct card *c);
void link_settle(struct card *c);
void steer(struct card *c, uint8_t *data, uint32_t len, bool own);
uint32_t rss_hash(const struct frame *f, const struct tir *t);
void rx_deliver(struct card *c, uint32_t rq, const struct arrival *a);
void rx_complete(struct card *c, struct rq *q, const struct arrival *a, uint32_t bytes, uint16_t id, uint16_t counter);
void stride_deliver(struct card *c, struct rq *q, uint16_t posted, const struct arrival *a);
enum rx_mark tls_rx(struct card *c, struct tls *t, struct frame *f);

/* state/faults.c */
bool fault_hit(struct card *c, enum fault fault);
uint64_t fault_value(struct card *c, enum fault fault); /* of a knob that is a number, not how often */
const char *fault_name(enum fault fault);
bool fault_set(struct card *c, const char *name, uint64_t every);

/* control/request.c: a line of the control socket */
struct request {
	uint64_t card, every;
	char fault[32];
	bool has_card, has_every, has_fault;
};

const char *request_read(const char *line, struct request *r); /* NULL, or what is wrong with it */

/* control/truth.c, control/control.c */
uint32_t truth_tell(struct card *c, char *out, uint32_t room);

struct control {
	int listener, fd;
	char line[512];
	uint32_t len;
};

bool control_listen(struct control *k, const char *path);
int control_fd(const struct control *k);
void control_serve(struct control *k, struct card *cards, uint32_t count);
uint32_t control_line(struct card *cards, uint32_t count, const char *line, char *out, uint32_t room);

#endif
