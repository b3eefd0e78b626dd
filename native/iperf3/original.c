/* SPDX-License-Identifier: Apache-2.0 */
/* Where in libiperf is a function that we define once more, and which libiperf is it? */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>

#include "original.h"
#include "tls.h"

/* The original of a function; a libiperf without it is none that we know. */
void *original(const char *name)
{
	void *found = dlsym(RTLD_NEXT, name);

	if (found)
		return found;
	fprintf(stderr, "iperf3-tls: error: this libiperf has no %s: it is neither 3.12 nor 3.18\n", name);
	exit(RC_IPERF);
}

/* From 3.16 on each stream has a thread and a blocking socket. */
bool libiperf_has_threads(void)
{
	return dlsym(RTLD_NEXT, "Nread_no_select") != NULL;
}
