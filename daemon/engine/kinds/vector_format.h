/* The format of the short pieces of a vector, in a submission, in its operation (op_vector.c) and
 * on the wire (record_vector.c). Thread: the progress thread. */
#ifndef PWC_ENGINE_VECTOR_FORMAT_H
#define PWC_ENGINE_VECTOR_FORMAT_H

#include <errno.h>
#include <string.h>
#include "daemon/engine/kinds/access.h"
#include "daemon/engine/state/state.h"

/* Reads the piece at `at`, and returns where the next one begins. */
static inline uint32_t vector_step(const uint8_t *block, uint32_t at, uint64_t *offset,
                                   uint32_t *length)
{
    struct vector_piece piece;

    memcpy(&piece, block + at, sizeof(piece));
    *offset = piece.place >> VECTOR_LENGTH_BITS;
    *length = (uint32_t)piece.place & ((1u << VECTOR_LENGTH_BITS) - 1);
    return at + (uint32_t)sizeof(piece) + abi_pad8(*length);
}

/* The pieces of a block together: their bytes, the offset after the furthest of them, and what
 * short pieces cost beyond their bytes. */
struct vector_extent {
    uint64_t payload, end, rounded;
};

/* Looks at all pieces: 0, or -EPROTO: they do not fill the block. */
static inline int vector_look(const uint8_t *block, uint32_t bytes, struct vector_extent *out)
{
    uint32_t at = 0, length;
    uint64_t offset;

    *out = (struct vector_extent){0, 0, 0};
    while (at < bytes && bytes - at >= sizeof(struct vector_piece)) {
        at = vector_step(block, at, &offset, &length);
        out->payload += length;
        out->rounded += access_rounded(length);
        if (offset + length > out->end) /* no overflow: 48 and 16 bits */
            out->end = offset + length;
    }
    return at == bytes ? 0 : -EPROTO;
}

#endif
