/* SPDX-License-Identifier: Apache-2.0 */
/* What did the caller ask for? Pure: no input, no output. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "options.h"

enum kind { TEXT, NUMBER, FLAG };
enum { ON_VERIFY = 1, ON_BENCH = 2 };

struct option_row {
	const char *name;
	enum kind kind;
	unsigned int verbs;
	size_t at;
	int max; /* of a number; its least is 1 */
};

#define AT(member) offsetof(struct options, member)
static const struct option_row table[] = {
	{ "--keylog", TEXT, ON_VERIFY | ON_BENCH, AT(keylog), 0 },
	{ "--payload", TEXT, ON_VERIFY | ON_BENCH, AT(payload), 0 },
	{ "--reply", TEXT, ON_VERIFY, AT(reply), 0 },
	{ "--port", NUMBER, ON_VERIFY, AT(port), 65535 },
	{ "--threads", NUMBER, ON_VERIFY | ON_BENCH, AT(threads), 256 },
	{ "--repeat", NUMBER, ON_BENCH, AT(repeat), 1000 },
	{ "--checksums", FLAG, ON_VERIFY, AT(checksums), 0 },
};

static int usage(struct failure *f, const char *what, const char *value)
{
	return failed(f, RC_INPUT, "%s: '%.200s' (see --help)", what, value);
}

static bool parse_number(const char *value, int max, int *out)
{
	char *end;
	long n;

	if (*value < '0' || *value > '9')
		return false;
	n = strtol(value, &end, 10);
	if (*end || n < 1 || n > max)
		return false;
	*out = (int)n;
	return true;
}

static const struct option_row *find(const char *name, unsigned int verb)
{
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (strcmp(table[i].name, name) == 0 && table[i].verbs & verb)
			return &table[i];
	return NULL;
}

/* Take the option at argv[*i], and its value. */
static int take(int argc, char *const argv[], int *i, struct options *o, struct failure *f)
{
	const struct option_row *row = find(argv[*i], o->verb == VERB_VERIFY ? ON_VERIFY : ON_BENCH);
	const char *value;

	if (!row)
		return usage(f, "unknown option", argv[*i]);
	if (row->kind == FLAG) {
		*(bool *)((char *)o + row->at) = true;
		return RC_OK;
	}
	if (++*i >= argc)
		return usage(f, "no value for", row->name);
	value = argv[*i];
	if (row->kind == TEXT)
		*(const char **)((char *)o + row->at) = value;
	else if (!parse_number(value, row->max, (int *)((char *)o + row->at)))
		return usage(f, row->name, value);
	return RC_OK;
}

static int parse_verb(const char *word, struct options *o, struct failure *f)
{
	static const char *const words[] = { "verify", "bench", "--help", "--version" };

	for (int i = 0; i < 4; i++)
		if (strcmp(words[i], word) == 0) {
			o->verb = (enum verb)i;
			return RC_OK;
		}
	return usage(f, "unknown verb", word);
}

/* Read the command line: RC_OK, or RC_INPUT and a sentence. */
int options_parse(int argc, char *const argv[], struct options *o, struct failure *f)
{
	int rc;

	*o = (struct options){ .threads = 1, .repeat = 5 };
	if (argc < 2)
		return failed(f, RC_INPUT, "no verb (see --help)");
	rc = parse_verb(argv[1], o, f);
	if (o->verb == VERB_HELP || o->verb == VERB_VERSION)
		return rc;
	for (int i = 2; rc == RC_OK && i < argc; i++) {
		if (strncmp(argv[i], "--", 2) == 0)
			rc = take(argc, argv, &i, o, f);
		else if (o->capture)
			rc = usage(f, "more than one capture", argv[i]);
		else
			o->capture = argv[i];
	}
	if (rc == RC_OK && !o->capture)
		rc = failed(f, RC_INPUT, "no capture given (see --help)");
	if (rc == RC_OK && !o->keylog)
		rc = failed(f, RC_INPUT, "no --keylog given (see --help)");
	return rc;
}
