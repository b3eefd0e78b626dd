/* SPDX-License-Identifier: Apache-2.0 */
/* Where does TLS enter iperf3? Here only: functions that libiperf calls by its linker table, defined once more.
 * The executable comes first in the search order, so that libiperf, unchanged, calls these. */
#define _GNU_SOURCE
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>

#include "original.h"
#include "tls.h"

int Nread(int fd, char *buf, size_t count, int protocol)
{
	struct stream *s = stream_of(fd);

	return s ? stream_read(s, buf, count) : REAL(Nread, fd, buf, count, protocol);
}

/* The data path of libiperf from 3.16 on. */
int Nread_no_select(int fd, char *buf, size_t count, int protocol)
{
	struct stream *s = stream_of(fd);

	return s ? stream_read(s, buf, count) : REAL(Nread_no_select, fd, buf, count, protocol);
}

int Nwrite(int fd, const char *buf, size_t count, int protocol)
{
	struct stream *s = stream_of(fd);

	return s ? stream_write(s, buf, count) : REAL(Nwrite, fd, buf, count, protocol);
}

int Nsendfile(int from, int to, const char *buf, size_t count)
{
	struct stream *s = stream_of(to);

	return s ? stream_sendfile(s, from, buf, count) : REAL(Nsendfile, from, to, buf, count);
}

/* libiperf asks for PTHREAD_CANCEL_ASYNCHRONOUS: a thread could die inside OpenSSL or malloc() with a lock held, or while
 * OpenSSL cleans up after it (seen). With TLS it may die only where it waits. */
int pthread_setcanceltype(int type, int *old)
{
	return REAL(pthread_setcanceltype, deal.on ? PTHREAD_CANCEL_DEFERRED : type, old);
}

/* send_parameters() of the client writes "client_version" last. */
cJSON *cJSON_AddStringToObject(cJSON *object, const char *name, const char *value)
{
	if (options.tls && !strcmp(name, "client_version") && iperf_get_test_role(the_test) == 'c')
		deal_offer(object);
	return real_add_string(object, name, value);
}

/* get_parameters() of the server asks for "tcp" first, and nobody else does. */
cJSON *cJSON_GetObjectItem(const cJSON *object, const char *name)
{
	if (!strcmp(name, "tcp") && iperf_get_test_role(the_test) == 's')
		deal_read((cJSON *)object);
	return real_get_item(object, name);
}

/* The server knows the parameters here and has not yet asked for streams; -1 becomes SERVER_ERROR. */
int iperf_tcp_listen(struct iperf_test *test)
{
	const char ready = TLS_READY;

	if (!deal_accept())
		return -1;
	if (deal.on && real_nwrite(iperf_get_control_socket(test), &ready, 1, SOCK_STREAM) != 1)
		return -1;
	return REAL(iperf_tcp_listen, test);
}

/* The client learns that the server will do TLS before that asks for streams; one that never said so does not. */
int iperf_handle_message_client(struct iperf_test *test)
{
	int fd = iperf_get_control_socket(test);
	char state = 0;

	if (options.tls && !deal.on && recv(fd, &state, 1, MSG_PEEK) == 1 && state == TLS_READY) {
		deal.on = recv(fd, &state, 1, 0) == 1;
		return 0;
	}
	return REAL(iperf_handle_message_client, test);
}

/* Both ends call this right after connect() or accept() and the cookie, and before any data. */
struct iperf_stream *iperf_new_stream(struct iperf_test *test, int fd, int sender)
{
	bool server = iperf_get_test_role(test) == 's';
	struct stream *s;

	if (options.tls && !server && !deal.on) {
		fail(C_PEER_OLD, "the server ignores --tls: it is an iperf3 without TLS; start iperf3-tls -s there");
		return NULL;
	}
	if (deal.on) {
		s = stream_add(fd);
		if (!s)
			return NULL;
		s->sender = sender;
		if (!handshake(s, server) || !ktls_satisfied(s))
			return NULL;
	}
	return REAL(iperf_new_stream, test, fd, sender);
}

char *iperf_strerror(int number)
{
	return (char *)fail_text(number);
}

/* The final JSON is the one with both "start" and "end". */
char *cJSON_Print(const cJSON *item)
{
	if (real_get_item(item, "start") && real_get_item(item, "end"))
		deal_results((cJSON *)item);
	return REAL(cJSON_Print, item);
}

void usage_long(FILE *out)
{
	REAL(usage_long, out);
	options_help(out);
}
