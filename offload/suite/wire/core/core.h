/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the native core share: the question, connections, streams, records, findings. */
#ifndef WIRE_CORE_H
#define WIRE_CORE_H

#include <pthread.h>
#include <stdatomic.h>

#include "frames/capture.h"
#include "secrets/crypt.h"
#include "secrets/keylog.h"

#define VERSION "0.1.0"

enum {
	CONNECTIONS_MAX = 65536, AHEAD_MAX = 65536, HANDSHAKE_MAX = 131072, RECORD_MAX = 16640, HEAD = 5,
	WINDOW = 131072, STRANGE = 1 << 30,
	CLEAR_MAX = 131072, EARLY = 1 << 18, /* of a direction: where clear records and segments of them end to begin */
	HELLO_BYTES_MAX = 64 << 20, /* of incomplete first messages, in all */
};
#ifdef WIRE_SMALL /* for a fuzzer, whose captures are too short for the others */
enum { REMEMBERED_MAX = 6, FLUSH_AT = 600 };
#else
enum {
	REMEMBERED_MAX = 1 << 22, /* segments, and ranges beyond a hole, in all */
	FLUSH_AT = 1 << 20, /* bytes to search */
};
#endif
enum { ALERT = 21, HANDSHAKE = 22, CHANGE_CIPHER = 20, APPLICATION = 23 };
enum side { CLIENT, SERVER };

struct question {
	struct bytes capture, keylog, payload, reply;
	int port; /* 0: all */
	bool checksums;
	bool mapped; /* the bytes are mapped files: pages may be given back */
	unsigned int threads;
};

enum problem_code {
	NO_HELLO, BAD_VERSION, BAD_CIPHER, NO_KEY, NO_SYN, SECOND_SYN, STRAY_DATA, CUT_SEGMENT, URGENT, SECOND_FIN,
	TOO_MUCH_REORDER, OLD_RETRANSMISSION, HANDSHAKE_TOO_LONG, CLEAR_ALERT, CLEAR_RECORD, CHANGE_CIPHER_SPEC,
	RENEGOTIATION, EARLY_DATA, GAP, RESET, NO_CLOSE, TAIL, DATA_AFTER_FIN, PAYLOAD_NOT_COVERED,
	CAPTURE_DAMAGED, TOO_MANY_CONNECTIONS, AMBIGUOUS_PAYLOAD, NO_TLS, UNREAD_TCP, PROBLEM_CODES,
};

/* Each code once, with the place where it was met first; in the order of the codes. */
struct problems {
	uint32_t mask;
	struct problem {
		struct problem *next;
		uint64_t at;
		uint8_t code;
	} *list;
};

/* ranges.c: stream bytes [off, off of the next range) are at `at` in the capture. */
struct range {
	uint64_t off;
	const uint8_t *at;
};

struct chunk {
	struct dir *owner;
	struct chunk *younger;
	uint32_t slot, count, room;
	struct range r[];
};

struct ranges {
	struct slot {
		uint64_t off;
		struct chunk *chunk; /* NULL: forgotten */
	} *slots;
	uint32_t count, room;
};

struct place {
	uint32_t slot, index;
};

/* ahead.c: what was captured beyond the end of the contiguous stream. */
struct held {
	uint64_t off;
	const uint8_t *at;
	uint32_t len;
};

struct block;
struct ahead {
	struct block **blocks;
	uint32_t count, room;
	uint32_t ranges;
};

/* A retransmission that differs from what was captured first. */
struct retransmission {
	uint64_t offset, frame, bits, bytes;
	uint8_t expected[16], got[16];
	uint8_t len;
	bool zeros;
};

enum diff_kind { DIFF_HEADER, DIFF_TYPE, DIFF_VERSION, DIFF_NONCE, DIFF_CONTENT, DIFF_MALFORMED, DIFF_EXCESS, DIFF_TRUNCATED,
		 DIFF_SHORT, DIFF_CLEAR };

/* A differing record, as far as it must be known to explain it when everything else is known. DIFF_CLEAR: `payload`,
 * `len` and `type` say from where in which source the needle is, and where in the body. */
struct diff {
	uint64_t record, seq, off, payload;
	struct epoch *epoch;
	uint64_t nonce_wanted;
	uint32_t epoch_number, len;
	uint8_t kind, type;
	bool compared, reused;
};

