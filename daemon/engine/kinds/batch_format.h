/* The format of a batch of small puts, or of atomics, in its operation (op_batch.c) and on the wire
 * (record_batch.c, record_atomic.c). Thread: the progress thread. */
#ifndef PWC_ENGINE_BATCH_FORMAT_H
#define PWC_ENGINE_BATCH_FORMAT_H

#include <string.h>
#include "daemon/engine/state/state.h"

#define BATCH_PUTS_MAX    WIRE_BATCH_PUTS
#define BATCH_BYTES_MAX   2048u /* of puts and payloads */
#define BATCH_PAYLOAD_MAX 256u  /* of one put */

/* Most payloads have eight bytes, and are copied without a call. */
static inline void batch_copy(void *to, const void *from, uint32_t bytes)
{
    if (bytes == sizeof(uint64_t))
        memcpy(to, from, sizeof(uint64_t));
    else
        memcpy(to, from, bytes);
}

/* Reads the put at `at`, and returns where the next one begins. */
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
