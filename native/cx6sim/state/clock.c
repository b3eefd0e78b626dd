/* SPDX-License-Identifier: Apache-2.0 */
/* The card's clock. */
#include <time.h>

#include "cx6.h"

uint64_t nanoseconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}
