/* SPDX-License-Identifier: Apache-2.0 */
/* ktls-wire: is what was on the wire what a correct TLS sender would have put there? */
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "bench.h"
#include "core.h"
#include "files.h"
#include "options.h"

static const char help[] =
	"usage: ktls-wire verify CAPTURE --keylog PATH [--payload PATH] [--reply PATH] [--port N] [--checksums]\n"
	"                 [--threads N]\n"
	"       ktls-wire bench CAPTURE --keylog PATH [--payload PATH] [--threads N] [--repeat N]\n"
	"\n"
	"Reads a capture (pcap, pcapng) and the session keys, and compares every TLS record with the one that a\n"
	"correct software sender would have sent. It prints its findings as one JSON document.\n"
	"\n"
	"  --keylog PATH   secrets in the format of SSLKEYLOGFILE; /dev/fd/N reads them from a descriptor\n"
	"  --payload PATH  what the client sent as application data\n"
	"  --reply PATH    what the server sent\n"
	"  --port N        only connections with this TCP port\n"
	"  --checksums     leave out frames with a wrong IPv4 or TCP checksum\n"
	"  --threads N     default 1\n"
	"  --repeat N      rounds of sealing and verifying; medians are printed; default 5\n"
	"\n"
	"exit: 0 a document was printed, 2 invalid file or command line, 70 internal\n";

/* A file that became shorter while it was read: its pages are gone. */
static void on_bus_error(int number)
{
	static const char message[] = "ktls-wire: a file was truncated while it was read\n";

	(void)number;
	if (write(STDERR_FILENO, message, sizeof(message) - 1) < 0)
		_exit(RC_INTERNAL);
	_exit(RC_INPUT);
}

static int load(const struct options *o, struct question *q, struct failure *f)
{
	int rc = file_map("capture", o->capture, &q->capture, f);

	if (rc == RC_OK)
		rc = keylog_read(o->keylog, &q->keylog, f);
	if (rc == RC_OK && o->payload)
		rc = file_map("payload", o->payload, &q->payload, f);
	if (rc == RC_OK && o->reply)
		rc = file_map("reply", o->reply, &q->reply, f);
	return rc;
}

static int run(const struct options *o, struct text *out, struct failure *f)
{
	struct question q = { .port = o->port, .checksums = o->checksums, .mapped = true,
			      .threads = (unsigned int)o->threads };
	int rc = load(o, &q, f);

	if (rc == RC_OK)
		rc = o->verb == VERB_BENCH ? bench(&q, o->repeat, out, f) : wire_verify(&q, out, f);
	keylog_wipe(&q.keylog);
	file_unmap(&q.capture);
	file_unmap(&q.payload);
	file_unmap(&q.reply);
	return rc;
}

int main(int argc, char *argv[])
{
	struct text out = { .to = stdout };
	struct failure f = { .message = "" };
	struct rlimit none = { 0, 0 };
	struct options o;
	int rc;

	setrlimit(RLIMIT_CORE, &none); /* a core file would hold keys */
	signal(SIGBUS, on_bus_error);
	rc = options_parse(argc, argv, &o, &f);
	if (rc == RC_OK && o.verb == VERB_HELP)
		fputs(help, stdout);
	else if (rc == RC_OK && o.verb == VERB_VERSION)
		puts("ktls-wire " VERSION);
	else if (rc == RC_OK)
		rc = run(&o, &out, &f);
	text_flush(&out);
	free(out.buf);
	if (rc != RC_OK)
		fprintf(stderr, "ktls-wire: %s\n", f.message);
	else if (fflush(stdout) != 0)
		rc = RC_INTERNAL;
	return rc;
}