struct size_count {
	uint32_t size;
	uint64_t count;
};

/* Messages of a handshake in pieces: what is missing of the present one. odd: one was not `hello`, or the third. */
struct messages {
	uint8_t head[4];
	uint8_t have, hello;
	bool odd;
	uint32_t left, longest, count;
};

enum hello_state { HELLO_OPEN, HELLO_DONE, HELLO_BAD, HELLO_LONG };
enum phase { PHASE_CLEAR, PHASE_HANDSHAKE, PHASE_DATA };

struct dir {
	struct conn *conn;
	enum side side;
	bool based, fin, rst, ended, lost, close_notify, long_hello, late_hello;
	/* TCP */
	uint32_t base;
	uint64_t next, fin_at, data_end, acked; /* acked: 1 more than the offset; 0: not at all */
	struct ranges ranges;
	struct ahead ahead;
	uint64_t retransmissions, retransmitted, out_of_order, strange, cut;
	struct retransmission *resent;
	/* records */
	uint64_t pos, whole; /* the record at pos is not complete before `next` is there */
	struct place place;
	uint8_t hello, phase;
	uint8_t *message;
	uint32_t message_len, message_room;
	struct messages clear_messages, messages;
	uint64_t odd_at; /* the first record that completes an odd message in plaintext */
	uint8_t carried[15], carry; /* what a needle in the next handshake record may begin in */
	struct epoch *epoch;
	uint8_t *secret; /* TLS 1.3: of the present epoch */
	uint32_t epochs;
	uint64_t seq, nonce, nonces;
	uint64_t records, protected, app_records, app_bytes;
	struct size_count *sizes;
	uint32_t size_kinds, size_last;
	uint8_t nonce_first[8];
	/* what the checks found; under the pool's lock */
	uint64_t payload_bytes, authentic_bytes, proven, different;
	struct diff first;
	struct problems problems;
};

enum conn_state { UNDECIDED, KEYED, BLIND };

/* a is the one of the two endpoints that sorts first. */
struct pair {
	uint8_t a[16], b[16];
	uint16_t aport, bport;
	uint32_t alen;
};

struct leak {
	uint64_t frame, frames, payload;
	uint32_t at;
	uint8_t of; /* enum source */
};

struct conn {
	struct pair pair;
	bool client_is_a, listed, hopeless, has_payload, isn_known;
	uint8_t state, version;
	uint16_t suite;
	uint32_t isn;
	uint64_t first_frame;
	const struct suite *keys;
	uint8_t random[2][32];
	struct dir dir[2];
	struct leak leak[2]; /* which of them counts is known when it is: not listed, listed */
	struct problems problems;
};

/* needles.c */
enum { NEEDLE = 16 };
enum source { PAYLOAD, REPLY, SOURCES };

struct sieve {
	uint8_t *bits;
	uint64_t seed;
	unsigned int shift;
};

/* A smaller set, without hashing, that stays in the nearest cache with what is sealed: the first half of a window
 * answers for most, the second for nearly all of the others. */
enum { GATE_WORDS = 1024 };
struct gate {
	uint64_t first[GATE_WORDS], second[GATE_WORDS];
};

/* The windows that are looked for. */
struct wanted {
	struct sieve sieve;
	struct gate gate;
};

/* seen, list: of the needles that the reader came along, how many, and which of them may be wanted. */
struct needles {
	const uint8_t *payload;
	uint64_t step, count, seen;
	struct sieve sieve;
	uint32_t *table, mask;
	uint32_t *list, found, room;
};

/* canary.c: what waits to be searched. With a direction it is a clear record of it, else a part of a frame. */
struct part {
	struct conn *conn; /* NULL: counts in any case */
	struct dir *dir;
	uint64_t frame, off; /* of a record: its number, and where it is in the stream */
	uint32_t at, len; /* at: of a record, how many bytes before it were carried along */
	bool listed; /* counts if the connection is listed; or if it is not */
};

/* wanted: the windows of the first `frozen` bytes, which were there when the payload began. */
struct canary {
	bool on, ready;
	struct wanted wanted;
	size_t frozen;
	struct part *part;
	uint32_t parts, part_room;
	uint8_t *bytes;
	size_t len, room;
};

