/*
 * Makes and opens credentials of MUNGE: this node's munged vouches for our user, and says which
 * user another node's munged has vouched for. The calls block, so the control thread must not make
 * them while it serves (munge_async.h).
 *
 * Thread: any.
 */
#ifndef PWC_CONTROL_CREDENTIAL_H
#define PWC_CONTROL_CREDENTIAL_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Makes a credential that contains `payload` and that only our own user can open; the caller frees
 * it. -ENOTSUP: this pwcd was built without MUNGE; -ECONNREFUSED: munged does not answer; `why` has
 * the reason. */
int credential_make(const uint8_t *payload, size_t size, char **out, char *why, size_t why_size);
/* Opens a credential: gives its user, and its payload of exactly `size` bytes. -EACCES: it is not
 * valid, has expired, or was made for another user. */
int credential_open(const char *credential, uint8_t *payload, size_t size, uid_t *uid, char *why,
                    size_t why_size);

#endif
