/* SPDX-License-Identifier: Apache-2.0 */
/* The files of a question: mapped, or read into memory that is wiped afterwards. */
#ifndef WIRE_FILES_H
#define WIRE_FILES_H

#include "bytes.h"
#include "text.h"

enum { KEYLOG_MAX = 64 << 20 };

int file_map(const char *what, const char *path, struct bytes *b, struct failure *f);
void file_unmap(struct bytes *b);
int keylog_read(const char *path, struct bytes *b, struct failure *f);
void keylog_wipe(struct bytes *b);

#endif
