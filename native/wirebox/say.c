/* SPDX-License-Identifier: Apache-2.0 */
/* What wirebox tells: JSON lines on standard output for programs, one line on standard error for people. */
#include <arpa/inet.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "wirebox.h"

const char *direction_name(int direction)
{
	return direction == A_TO_B ? "a>b" : "b>a";
}

static void print_text(const char *text)
{
	putchar('"');
	for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
		if (*c == '"' || *c == '\\')
			printf("\\%c", *c);
		else if (*c < 0x20 || *c > 0x7e)
			printf("\\u%04x", *c);
		else
			putchar(*c);
	}
	putchar('"');
}

static void print_end(const struct end *e, uint8_t family)
{
	char text[INET6_ADDRSTRLEN] = "";

	inet_ntop(family == 4 ? AF_INET : AF_INET6, e->addr, text, sizeof(text));
	printf(family == 4 ? "%s:%u" : "[%s]:%u", text, e->port);
}

static void print_number(const char *name, uint64_t value, bool known)
{
	if (known)
		printf(",\"%s\":%" PRIu64, name, value);
	else
		printf(",\"%s\":null", name);
}

void say_ready(void)
{
	puts("{\"ready\":true}");
	fflush(stdout);
}

void say_added(uint32_t id, const char *line)
{
	printf("{\"added\":%u,\"text\":", id);
	print_text(line);
	puts("}");
}

/* `line`: number and text of a line of standard input; 0 if the error is not about one. */
void say_error(uint32_t line, const char *error, const char *text)
{
	printf("{\"error\":");
	print_text(error);
	if (line) {
		printf(",\"line\":%u,\"text\":", line);
		print_text(text);
	}
	puts("}");
}

void say_deed(struct engine *e, const struct deed *d)
{
	const struct frame *f = d->frame;

	if (++e->actions > LINES_MAX)
		return;
	printf("{\"rule\":%u,\"frame\":%" PRIu64 ",\"direction\":\"%s\",\"flow\":\"", d->rule,
	       e->count[d->direction].tcp, direction_name(d->direction));
	print_end(&f->src, f->family);
	putchar('>');
	print_end(&f->dst, f->family);
	putchar('"');
	print_number("offset", d->place ? d->place->start : 0, d->place);
	printf(",\"length\":%u", f->size);
	print_number("record", d->record, d->record != NO_RECORD);
	printf(",\"action\":\"%s\"", d->action);
	if (d->time)
		printf(",\"target\":%" PRIu64 ",\"time\":%u", d->target, d->time);
	if (d->number)
		printf(",\"number\":%" PRIu64, d->number);
	if (d->behind)
		printf(",\"behind\":%u", d->behind);
	if (d->flip)
		printf(",\"at\":%d,\"bit\":%u,\"repaired\":%s", d->at, d->bit, d->repair ? "true" : "false");
	puts("}");
}

/* A frame that was to wait for others went on because they did not come. */
void say_late(struct engine *e, const struct held *h)
{
	if (++e->actions > LINES_MAX)
		return;
	printf("{\"late\":%u,\"frame\":%" PRIu64 ",\"direction\":\"%s\"}\n", h->rule, h->frame,
	       direction_name(h->direction));
}

static void print_counts(const struct counts *c)
{
	static const char *const names[] = { "frames",	"bytes",   "tcp",     "cut",	"dropped", "duplicated",
					     "delayed", "flipped", "marked",  "jittered", "late", "not_held",
					     "sent",	"too_big", "failed",  "missed",	"gaps" };
	const uint64_t values[] = { c->frames,	c->bytes,   c->tcp,    c->cut,	    c->dropped, c->duplicated,
				    c->delayed, c->flipped, c->marked, c->jittered, c->late,	c->not_held,
				    c->sent,	c->too_big, c->failed, c->missed,   c->gaps };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		printf("%s\"%s\":%" PRIu64, i ? "," : "{", names[i], values[i]);
	putchar('}');
}

void say_summary(struct engine *e)
{
	printf("{\"summary\":{");
	for (int i = 0; i < DIRECTIONS; i++) {
		printf("\"%s\":", direction_name(i));
		print_counts(&e->count[i]);
		putchar(',');
	}
	printf("\"flows\":%" PRIu64 ",\"unknown\":%" PRIu64 ",\"gaps\":%" PRIu64 ",\"actions\":%" PRIu64 "}}\n",
	       e->flows.seen, e->flows.unknown, e->flows.gaps, e->actions);
	fflush(stdout);
}

/* One line on standard error, with control characters escaped: rules come from strangers. */
void complain(const char *fmt, ...)
{
	char line[2 * ERROR_MAX];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	fputs("wirebox: ", stderr);
	for (const unsigned char *c = (const unsigned char *)line; *c; c++)
		fprintf(stderr, *c < 0x20 || *c > 0x7e ? "\\x%02x" : "%c", *c);
	fputc('\n', stderr);
}
