/* SPDX-License-Identifier: Apache-2.0 */
/* The parsers on answers made by hand: netlink as net/tls/tls_main.c get_info() writes it, and stunnel's log. */
#undef NDEBUG
#define _GNU_SOURCE
#include "../ktls-connect.h"

#include <assert.h>
#include <string.h>

#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/tls.h>

#include <openssl/evp.h>

#include "../handoff.h"

struct answer {
	_Alignas(4) unsigned char buf[512];
	size_t len;
};

static size_t open_attribute(struct answer *a, unsigned short type)
{
	struct rtattr head = { .rta_len = sizeof(head), .rta_type = type };
	size_t at = a->len;

	memcpy(a->buf + at, &head, sizeof(head));
	a->len += sizeof(head);
	return at;
}

static void close_attribute(struct answer *a, size_t at)
{
	unsigned short len = (unsigned short)(a->len - at);

	memcpy(a->buf + at, &len, sizeof(len));
	a->len = RTA_ALIGN(a->len);
}

static void add_u16(struct answer *a, unsigned short type, uint16_t value)
{
	size_t at = open_attribute(a, type);

	memcpy(a->buf + a->len, &value, sizeof(value));
	a->len += sizeof(value);
	close_attribute(a, at);
}

static struct answer make(uint16_t tx, uint16_t rx)
{
	struct answer a = { .len = NLMSG_HDRLEN + NLMSG_ALIGN(sizeof(struct inet_diag_msg)) };
	struct nlmsghdr h = { .nlmsg_type = SOCK_DIAG_BY_FAMILY };
	size_t ulp, tls;

	add_u16(&a, INET_DIAG_SHUTDOWN, 0);
	ulp = open_attribute(&a, INET_DIAG_ULP_INFO | NLA_F_NESTED);
	add_u16(&a, INET_ULP_INFO_NAME, 0);
	tls = open_attribute(&a, INET_ULP_INFO_TLS | NLA_F_NESTED);
	add_u16(&a, TLS_INFO_VERSION, TLS_1_2_VERSION);
	add_u16(&a, TLS_INFO_CIPHER, TLS_CIPHER_AES_GCM_256);
	add_u16(&a, TLS_INFO_TXCONF, tx);
	add_u16(&a, TLS_INFO_RXCONF, rx);
	close_attribute(&a, tls);
	close_attribute(&a, ulp);
	h.nlmsg_len = (uint32_t)a.len;
	memcpy(a.buf, &h, sizeof(h));
	return a;
}

static void test_diag(void)
{
	struct answer a = make(TLS_CONF_HW, TLS_CONF_SW);
	struct nlmsghdr error = { .nlmsg_len = 36, .nlmsg_type = NLMSG_ERROR };
	struct diag d;

	assert(diag_parse(a.buf, a.len, &d) && d.known);
	assert(!strcmp(d.tx, "hw") && !strcmp(d.rx, "sw"));
	a = make(TLS_CONF_SW, TLS_CONF_BASE);
	assert(diag_parse(a.buf, a.len, &d) && !strcmp(d.tx, "sw") && !strcmp(d.rx, "none"));
	for (size_t cut = 0; cut < a.len; cut++) /* a cut answer: its length in the head is too great */
		assert(!diag_parse(a.buf, cut, &d) && !strcmp(d.tx, "unknown"));
	memcpy(a.buf, &error, sizeof(error));
	assert(!diag_parse(a.buf, a.len, &d) && !d.known && !strcmp(d.rx, "unknown"));
}

static void test_stunnel_log(void)
{
	struct result r = { .sock = -1 };
	struct trouble t = { .text = "none" };

	assert(!stunnel_read_line("2026.11.21 08:17:04 LOG5[0]: s_connect: connected ::1:4433", &r));
	assert(!strcmp(r.peer, "::1:4433"));
	assert(stunnel_read_line("2026.11.21 08:17:04 LOG6[0]: TLSv1.3 ciphersuite: TLS_AES_128_GCM_SHA256 (128-bit)", &r));
	assert(!strcmp(r.version, "1.3") && !strcmp(r.cipher, "TLS_AES_128_GCM_SHA256"));
	stunnel_read_trouble("2026.11.21 08:17:04 LOG5[0]: not trouble", &t);
	assert(!strcmp(t.text, "none"));
	stunnel_read_trouble("[.] not trouble", &t);
	assert(!strcmp(t.text, "none"));
	stunnel_read_trouble("[!] before its log", &t);
	stunnel_read_trouble("2026.11.21 08:17:04 LOG3[ui]: configuration", &t);
	assert(!strcmp(t.text, "before its log"));
	stunnel_read_trouble("2026.11.21 08:17:04 LOG3[0]: the cause", &t);
	stunnel_read_trouble("2026.11.21 08:17:04 LOG3[0]: a consequence", &t);
	assert(!strcmp(t.text, "the cause"));
}

