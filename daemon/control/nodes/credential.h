/*
 * Credentials of MUNGE: this node's munged vouches for our user, another node's says whom it was
 * that it vouched for. The calls wait for munged: not on the control thread while it serves.
 *
 * Thread: any.
 */
#ifndef PWC_CONTROL_CREDENTIAL_H
#define PWC_CONTROL_CREDENTIAL_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* With `payload` in it, for our own user alone to open; the caller's to free. -ENOTSUP: built
 * without; -ECONNREFUSED, with the reason in `why`. */
int credential_make(const uint8_t *payload, size_t size, char **out, char *why, size_t why_size);
/* Whose it is, and its payload of exactly that size. -EACCES: it is not valid (any more, here). */
int credential_open(const char *credential, uint8_t *payload, size_t size, uid_t *uid, char *why,
                    size_t why_size);

#endif
