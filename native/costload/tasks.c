/* SPDX-License-Identifier: Apache-2.0 */
/* How long did every task of this machine run, and what did the card of the DUT do, between two moments? */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "costload.h"

#define CARD "/sys/kernel/debug/nicsim/0/counters"

static bool read_task(pid_t pid, struct task *task)
{
	unsigned long long ns;
	char path[64];
	FILE *file;
	bool ok;

	snprintf(path, sizeof(path), "/proc/%d/comm", pid);
	file = fopen(path, "re");
	ok = file && fscanf(file, "%23[^\n]", task->name) == 1;
	if (file)
		fclose(file);
	snprintf(path, sizeof(path), "/proc/%d/schedstat", pid);
	file = ok ? fopen(path, "re") : NULL;
	ok = file && fscanf(file, "%llu", &ns) == 1;
	if (file)
		fclose(file);
	task->pid = pid;
	task->ns = ok ? ns : 0;
	return ok;
}

static void read_card(struct shot *shot)
{
	FILE *file = fopen(CARD, "re");
	unsigned long long value;
	char name[64];

	if (!file)	/* no such card here: it did nothing */
		return;
	while (fscanf(file, "%63s %llu", name, &value) == 2) {
		if (!strcmp(name, "tx_tls_encrypted_bytes"))
			shot->encrypted = value;
		if (!strcmp(name, "rx_tls_decrypted_bytes"))
			shot->decrypted = value;
	}
	fclose(file);
}

/* Every program here has one thread. The reader leaves itself out. */
void shoot(struct shot *shot)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;
	int pid;

	need(proc, "/proc");
	shot->n = 0;
	while ((entry = readdir(proc))) {
		pid = atoi(entry->d_name);
		if (pid <= 0 || pid == getpid())
			continue;
		if (shot->n == TASKS)
			die("/proc", "too many tasks: run it on a machine of its own");
		if (read_task(pid, &shot->tasks[shot->n]))
			shot->n++;
	}
	closedir(proc);
	read_card(shot);
}

static uint64_t then(const struct shot *before, const struct task *task)
{
	for (size_t i = 0; i < before->n; i++)
		if (before->tasks[i].pid == task->pid)
			return before->tasks[i].ns;
	return 0;
}

static void print_name(const char *name)
{
	putchar('"');
	for (; *name; name++)
		putchar(*name < ' ' || *name > '~' || *name == '"' || *name == '\\' ? '?' : *name);
	putchar('"');
}

/* Members of a JSON object: who ran for how many ns, and bytes that the card encrypted and decrypted. */
void print_moved(const struct shot *before, const struct shot *after)
{
	const char *comma = "";

	printf("\"encrypted\": %llu, \"decrypted\": %llu, \"tasks\": [",
	       (unsigned long long)(after->encrypted - before->encrypted),
	       (unsigned long long)(after->decrypted - before->decrypted));
	for (size_t i = 0; i < after->n; i++) {
		uint64_t ns = after->tasks[i].ns - then(before, &after->tasks[i]);

		if (!ns)
			continue;
		printf("%s[", comma);
		print_name(after->tasks[i].name);
		printf(", %llu]", (unsigned long long)ns);
		comma = ", ";
	}
	printf("]");
}
