/* SPDX-License-Identifier: Apache-2.0 */
/* What counts for a connection: options, the policy and the certificates that they name, read again for each, and a digest of
 * all that, which a client of the resident compares with its own. ktls-handoff.8 describes the digest. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <openssl/evp.h>

#include "handoff.h"

enum { TRUST_MAX = 4 * 1024 * 1024, SHA_BYTES = 32 };

static char *read_to_end(int fd, size_t size, size_t *len)
{
	char *text = malloc(size + 1);
	ssize_t n = 1;

	for (*len = 0; text && n > 0 && *len < size; *len += n > 0 ? (size_t)n : 0)
		n = read(fd, text + *len, size - *len);
	if (text && n >= 0) {
		text[*len] = '\0';
		return text;
	}
	free(text);
	return NULL;
}

/* Open a regular file of at most `most` bytes; -1 with *f. */
static int open_regular(const char *option, const char *path, size_t most, size_t *size, struct failure *f)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat st;

	if (fd < 0 || fstat(fd, &st)) {
		failed(f, RC_USAGE, "usage", "%s %s: %s", option, path, strerror(errno));
	} else if (!S_ISREG(st.st_mode) || (size_t)st.st_size > most) {
		failed(f, RC_USAGE, "usage", "%s %s: not a regular file, or longer than %zu bytes", option, path, most);
	} else {
		*size = (size_t)st.st_size;
		return fd;
	}
	if (fd >= 0)
		close(fd);
	return -1;
}

/* The text of a file with a NUL behind it, to be freed; NULL with *f. */
static char *whole(const char *option, const char *path, size_t most, size_t *len, struct failure *f)
{
	size_t size = 0;
	int fd = open_regular(option, path, most, &size, f);
	char *text = fd < 0 ? NULL : read_to_end(fd, size, len);

	if (fd >= 0 && !text)
		failed(f, RC_USAGE, "usage", "%s %s: %s", option, path, strerror(errno));
	if (fd >= 0)
		close(fd);
	return text;
}

static void hex(const unsigned char *from, char out[DIGEST])
{
	for (int i = 0; i < SHA_BYTES; i++)
		snprintf(out + 2 * i, 3, "%02x", from[i]);
}

static bool add(EVP_MD_CTX *sum, const char *key, const char *value)
{
	return !value || (EVP_DigestUpdate(sum, key, strlen(key)) && EVP_DigestUpdate(sum, "=", 1) &&
			  EVP_DigestUpdate(sum, value, strlen(value)) && EVP_DigestUpdate(sum, "\n", 1));
}

/* The digest of the certificates, in small pieces: it is asked for at each request, and a bundle is large. */
static bool digest_trust(const struct options *o, char out[DIGEST], struct failure *f)
{
	const char *option = o->ca ? "--ca" : "--pin", *path = o->ca ? o->ca : o->pin;
	unsigned char part[8192], sha[EVP_MAX_MD_SIZE];
	EVP_MD_CTX *sum = EVP_MD_CTX_new();
	size_t size;
	int fd = open_regular(option, path, TRUST_MAX, &size, f);
	ssize_t n = -1;
	bool ok = sum && EVP_DigestInit_ex(sum, EVP_sha256(), NULL);

	while (ok && fd >= 0 && (n = read(fd, part, sizeof(part))) > 0)
		ok = EVP_DigestUpdate(sum, part, (size_t)n);
	if (fd >= 0 && n < 0)
		failed(f, RC_USAGE, "usage", "%s %s: %s", option, path, strerror(errno));
	ok = ok && n == 0 && EVP_DigestFinal_ex(sum, sha, NULL);
	if (ok)
		hex(sha, out);
	EVP_MD_CTX_free(sum);
	if (fd >= 0)
		close(fd);
	return ok;
}

/* SHA-256 over lines of KEY=VALUE; offload/connect/policy.py and ktls-connect.h make the same ones. */
static bool digest(const struct options *o, const char *trust, char out[DIGEST])
{
	unsigned char sha[EVP_MAX_MD_SIZE];
	const char *verify = o->pin ? "peer" : o->ca ? "chain" : "no";
	EVP_MD_CTX *sum = EVP_MD_CTX_new();
	bool ok = sum && EVP_DigestInit_ex(sum, EVP_sha256(), NULL) &&
		  add(sum, "sslVersion", o->tls == 12 ? "TLSv1.2" : "TLSv1.3") && add(sum, "ciphers", o->ciphers) &&
		  add(sum, "curves", o->curves) && add(sum, "verify", verify) && add(sum, "name", o->name) &&
		  add(sum, "sni", o->sni) && add(sum, "CAfile", trust) && EVP_DigestFinal_ex(sum, sha, NULL);

	if (ok)
		hex(sha, out);
	EVP_MD_CTX_free(sum);
	return ok;
}

