// SPDX-License-Identifier: GPL-2.0-only
/* Runs all tests with a seed; the last line says how many passed and failed. */
#include "test.h"

static u32 passed, failed;

static void run(const struct test *test, u64 seed, u32 rounds)
{
	for (; test->name; test++) {
		rnd_seed(seed);
		if (test->run(rounds)) {
			failed++;
			printf("FAIL %s (seed %llu)\n", test->name, (unsigned long long)seed);
		} else {
			passed++;
			printf("ok   %s\n", test->name);
		}
	}
}

int main(int argc, char **argv)
{
	u64 seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
	u32 rounds = argc > 2 ? strtoul(argv[2], NULL, 10) : 300;

	run(gcm_tests, seed, rounds);
	run(record_tests, seed, rounds);
	run(fault_tests, seed, rounds);
	run(rxtrack_tests, seed, rounds);
	printf("%u passed, %u failed\n", passed, failed);
	return failed || !passed;
}
