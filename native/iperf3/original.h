/* SPDX-License-Identifier: Apache-2.0 */
/* REAL(function, arguments) calls libiperf's own function, which is looked up once. */
#ifndef IPERF3_ORIGINAL_H
#define IPERF3_ORIGINAL_H

void *original(const char *name);

#define REAL(name, ...)                              \
	({                                           \
		static __typeof__(name) *real_;      \
		if (!real_)                          \
			*(void **)&real_ = original(#name); \
		real_(__VA_ARGS__);                  \
	})

#endif
