/* One call of pwc/atomic.h, as the library passes it on. Thread: the one that owns the context.
 */
#ifndef PWC_CLIENTLIB_ATOMIC_H
#define PWC_CLIENTLIB_ATOMIC_H

#include <stddef.h>
#include <stdint.h>
#include "pwc/pwc.h"
#include "pwc/request.h"

struct atomic_call {
    pwc_remote *dst;
    uint64_t off;
    uint8_t code; /* proto/word_abi.h */
    size_t count;
    const void *operands; /* as word_apply_all takes them */
    void *result;         /* NULL: nothing is fetched */
    const pwc_cid *lid, *rid;
    unsigned flags;              /* PWC_* */
    struct pwc_request *request; /* the request given in place of the local id, or NULL */
};

#endif
