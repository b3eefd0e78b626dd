/* SPDX-License-Identifier: Apache-2.0 */
/* What could threads gain at best on this machine? Each one verifies alone, and each one only reads. */
#ifndef WIRE_LIMIT_H
#define WIRE_LIMIT_H

#include "core.h"

struct limit; /* copies of the files, one for each thread */

struct limit *limit_new(const struct question *q, struct failure *f);
void limit_free(struct limit *l);

/* Seconds by the clock until each of `threads` threads has verified its own copy by itself; negative: not equal. */
double limit_verify(struct limit *l, unsigned int threads);
/* Bytes a second that `threads` threads read together, each from its own copy. */
double limit_read(struct limit *l, unsigned int threads);

#endif
