/*
 * Batches of small puts (op_batch.c), at the origin; and the steps over what they carry, for both
 * ends. Thread: the progress thread.
 */
#ifndef PWC_ENGINE_OP_BATCH_H
#define PWC_ENGINE_OP_BATCH_H

#include <string.h>
#include "daemon/engine/state/state.h"

#define BATCH_PUTS_MAX    64u
#define BATCH_BYTES_MAX   2048u /* of puts and payloads */
#define BATCH_PAYLOAD_MAX 256u  /* of one put */

/* The record, which has been copied, could be a batch's first, and there is something behind it. */
bool batch_may_begin(const struct ring_consumer *ring, const struct submit_record *first);
/*
 * Takes a batch that begins with the record that stands in e->record and has passed all checks; its
 * local events may take `space` bytes. The number of puts taken; 0: it has to be taken by itself,
 * and still stands there: a client's record is read once.
 */
int batch_take(struct engine *e, uint32_t session, uint64_t space, int budget);

/* Most payloads have eight bytes: those are copied without a call. */
static inline void batch_copy(void *to, const void *from, uint32_t bytes)
{
    if (bytes == sizeof(uint64_t))
        memcpy(to, from, sizeof(uint64_t));
    else
        memcpy(to, from, bytes);
}

/* Operations as their client counts them. */
static inline uint32_t op_count(const struct op *op)
{
    return op->kind == OP_BATCH ? (uint32_t)op->rid : 1;
}
/* Of put i of a batch. */
uint64_t batch_lid(const struct op *op, uint32_t i);
/* The put that stands at `at`, and where the next one does. */
static inline uint32_t batch_step(const uint8_t *block, uint32_t at, uint64_t *rid,
                                  uint64_t *offset, uint32_t *length)
{
    struct wire_batch_put put;

    memcpy(&put, block + at, sizeof(put));
    *rid = put.rid;
    *offset = put.place >> BATCH_LENGTH_BITS;
    *length = (uint32_t)put.place & ((1u << BATCH_LENGTH_BITS) - 1);
    return at + (uint32_t)sizeof(put) + abi_pad8(*length);
}

#endif
