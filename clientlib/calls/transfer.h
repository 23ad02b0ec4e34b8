/* Puts and gets for calls of the library that make the ids themselves. Thread: the one that owns
 * the context. */
#ifndef PWC_CLIENTLIB_TRANSFER_H
#define PWC_CLIENTLIB_TRANSFER_H

#include "pwc/pwc.h"

struct room;

/* As pwc_put and pwc_get. */
int transfer_put(pwc_remote *dst, uint64_t off, const void *src, size_t len, const pwc_cid *lid,
                 const pwc_cid *rid, unsigned flags);
int transfer_get(pwc_remote *src, uint64_t off, void *dst, size_t len, const pwc_cid *lid,
                 const pwc_cid *rid, unsigned flags);

/* Called before a waiting put of `len` bytes, or a waiting get (UINT64_MAX), which may have to ask
 * the daemon for staging.
 */
void transfer_asks(struct room *room, uint64_t len);

#endif
