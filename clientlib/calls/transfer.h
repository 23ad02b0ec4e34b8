/* Puts and gets for calls that make their ids themselves. Thread: the one that owns the context. */
#ifndef PWC_CLIENTLIB_TRANSFER_H
#define PWC_CLIENTLIB_TRANSFER_H

#include "pwc/pwc.h"

struct room;

/* As pwc_put and pwc_get. */
int transfer_put(pwc_remote *dst, uint64_t off, const void *src, size_t len, const pwc_cid *lid,
                 const pwc_cid *rid, unsigned flags);
int transfer_get(pwc_remote *src, uint64_t off, void *dst, size_t len, const pwc_cid *lid,
                 const pwc_cid *rid, unsigned flags);

/* Before a put of so many bytes that waits, or a get (UINT64_MAX): it may have to ask for staging.
 */
void transfer_asks(struct room *room, uint64_t len);

#endif