/* unread.c: between whom was something that may be TCP and cannot be read? */
struct unread {
	struct stranger {
		uint8_t a[16], b[16];
		uint64_t frame, alen;
	} *who;
	uint32_t count, room;
	uint32_t *index, mask;
};

struct pool;
struct wire {
	const struct question *q;
	bool use_payload, restart;
	struct reader reader;
	uint64_t tcp, other, fragments, bad_sums, truncated, not_tls;
	struct keylog keylog;
	uint64_t seed;
	struct conn **conns; /* in the order of their first frames */
	uint32_t conn_count, conn_room, listed;
	uint32_t *index, index_mask; /* pair -> newest connection, + 1 */
	struct conn *latest; /* that of the segment before; the newest of its pair */
	uint64_t remembered, held;
	struct chunk *oldest, *youngest;
	uint64_t hello_bytes;
	struct pool *pool;
	struct opener opener;
	struct needles needles[SOURCES];
	struct unread unread;
	struct canary canary;
	struct leak leak;
	struct problems problems;
	const uint8_t *dropped[4]; /* pages before these were given back */
};

static inline struct dir *peer_of(const struct dir *d)
{
	return &d->conn->dir[!d->side];
}

static inline const struct bytes *payload_of(const struct wire *w, const struct dir *d)
{
	return d->side == CLIENT ? &w->q->payload : &w->q->reply;
}

/* Is the application data of this direction compared with a payload? */
static inline bool compared(const struct wire *w, const struct dir *d)
{
	return w->use_payload && payload_of(w, d)->given;
}

/* problems.c */
void problem(struct problems *p, enum problem_code code, uint64_t at);
void problem_lower(struct problems *p, enum problem_code code, uint64_t at);
bool has_problem(const struct problems *p, enum problem_code code);
void problem_drop(struct problems *p, enum problem_code code);
void problems_free(struct problems *p);
const char *problem_name(enum problem_code code);

/* conns.c */
struct dir *conns_find(struct wire *w, const struct segment *s, uint64_t frame);
bool conns_selects(const struct wire *w, const struct segment *s);
void conns_free(struct wire *w);

/* ranges.c */
void ranges_append(struct wire *w, struct dir *d, uint64_t off, const uint8_t *at);
bool ranges_find(const struct dir *d, uint64_t off, struct place *p);
const uint8_t *ranges_at(const struct dir *d, struct place p, uint64_t off, size_t *len);
void ranges_step(const struct dir *d, struct place *p);
void ranges_free(struct dir *d);
size_t stream_copy(const struct dir *d, uint64_t off, uint8_t *out, size_t len);
void stream_skip(const struct dir *d, uint64_t *off, struct place *p, size_t n);
void stream_take(const struct dir *d, uint64_t off, struct place p, uint8_t *out, size_t len);

/* ahead.c */
const struct held *ahead_after(const struct ahead *a, uint64_t off);
void ahead_insert(struct ahead *a, const struct held *h);
bool ahead_pop(struct ahead *a, uint64_t off, struct held *h);
void ahead_free(struct ahead *a);

/* stream.c */
bool stream_add(struct wire *w, struct dir *d, const struct segment *s, const struct frame *f);

/* records.c, messages.c, hello.c */
struct record {
	uint8_t head[HEAD];
	uint32_t len;
	uint64_t off, number;
};
void records_run(struct wire *w, struct dir *d);
enum { FINISHED = 20, KEY_UPDATE = 24, SAW_FINISHED = 1, SAW_KEY_UPDATE = 2 };
int messages_read(struct messages *m, const uint8_t *at, size_t len);
void hello_feed(struct wire *w, struct dir *d, const struct record *r);
void hello_decide(struct wire *w, struct conn *c, bool at_end);

/* protected.c, tls12.c, tls13.c */
void protect12(struct wire *w, struct dir *d);
void protect13(struct wire *w, struct conn *c);
void record12(struct wire *w, struct dir *d, const struct record *r);
void record13(struct wire *w, struct dir *d, const struct record *r);
bool beyond_payload(const struct wire *w, const struct dir *d, const struct diff *f, uint32_t size);
void differs(struct wire *w, struct dir *d, const struct diff *f);
void differs_locked(struct dir *d, const struct diff *f);
struct diff diff_here(const struct wire *w, const struct dir *d, const struct record *r, enum diff_kind kind);
void count_app(struct dir *d, uint32_t size);
void count_right(struct wire *w, struct dir *d, uint32_t size, bool by_payload);
void new_epoch(struct dir *d, struct epoch *e);

