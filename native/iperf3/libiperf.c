/* SPDX-License-Identifier: Apache-2.0 */
/* What does libiperf do by itself? The originals of functions that hooks.c defines once more. */
#include "original.h"
#include "tls.h"

cJSON *real_add_string(cJSON *object, const char *name, const char *value)
{
	return REAL(cJSON_AddStringToObject, object, name, value);
}

cJSON *real_get_item(const cJSON *object, const char *name)
{
	return REAL(cJSON_GetObjectItem, object, name);
}

int real_nwrite(int fd, const char *buf, size_t count, int protocol)
{
	return REAL(Nwrite, fd, buf, count, protocol);
}
