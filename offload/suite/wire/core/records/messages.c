/* SPDX-License-Identifier: Apache-2.0 */
/* Which handshake messages were completed? They may be in pieces, over many records. */
#include "core.h"

enum { HELLOS_MAX = 2 }; /* one more after a HelloRetryRequest */

/* Go through handshake messages that may be in pieces; which of the two that matter was completed? */
int messages_read(struct messages *m, const uint8_t *at, size_t len)
{
	int saw = 0;

	while (len) {
		size_t n;

		if (m->have < sizeof(m->head)) {
			m->head[m->have++] = *at++;
			len--;
			if (m->have < sizeof(m->head))
				continue;
			m->left = be32(m->head) & 0xffffff;
			m->longest = m->left > m->longest ? m->left : m->longest;
		}
		n = smaller(m->left, len);
		at += n, len -= n, m->left -= (uint32_t)n;
		if (m->left)
			continue;
		m->have = 0;
		m->odd |= ++m->count > HELLOS_MAX || m->head[0] != m->hello;
		saw |= m->head[0] == FINISHED ? SAW_FINISHED : m->head[0] == KEY_UPDATE ? SAW_KEY_UPDATE : 0;
	}
	return saw;
}
