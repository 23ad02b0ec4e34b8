/* Flush: no record; ends when every operation before it in its flow has. Thread: the progress
 * thread. */
#include "daemon/engine/ops/op.h"

static int flush_validate(struct engine *e, const struct session *s, const struct submit_record *r,
                          const struct remote *remote)
{
    return r->length != 0 || r->flags & (SUBMIT_INLINE | SUBMIT_UNORDERED) ? -EPROTO : 0;
}

static int flush_start(struct engine *e, uint32_t flow, uint64_t slot, struct op *op)
{
    return 0;
}

static int flush_record(struct engine *e, uint32_t flow, uint64_t slot, struct op *op)
{
    return 0;
}

static void flush_on_fabric(struct engine *e, uint32_t flow, struct op *op)
{
}

const struct op_kind op_flush = {flush_validate, flush_start, flush_record, flush_on_fabric};