static void test_driver(void)
{
	const char *both = "name         : gcm(aes)\ndriver       : gcm_base(ctr,ghash)\npriority     : 100\n\n"
			   "name         : gcm(aes)\ndriver       : generic-gcm-aesni\npriority     : 400\ninternal     : no\n\n"
			   "name         : gcm(aes)\ndriver       : inside\npriority     : 900\ninternal     : yes\n\n"
			   "name         : sha256\ndriver       : other\npriority     : 999";
	const char *odd = "name : ccm(aes)\ndriver :\npriority : 1\n\nname : ccm(aes)\ndriver : late\ninternals : yes\npriority : 0\n\n"
			  "namex : ccm(aes)\ndriver : x\npriority : 8\n\nname ccm(aes)\ndriver : y\npriority : 9\n";
	char out[64], longer[200] = "name : ccm(aes)\ndriver : ";

	assert(who_driver(both, "aes-gcm-128", out, sizeof(out)) && !strcmp(out, "generic-gcm-aesni"));
	assert(!who_driver(both, "aes-ccm-128", out, sizeof(out)) && !*out);
	assert(who_driver("name : ccm(aes)\ndriver : d", "aes-ccm-128", out, sizeof(out)) && !strcmp(out, "d"));
	assert(!who_driver("", "aes-gcm-128", out, sizeof(out)));
	assert(!who_driver(odd, "aes-ccm-128", out, sizeof(out)) && !*out); /* the best one has no name */
	assert(who_driver(strchr(odd, '1') + 3, "aes-ccm-128", out, sizeof(out)) && !strcmp(out, "late"));
	memset(longer + strlen(longer), 'd', 120);
	assert(who_driver(longer, "aes-ccm-128", out, sizeof(out)) && strlen(out) == 63);
}

static void test_policy(void)
{
	struct options o = { .verb = VERB_CONNECT, .host = "h", .port = "1" };
	struct failure f = { 0 };
	char good[] = "; a policy\n client = yes\nCAfile = /a b.pem \r\nverifyChain = yes\ncurves=P-256\nciphers = X\n"
		      "ciphersuites = Y\nsslVersion = TLSv1.3\ncheckHost = n\nTIMEOUTconnect = 3";
	char unknown[] = "CAfile = x\nverify = 2\n", silent[] = "CAfile = x\n", section[] = "[a]\n", late[] = "sslVersion = TLSv1.1";

	assert(policy_parse(good, "p", &o, &f) && options_check(&o, &f));
	assert(!strcmp(o.ca, "/a b.pem") && !strcmp(o.curves, "P-256") && !strcmp(o.ciphers, "Y") && o.tls == 13);
	assert(!strcmp(o.name, "n") && o.timeout_ms == 3000 && !o.no_verify);
	assert(!policy_parse(unknown, "p", &o, &f) && strstr(f.message, "p:2: unknown key") && f.exit == RC_USAGE);
	assert(!policy_parse(silent, "p", &o, &f) && strstr(f.message, "neither"));
	assert(!policy_parse(section, "p", &o, &f) && !policy_parse(late, "p", &o, &f));
}

static void test_request(void)
{
	static const char *const bad[] = {
		"connect\nh\n1", "connect\nh\n", "accept\nh\n1\n", "connect\nh\n1\n--ca\n/x\n", "connect\nh\n1\n--policy\n/x\n",
		"connect\nh\n1\n--fallback\n/x\n", "connect\nh\n1\n--fd\n1\n", "connect\nh\n99999\n", "connect\n\n1\n", "\n",
		"connect\nh\n1\n--timeout\n0\n", "connect\nh\n1\n--no-verify\n", "connect\nh\n1\n--help\n", "connect\nh\n1\n2\n",
	};
	struct options o = { .verb = VERB_CONNECT, .ca = "c", .timeout_ms = 5000, .socket = "/s", .policy = "p", .fd = -1 };
	struct failure f = { 0 };
	char good[] = "connect\n::1\n8443\n--name\nn\n--timeout\n0.5\n";

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct options once = o;
		char data[64];
		size_t len = strlen(bad[i]);

		memcpy(data, bad[i], len);
		assert(!request_parse(data, len, &once, &f) && f.exit == RC_USAGE);
	}
	assert(request_parse(good, strlen("connect\n::1\n8443\n--name\nn\n--timeout\n0.5\n"), &o, &f));
	assert(!strcmp(o.host, "::1") && !strcmp(o.name, "n") && o.timeout_ms == 500 && o.verb == VERB_CONNECT);
}

/* The header's own SHA-256, at each place of the end in a block, in pieces of each size. */
static void test_sha(void)
{
	unsigned char data[200], sha[32];
	char ours[65], theirs[65];
	struct ktls__sha s;

	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (unsigned char)(i * 37);
	for (size_t len = 0; len <= sizeof(data); len++) {
		ktls__sha_begin(&s);
		for (size_t at = 0; at < len; at += len % 7 + 1)
			ktls__sha_add(&s, data + at, len - at < len % 7 + 1 ? len - at : len % 7 + 1);
		ktls__sha_hex(&s, ours);
		assert(EVP_Digest(data, len, sha, NULL, EVP_sha256(), NULL));
		for (int i = 0; i < 32; i++)
			snprintf(theirs + 2 * i, 3, "%02x", sha[i]);
		assert(!strcmp(ours, theirs));
	}
}

static void test_text_is_cut(void)
{
	struct text t = { .len = 0 };

	for (int i = 0; i < 3000; i++)
		text_json(&t, "\x01");
	assert(t.len == sizeof(t.buf) - 1 && strlen(t.buf) == t.len);
}

int main(void)
{
	test_diag();
	test_stunnel_log();
	test_driver();
	test_policy();
	test_request();
	test_text_is_cut();
	test_sha();
	return 0;
}