static bool read_policy(struct rules *r, struct failure *f)
{
	struct options *o = &r->o;
	size_t len;

	if (!o->policy)
		return true;
	r->policy = whole("--policy", o->policy, POLICY_MAX, &len, f);
	if (!r->policy)
		return false;
	if (memchr(r->policy, '\0', len))
		return failed(f, RC_USAGE, "usage", "--policy %s: not text", o->policy);
	return policy_parse(r->policy, o->policy, o, f) && options_check(o, f);
}

static bool read_trust(struct rules *r, struct failure *f)
{
	struct options *o = &r->o;

	if (o->ca || o->pin)
		o->pem = r->trust = whole(o->ca ? "--ca" : "--pin", o->ca ? o->ca : o->pin, TRUST_MAX, &o->pem_len, f);
	return r->trust || (!o->ca && !o->pin);
}

/* Read what r->o names; what is missing in it is filled in. False with *f; rules_free() is due in any case. */
bool rules_read(struct rules *r, struct failure *f)
{
	return read_policy(r, f) && read_trust(r, f);
}

void rules_free(struct rules *r)
{
	free(r->policy);
	free(r->trust);
	SSL_CTX_free(r->ctx);
	*r = (struct rules){ .policy = NULL };
}

/* A context for *fresh in place of the one that stands. */
static bool replace(struct standing *s, struct rules *fresh, const char *trust, struct failure *f)
{
	unsigned char sha[EVP_MAX_MD_SIZE];
	char now[DIGEST] = "";
	SSL_CTX *ctx;

	if (!read_trust(fresh, f))
		return false;
	if (fresh->trust && EVP_Digest(fresh->trust, fresh->o.pem_len, sha, NULL, EVP_sha256(), NULL))
		hex(sha, now);
	if (strcmp(now, trust) != 0)
		return failed(f, RC_USAGE, "usage", "the certificates changed while they were read");
	ctx = handshake_context(&fresh->o, f);
	if (!ctx)
		return false;
	SSL_CTX_free(s->ctx); /* who still uses it has it, too */
	s->ctx = ctx;
	memcpy(s->digest, fresh->digest, sizeof(s->digest));
	free(fresh->trust); /* many clients must not hold a bundle each */
	fresh->o.pem = fresh->trust = NULL;
	return true;
}

/* The rules that the files say now; false with *f, and rules_free() is due in any case. */
bool rules_renew(struct standing *s, struct rules *fresh, struct failure *f)
{
	char trust[DIGEST] = "";

	*fresh = (struct rules){ .o = *s->said };
	if (!read_policy(fresh, f) || ((fresh->o.ca || fresh->o.pin) && !digest_trust(&fresh->o, trust, f)))
		return false;
	if (!digest(&fresh->o, *trust ? trust : NULL, fresh->digest))
		return failed(f, RC_INTERNAL, "internal", "OpenSSL cannot compute SHA-256");
	if ((!s->ctx || strcmp(s->digest, fresh->digest) != 0) && !replace(s, fresh, trust, f))
		return false;
	SSL_CTX_up_ref(s->ctx);
	fresh->ctx = s->ctx;
	return true;
}

/* The same for one client among others. */
bool rules_now(struct standing *s, struct rules *fresh, struct failure *f)
{
	struct failure why = { 0 };
	bool ok;

	pthread_mutex_lock(&s->lock);
	ok = rules_renew(s, fresh, &why);
	if (!ok && !s->broken)
		say("%s; no client is served until it is fixed", why.message);
	s->broken = !ok;
	pthread_mutex_unlock(&s->lock);
	return ok || failed(f, RC_NOT_HERE, "policy", "the resident's policy is wrong: %s", why.message);
}

/* Is it the client's policy, too? */
bool rules_agree(const struct rules *r, const char *theirs, struct failure *f)
{
	if (!theirs)
		return failed(f, RC_USAGE, "usage", "the request has no --digest: the client is older than the resident");
	return !strcmp(theirs, r->digest) ||
	       failed(f, RC_NOT_HERE, "policy", "the resident has another policy: its digest begins with %.8s, yours with %.8s",
		      r->digest, theirs);
}
