/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of ktls-handoff share: options, failures, results, and the functions of each file. */
#ifndef KTLS_HANDOFF_H
#define KTLS_HANDOFF_H

#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include <openssl/ssl.h>

#define VERSION "0.1.0"
#define MESSAGE_MAX 512
#define JSON_MAX 8192

/* One exit code per cause; README.md documents them. */
enum exit_code {
	RC_OK = 0, RC_USAGE = 1, RC_HANDSHAKE = 2, RC_KTLS = 3, RC_NOT_HERE = 4,
	RC_CONNECT = 5, RC_TIMEOUT = 6, RC_PARENT = 7, RC_INTERNAL = 8,
};

struct failure {
	int exit;
	const char *cause;
	char message[MESSAGE_MAX];
};

/* VERB_REQUEST: what a client of the resident may ask for. */
enum verb { VERB_NONE, VERB_CONNECT, VERB_ACCEPT, VERB_CLOSE, VERB_SERVE, VERB_REQUEST, VERB_HELP, VERB_VERSION };
enum { WANT_TX = 1, WANT_RX = 2 };

struct options {
	enum verb verb;
	const char *host, *port;
	const char *socket; /* of the resident */
	int clients, user; /* user: -1, or one more who may ask */
	int fd; /* -1: none given */
	const char *policy; /* a file that says what the next ones say */
	const char *ca, *pin, *name, *sni;
	const char *pem; /* the text of ca or pin */
	size_t pem_len;
	const char *digest; /* of a request */
	bool no_verify, staple;
	const char *cert, *key;
	int tls; /* 12 or 13 */
	const char *ciphers; /* never NULL after parsing */
	const char *curves; /* NULL: stunnel's */
	unsigned int want;
	int timeout_ms; /* for each step */
	const char *fallback;
	bool announce;
};

/* What one connection turned out to be; empty strings and NULL print as null. */
struct result {
	const char *via;
	char version[8], cipher[64];
	const char *kernel_cipher, *tx, *rx;
	char tx_by[64], rx_by[64]; /* sw: the kernel's crypto driver; hw: the device */
	char tx_seq[17], rx_seq[17];
	char peer[80];
	int pending;
	int sock;
};

struct text {
	char buf[JSON_MAX];
	size_t len;
};

/* options.c */
bool options_parse(int argc, char *const argv[], struct options *o, struct failure *f);
bool options_check(struct options *o, struct failure *f);
bool options_request(int argc, char *const argv[], struct options *o, struct failure *f);
int options_find_fd(int argc, char *const argv[]);

/* policy.c */
#define POLICY_MAX 16384
bool policy_parse(char *text, const char *file, struct options *o, struct failure *f);

/* rules.c */
enum { DIGEST = 65 };
struct rules {
	struct options o; /* its strings point into policy and trust */
	char *policy, *trust;
	char digest[DIGEST];
	SSL_CTX *ctx; /* of a resident */
};
struct standing { /* of a resident */
	const struct options *said; /* its command line */
	pthread_mutex_t lock;
	SSL_CTX *ctx; /* of the rules with this digest */
	char digest[DIGEST];
	bool broken; /* the files cannot be used; a message has been printed */
};
bool rules_read(struct rules *r, struct failure *f);
bool rules_renew(struct standing *s, struct rules *fresh, struct failure *f);
bool rules_now(struct standing *s, struct rules *fresh, struct failure *f);
bool rules_agree(const struct rules *r, const char *theirs, struct failure *f);
void rules_free(struct rules *r);

/* request.c */
#define REQUEST_MAX 1024
bool request_parse(char *data, size_t len, struct options *o, struct failure *f);

/* place.c */
struct place {
	int listener, dir, lock;
	bool bound, locked;
	char path[PATH_MAX + 128], lock_name[256]; /* name points into path */
	const char *name;
	struct stat made;
};
bool place_take(const struct options *o, struct place *p, struct failure *f);
void place_leave(struct place *p);

/* serve.c, attend.c */
struct client {
	struct standing *home;
	int conn;
	pid_t pid;
	uid_t uid;
};
bool attend_welcome(struct client *c);
void attend(const struct client *c);
void attend_end(int conn);
int serve_main(const struct options *said);

/* who.c */
bool who_driver(const char *proc_crypto, const char *kernel_cipher, char *out, size_t size);
void who_fill(int fd, struct result *r);

/* wait.c */
long long now_ms(void);
int wait_fd(int fd, short events, long long deadline);

/* net.c */
bool set_blocking(int fd);
bool is_ip(const char *host);
bool peer_name(int fd, char *out, size_t size);
int net_connect(const struct options *o, struct failure *f);
int net_listen(const struct options *o, struct failure *f);
int net_accept(int listener, const struct options *o, struct failure *f);

/* verify.c */
bool verify_setup(SSL_CTX *ctx, const struct options *o, struct failure *f);
bool verify_name(SSL *ssl, const struct options *o, struct failure *f);
const char *verify_wanted_name(const struct options *o);
const char *verify_sni(const struct options *o);
bool verify_load_identity(SSL_CTX *ctx, const struct options *o, struct failure *f);

/* handshake.c */
SSL_CTX *handshake_context(const struct options *o, struct failure *f);
SSL *handshake_run(SSL_CTX *ctx, int fd, const struct options *o, struct failure *f);

/* ktls.c */
bool ktls_possible(struct failure *f);
bool ktls_installed(int fd, int direction);
bool ktls_check(SSL *ssl, int fd, const struct options *o, struct result *r, struct failure *f);
bool establish(SSL_CTX *ctx, int sock, const struct options *o, struct result *r, struct failure *f);

/* diag.c */
struct diag {
	bool known;
	const char *tx, *rx;
};
bool diag_parse(const void *answer, size_t len, struct diag *out);
void diag_query(int fd, struct diag *out);

/* close.c */
struct closed {
	unsigned long long drained;
	char alert[24]; /* "close_notify", "alert 40", or empty */
};
bool safe_close(int fd, int timeout_ms, struct closed *c, struct failure *f);
int close_main(const struct options *o);

/* text.c */
bool failed(struct failure *f, int code, const char *cause, const char *fmt, ...)
	__attribute__((format(printf, 4, 5))); /* always false, so that a caller can return it */
void text_add(struct text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void text_json(struct text *t, const char *value);
void text_result(struct text *t, const struct result *r);
void text_failure(struct text *t, const struct failure *f);
void say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
const char *openssl_reason(char *out, size_t size);

/* handoff.c */
bool handoff_usable(int fd, struct failure *f);
bool handoff_send(int fd, const struct text *line, int sock, int timeout_ms, struct failure *f);

/* Why stunnel failed: the first trouble of the connection, or else the first one before it. */
struct trouble {
	int rank;
	char text[200];
};

/* fallback.c, stunnel.c */
bool fallback_run(const struct options *o, int listener, const struct failure *why,
		  struct result *r, struct failure *f, pid_t *child);
bool stunnel_config(const struct options *o, const char *connect_to, struct text *t, struct failure *f);
bool stunnel_read_line(const char *line, struct result *r);
void stunnel_read_trouble(const char *line, struct trouble *t);

#endif
