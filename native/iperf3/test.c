/* SPDX-License-Identifier: Apache-2.0 */
/* The test that runs: libiperf's own of it, and what client and server agreed on. */
#include "tls.h"

struct iperf_test *the_test;
struct deal deal;
