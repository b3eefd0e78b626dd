/* SPDX-License-Identifier: Apache-2.0 */
/* The parsers on answers made by hand: netlink as net/tls/tls_main.c get_info() writes it, and stunnel's log. */
#undef NDEBUG
#include <assert.h>
#include <string.h>

#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/tls.h>

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
	stunnel_read_trouble("2026.11.21 08:17:04 LOG3[ui]: configuration", &t);
	stunnel_read_trouble("2026.11.21 08:17:04 LOG3[0]: the cause", &t);
	stunnel_read_trouble("2026.11.21 08:17:04 LOG3[0]: a consequence", &t);
	assert(!strcmp(t.text, "the cause"));
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
	test_text_is_cut();
	return 0;
}
