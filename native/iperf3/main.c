/* SPDX-License-Identifier: Apache-2.0 */
/* Runs Debian's libiperf as iperf3 does, with our options taken out first and exit codes of our own. */
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tls.h"

static jmp_buf end;

static void on_signal(int number)
{
	(void)number;
	longjmp(end, 1);
}

static int refuse(const char *why, int code)
{
	fprintf(stderr, "iperf3-tls: error: %s\n", why);
	return code;
}

static int run_client(void)
{
	int rc = iperf_run_client(the_test), code = fail_exit();

	/* with -J libiperf has printed the error and answers 0 */
	if (rc < 0)
		iperf_err(the_test, "error - %s", fail_text(i_errno));
	fail_say();
	return code ? code : rc < 0 ? RC_IPERF : RC_OK;
}

static int run_server(void)
{
	for (;;) {
		int rc = iperf_run_server(the_test), code = fail_exit();

		if (rc < 0) {
			iperf_err(the_test, "error - %s", fail_text(i_errno));
			if (iperf_get_test_json_output(the_test) && iperf_json_finish(the_test) < 0)
				return RC_IPERF;
			iflush(the_test);
			if (rc < -1)
				return RC_IPERF;
		}
		fail_say();
		iperf_reset_test(the_test);
		stream_forget_all();
		fail_reset();
		if (iperf_get_test_one_off(the_test) && rc != 2) /* 2: nobody came */
			return code;
	}
}

static int run(bool server)
{
	int code;

	iperf_catch_sigend(on_signal);
	if (setjmp(end))
		iperf_got_sigend(the_test);
	signal(SIGPIPE, SIG_IGN);
	if (server && !options.foreground && daemon(0, 0))
		return refuse("cannot become a daemon", RC_IPERF);
	if (iperf_create_pidfile(the_test) < 0)
		return refuse(fail_text(i_errno), RC_IPERF);
	code = server ? run_server() : run_client();
	iperf_delete_pidfile(the_test);
	iperf_catch_sigend(SIG_DFL);
	return code;
}

int main(int argc, char **argv)
{
	char why[600];
	bool server;
	int code;

	if (!options_take(&argc, argv, why, sizeof(why)))
		return refuse(why, RC_IPERF);
	the_test = iperf_new_test();
	if (!the_test || iperf_defaults(the_test) < 0)
		return refuse(fail_text(i_errno), RC_IPERF);
	if (iperf_parse_arguments(the_test, argc, argv) < 0) {
		snprintf(why, sizeof(why), "%s; --help lists the options", fail_text(i_errno));
		return refuse(why, RC_IPERF);
	}
	server = iperf_get_test_role(the_test) == 's';
	if (!options_check(server ? 's' : 'c', iperf_get_test_protocol_id(the_test), why, sizeof(why)))
		return refuse(why, RC_IPERF);
	if (options.ktls >= 0 && (options.ktls & KTLS_REQUIRE) && !ktls_possible(why, sizeof(why)))
		return refuse(why, RC_NOT_HERE);
	/* files are judged now; a certificate of our own is made for the first client that asks for TLS */
	if ((server ? options.cert != NULL : options.tls) && !context_for(server, why, sizeof(why)))
		return refuse(why, RC_IPERF);
	code = run(server);
	stream_forget_all();
	iperf_free_test(the_test);
	return code;
}