/* pool.c, jobs.c, check.c */
enum { JOB_PAYLOAD = 1, JOB_KNOWN_BAD = 2 };
struct job {
	struct dir *dir;
	struct diff diff; /* what it would be, if it is one */
	uint32_t size; /* of the plaintext */
	uint8_t flags;
	bool right, close_notify;
	bool inner; /* TLS 1.3: one byte of type follows the plaintext */
	uint8_t explicit[8];
	const uint8_t *payload;
	struct needles *needles; /* look for those that are wanted, while the payload is in the cache */
	const struct wanted *wanted;
	uint32_t seen;
	uint32_t piece, pieces;
};

struct piece {
	const uint8_t *at;
	uint32_t len;
};

/* Needles [from, to), to be held against the wanted windows. */
struct span {
	struct needles *needles; /* NULL: none */
	const struct sieve *wanted;
	uint64_t from, to;
	bool drop; /* nobody else reads these pages soon */
};

enum { BATCH_JOBS = 16, BATCH_PIECES = 2048 };
struct batch {
	struct batch *next;
	struct span span;
	uint32_t jobs, pieces, piece_room;
	struct piece *piece;
	struct job job[BATCH_JOBS];
};

typedef void checker(struct pool *p, struct opener *o, struct batch *b);
struct pool *pool_new(unsigned int threads, checker *check);
void pool_free(struct pool *p);
struct batch *pool_filling(struct pool *p);
void pool_span(struct wire *w, const struct span *s);
void pool_flush(struct wire *w);
void pool_wait(struct wire *w);
void pool_lock(struct pool *p);
void pool_unlock(struct pool *p);
struct job *job_new(struct wire *w, const struct dir *d, size_t skip, size_t len);
checker check_batch;

/* needles.c */
void sieve_init(struct sieve *s, uint64_t windows, uint64_t seed);
void sieve_add(struct sieve *s, const uint8_t *at);
void gate_add(struct gate *g, const uint8_t *at);
void needles_measure(struct wire *w);
void needles_build(struct wire *w, enum source of, const struct sieve *wanted);
void needles_along(struct pool *p, struct job *j, size_t skip, size_t len);
void needles_span(struct pool *p, const struct span *s);
bool needles_find(const struct needles *n, const uint8_t *at, uint64_t *offset);
void needles_free(struct needles *n);

/* canary.c */
void canary_job(struct wire *w, struct job *j);
void canary_frame(struct wire *w, const struct frame *f);
void canary_segment(struct wire *w, const struct frame *f, const struct segment *s, const struct dir *d, bool laid);
bool canary_early(const struct segment *s, const struct dir *d);
void canary_record(struct wire *w, struct dir *d, const struct record *r, uint64_t off, bool handshake);
void canary_so_far(struct wire *w, struct dir *d);
void canary_finish(struct wire *w);
void canary_free(struct canary *c);

/* unread.c */
void unread_frame(struct wire *w, const struct frame *f);
void unread_finish(struct wire *w);
void unread_free(struct unread *u);

/* finish.c */
enum outcome { OUT_EQUAL, OUT_DIFFERENT, OUT_INCONCLUSIVE };
void finish_connections(struct wire *w);
enum outcome conn_outcome(const struct conn *c);
enum outcome capture_outcome(const struct wire *w);
bool dir_gap(const struct dir *d);

/* explain.c, content.c, framing.c */
struct finding {
	const char *field, *class;
	char detail[40];
	uint64_t at;
	uint8_t expected[16], got[16];
	uint8_t expected_len, got_len;
};
void explain(struct wire *w, const struct dir *d, struct finding *f);
const char *retransmission_class(const struct wire *w, const struct dir *d);

/* report.c */
void report(struct wire *w, struct text *t);

/* verify.c, pages.c */
int wire_verify(const struct question *q, struct text *out, struct failure *f);
enum pages { PAGES_CAPTURE, PAGES_CLIENT, PAGES_SERVER, PAGES_CANARY, PAGES };
bool pages_stay(const struct wire *w, uint64_t len);
void pages_done(const uint8_t *from, const uint8_t *to);
void pages_drop(struct wire *w, enum pages which, const uint8_t *start, const uint8_t *pos);

#endif
