/* Flush: no record; it ends when all operations before it in its flow have ended. Thread: the
 * progress thread. */
#include "daemon/engine/ops/op.h"

static int flush_validate(struct engine *e, uint32_t client, const struct submit_record *r,
                          const struct remote *remote)
{
    return r->length != 0 || r->flags & (SUBMIT_INLINE | SUBMIT_UNORDERED) ? -EPROTO : 0;
}

const struct op_kind op_flush = {.at_head = true, .validate = flush_validate};
