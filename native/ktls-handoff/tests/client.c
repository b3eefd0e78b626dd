/* SPDX-License-Identifier: Apache-2.0 */
/* A program that uses ktls-connect.h: client HOST PORT POLICY RESIDENT [STUNNEL [NAME [MS]]]. Standard input goes to
 * the peer; the answer of `openssl s_server -rev`, one line, comes back on standard output after the JSON. */
#define _GNU_SOURCE
#include "../ktls-connect.h"

static char payload[1 << 20];

static size_t everything(int fd, char *to, size_t size, int until_line)
{
	size_t len = 0;
	ssize_t n;

	while (len < size && (n = read(fd, to + len, size - len)) > 0) {
		len += (size_t)n;
		if (until_line && to[len - 1] == '\n')
			break;
	}
	return len;
}

int main(int argc, char **argv)
{
	struct ktls_target to = { 0 };
	struct ktls_answer answer;
	size_t len;
	int fd;

	if (argc < 5)
		return 1;
	to.host = argv[1], to.port = argv[2], to.policy = argv[3], to.resident = *argv[4] ? argv[4] : NULL;
	to.stunnel = argc > 5 && *argv[5] ? argv[5] : NULL;
	to.name = argc > 6 && *argv[6] ? argv[6] : NULL;
	to.timeout_ms = argc > 7 ? atoi(argv[7]) : 0;
	len = everything(STDIN_FILENO, payload, sizeof(payload), 0);
	fd = ktls_connect(&to, &answer);
	if (fd < 0) {
		printf("none: %s\n", answer.warning);
		return 2;
	}
	printf("%s", answer.line);
	fflush(stdout);
	if (answer.stunnel && len && write(fd, payload, len) == (ssize_t)len) {
		len = everything(fd, payload, sizeof(payload), 1);
		fwrite(payload, 1, len, stdout);
	}
	close(fd);
	if (answer.stunnel && waitpid(answer.stunnel, NULL, 0) != answer.stunnel)
		return 3;
	/* 0, 1, 2 and nothing else may be open */
	for (fd = 3; fd < 64; fd++)
		if (fcntl(fd, F_GETFD) >= 0)
			return 4;
	return 0;
}
