/* SPDX-License-Identifier: Apache-2.0 */
/* Records sealed by intel-ipsec-mb; a build without it, and other ciphers and processors, leave them to libcrypto. */
#ifndef WIRE_GCM_H
#define WIRE_GCM_H

#include "crypt.h"

struct gcm;

#ifdef WITH_IPSEC_MB
struct gcm *gcm_key(struct gcm **g, const struct epoch *e);
void gcm_begin(struct gcm *g, const struct label_of_record *l);
void gcm_text(struct gcm *g, const uint8_t *plain, size_t len, uint8_t *out);
void gcm_end(struct gcm *g, uint8_t tag[TAG]);
void gcm_free(struct gcm *g);
const char *gcm_name(void);
#else
#define gcm_key(g, e) ((struct gcm *)NULL)
#define gcm_begin(g, l) ((void)0)
#define gcm_text(g, plain, len, out) ((void)0)
#define gcm_end(g, tag) ((void)0)
#define gcm_free(g) ((void)0)
#define gcm_name() NULL
#endif

#endif
