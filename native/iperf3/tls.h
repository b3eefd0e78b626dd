/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of iperf3-tls share: options, the deal of one test, streams, failures; and what libiperf exports. */
#ifndef IPERF3_TLS_H
#define IPERF3_TLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <openssl/ssl.h>

#define PATTERN_SIZE (1 << 20) /* bytes after which the payload of --tls-verify-payload repeats */
#define RECORD_MAX 16384       /* RFC 8446 section 5.1 */
#define TLS_READY 77           /* our byte on the control connection: the server will do TLS; no state of iperf3 */

/* One exit code per cause; README.md documents them. 1 is any other error of iperf3. */
enum exit_code { RC_OK, RC_IPERF, RC_HANDSHAKE, RC_KTLS, RC_NOT_HERE, RC_PEER, RC_PAYLOAD };

/* Numbers above those of libiperf; they travel in SERVER_ERROR messages, so they never change their meaning. */
enum cause {
	C_NONE, C_PEER_OLD = 900, C_PEER_WANTS_TLS, C_PARAMETERS, C_HANDSHAKE, C_KTLS, C_NOT_HERE, C_PAYLOAD,
	C_RECORD, C_INTERNAL, C_END,
};

enum { KTLS_TX = 1, KTLS_RX = 2, KTLS_REQUIRE = 4 };

struct options {
	bool tls, verify;
	int version; /* 12, 13, or 0: not said */
	int ktls; /* KTLS_*, or -1: not said */
	long record_size; /* bytes, or 0: not said */
	const char *ciphers, *cert, *key, *ca;
	const char *given; /* the first option of ours, for messages; NULL: none was given */
	bool foreground; /* no -D */
};

/* What client and server agreed on for one test. */
struct deal {
	bool on, verify;
	int version, ktls;
	long record_size;
	uint32_t seed;
};

struct stream {
	int fd, file; /* socket; what -Z sends */
	bool waits; /* the stream has a thread of its own: no call returns before it is done */
	bool sender, ktls_tx, ktls_rx, zerocopy, sendfile;
	SSL *ssl;
	const char *base; /* the map of that file */
	const char *tx, *rx;
	size_t at; /* in the pattern */
	uint64_t verified;
};

struct iperf_test;
struct iperf_stream;
typedef struct cJSON cJSON;

/* test.c */
extern struct deal deal;
extern struct iperf_test *the_test;

/* options.c */
extern struct options options;
bool options_take(int *argc, char **argv, char *why, size_t size);
bool options_check(char role, int protocol, char *why, size_t size);
void options_help(FILE *out);
const char *ktls_word(int ktls);
int ktls_number(const char *word);

/* failure.c */
void fail(enum cause cause, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
const char *fail_text(int cause);
void fail_ask_server(void);
int fail_exit(void);
void fail_say(void);
void fail_reset(void);

/* deal.c */
void deal_offer(cJSON *parameters);
void deal_read(cJSON *parameters);
bool deal_accept(void);
void deal_results(cJSON *top);

/* context.c */
SSL_CTX *context_for(bool server, char *why, size_t size);
const char *openssl_reason(char *out, size_t size);

/* handshake.c */
bool ktls_possible(char *why, size_t size);
bool handshake(struct stream *s, bool server);
bool ktls_satisfied(const struct stream *s);

/* stream.c */
bool pattern_make(uint32_t seed);
struct stream *stream_of(int fd);
struct stream *stream_add(int fd);
void stream_forget_all(void);
int stream_read(struct stream *s, char *buf, size_t count);
int stream_write(struct stream *s, const char *buf, size_t count);
int stream_sendfile(struct stream *s, int fd, const char *buf, size_t count);

/* ../ktls-handoff/wait.c */
long long now_ms(void);
int wait_fd(int fd, short events, long long deadline);

/* ../ktls-handoff/diag.c (handoff.h has other names too) */
struct diag {
	bool known;
	const char *tx, *rx;
};
void diag_query(int fd, struct diag *out);

/* libiperf: what it exports and we call (iperf_api.h, cjson.h; stable from 3.12 to 3.18) */
extern int i_errno;
struct iperf_test *iperf_new_test(void);
int iperf_defaults(struct iperf_test *test);
int iperf_parse_arguments(struct iperf_test *test, int argc, char **argv);
int iperf_run_client(struct iperf_test *test);
int iperf_run_server(struct iperf_test *test);
void iperf_reset_test(struct iperf_test *test);
void iperf_free_test(struct iperf_test *test);
int iperf_json_finish(struct iperf_test *test);
int iperf_create_pidfile(struct iperf_test *test);
int iperf_delete_pidfile(struct iperf_test *test);
void iperf_catch_sigend(void (*handler)(int));
void iperf_got_sigend(struct iperf_test *test) __attribute__((noreturn));
void iperf_err(struct iperf_test *test, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
int iperf_printf(struct iperf_test *test, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
int iflush(struct iperf_test *test);
char iperf_get_test_role(struct iperf_test *test);
int iperf_get_test_one_off(struct iperf_test *test);
int iperf_get_test_json_output(struct iperf_test *test);
int iperf_get_test_protocol_id(struct iperf_test *test);
int iperf_get_test_zerocopy(struct iperf_test *test);
int iperf_get_control_socket(struct iperf_test *test);
const char *iperf_get_test_server_hostname(struct iperf_test *test);
int iperf_set_send_state(struct iperf_test *test, signed char state);
cJSON *cJSON_AddObjectToObject(cJSON *object, const char *name);
cJSON *cJSON_AddNumberToObject(cJSON *object, const char *name, double number);
cJSON *cJSON_AddBoolToObject(cJSON *object, const char *name, int value);
cJSON *cJSON_GetArrayItem(const cJSON *array, int index);
int cJSON_GetArraySize(const cJSON *array);
char *cJSON_GetStringValue(const cJSON *item);
double cJSON_GetNumberValue(const cJSON *item);
int cJSON_IsTrue(const cJSON *item);

/* and what it calls through the linker's table, so that our definitions in hooks.c come first */
char *iperf_strerror(int number);
void usage_long(FILE *out);
int Nread(int fd, char *buf, size_t count, int protocol);
int Nread_no_select(int fd, char *buf, size_t count, int protocol);
int Nwrite(int fd, const char *buf, size_t count, int protocol);
int Nsendfile(int from, int to, const char *buf, size_t count);
struct iperf_stream *iperf_new_stream(struct iperf_test *test, int fd, int sender);
int iperf_handle_message_client(struct iperf_test *test);
int iperf_tcp_listen(struct iperf_test *test);
cJSON *cJSON_AddStringToObject(cJSON *object, const char *name, const char *value);
cJSON *cJSON_GetObjectItem(const cJSON *object, const char *name);
char *cJSON_Print(const cJSON *item);

/* libiperf.c: the originals */
cJSON *real_add_string(cJSON *object, const char *name, const char *value);
cJSON *real_get_item(const cJSON *object, const char *name);
int real_nwrite(int fd, const char *buf, size_t count, int protocol);

/* original.c */
bool libiperf_has_threads(void);

#endif
