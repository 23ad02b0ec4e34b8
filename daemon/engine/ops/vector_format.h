/* The format of the short pieces of a vector, in a submission, in its operation (op_vector.c) and
 * on the wire (record_vector.c). Thread: the progress thread. */
#ifndef PWC_ENGINE_VECTOR_FORMAT_H
#define PWC_ENGINE_VECTOR_FORMAT_H

#include <errno.h>
#include <string.h>
#include "daemon/engine/state/state.h"

/* The piece that stands at `at`, and where the next one does. */
static inline uint32_t vector_step(const uint8_t *block, uint32_t at, uint64_t *offset,
                                   uint32_t *length)
{
    struct vector_piece piece;

    memcpy(&piece, block + at, sizeof(piece));
    *offset = piece.place >> VECTOR_LENGTH_BITS;
    *length = (uint32_t)piece.place & ((1u << VECTOR_LENGTH_BITS) - 1);
    return at + (uint32_t)sizeof(piece) + abi_pad8(*length);
}

/* Bytes of all pieces of a block, or -EPROTO: they do not fill it. */
static inline int64_t vector_payload(const uint8_t *block, uint32_t bytes)
{
    uint32_t at = 0, length;
    uint64_t offset;
    int64_t sum = 0;

    while (at < bytes && bytes - at >= sizeof(struct vector_piece)) {
        at = vector_step(block, at, &offset, &length);
        sum += length;
    }
    return at == bytes ? sum : -EPROTO;
}

/* Whether all pieces of a block stand within a region of so many bytes: 0 or -ERANGE. */
static inline int vector_within(const uint8_t *block, uint32_t bytes, uint64_t room)
{
    uint32_t at = 0, length;
    uint64_t offset;

    while (at < bytes) {
        at = vector_step(block, at, &offset, &length);
        if (!(offset <= room && length <= room - offset))
            return -ERANGE;
    }
    return 0;
}

#endif
