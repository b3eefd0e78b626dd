/* SPDX-License-Identifier: Apache-2.0 */
/* How fast is the verifier, compared with what sealing the same bytes costs? */
#ifndef WIRE_BENCH_H
#define WIRE_BENCH_H

#include "core.h"

int bench(const struct question *q, int repeat, struct text *out, struct failure *f);

#endif
