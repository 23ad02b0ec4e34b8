/*
 * Vectors and shapes: many pieces of memory in one put or get, with one local and one remote event.
 * Conventions as in pwc.h.
 *
 * A vector is a list of pieces; a shape is a regular list: a block of a matrix, every third
 * element, a mirrored row. Pieces that are adjacent on both sides are joined: consecutive pieces of
 * a list, and contiguous dimensions of a shape. At most 1024 pieces may be left after that. Either
 * all of them are submitted, or none.
 *
 * The terms are those of ARMCI's vector and strided copies (Nieplocha and Carpenter, "ARMCI: A
 * Portable Remote Memory Copy Library for Distributed Array Libraries and Compiler Run-time
 * Systems", 1999), which MPI expresses by derived datatypes.
 */
#ifndef PWC_VECTOR_H
#define PWC_VECTOR_H

#include <pwc/pwc.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A piece: `len` bytes at `local`, and at offset `off` of the remote region. A piece of 0 bytes is
 * ignored.
 */
struct pwc_piece {
    uint64_t off;
    void *local; /* a put only reads there */
    size_t len;
};

/* Pieces that one call may have; joined pieces count as one. */
#define PWC_PIECES_MAX 1024

/*
 * A block of up to four dimensions: count[0] times count[1] ... elements of `element` bytes, the
 * last dimension the innermost, as in an array of C. A stride is the distance in bytes from one
 * index of its dimension to the next, on its side, and may be negative. Element (i, j, ...) stands
 * i * stride[0] + j * stride[1] + ... bytes from the start of its side.
 *
 *     remote side of dims 1, element 4, count 3, stride 8         off
 *                                                                 |####....####....####....
 */
struct pwc_shape {
    uint32_t dims;     /* 1 to 4 */
    uint32_t reserved; /* 0 */
    size_t element;
    size_t count[4];
    ptrdiff_t local_stride[4], remote_stride[4];
};

/*
 * Put `n` pieces to the region behind `dst`. The local event (lid) says that all have been placed
 * at the target, or, with the first error, that one has failed; its length is that of all pieces.
 * The remote event (rid) appears at the target when all data is there. After an error there is no
 * remote event, and each piece may have been placed or not.
 *
 * The pieces must not overlap at the target, and are placed in any order; where two pieces overlap,
 * either may win. The list may be changed when the call has returned. The sources follow the rules
 * of pwc_put, each piece for itself: up to pwc_packed_max bytes are copied at once from any memory,
 * longer pieces must be in a region of this client and must not be changed until the local event.
 * No pieces, or none with bytes, are a pure notification. Never blocks,
 * except where pwc_put does, and with PWC_WAIT.
 *
 * In the order of events a vector is one put. Flags and results as those of pwc_put, and
 *     -E2BIG      more than PWC_PIECES_MAX pieces, or more than half of the submission ring
 *                 (pwc_ctx_attr), where a packed piece takes its bytes and about 10 more, a longer
 *                 one 64; or more than half of the local ring, where each piece that is not packed
 *                 takes 48
 *     -EMSGSIZE   also when all pieces together are over pwc_message_max
 *     -EFAULT     one of several pieces is over pwc_packed_max, and in no region
 */
PWC_API int pwc_putv(pwc_remote *dst, const struct pwc_piece *pieces, size_t n, pwc_cid lid,
                     pwc_cid rid, unsigned flags);

/*
 * Get `n` pieces from the region behind `src`. Each destination must be in a region of this client
 * and must not be touched until the local event, which says that all data is there, or, with the
 * first error, that one piece has failed: then any of the others may have arrived. The remote event
 * notifies the owner that all pieces have been read. Destinations must not overlap. As pwc_putv.
 */
PWC_API int pwc_getv(pwc_remote *src, const struct pwc_piece *pieces, size_t n, pwc_cid lid,
                     pwc_cid rid, unsigned flags);

/*
 * Put the elements of a shape; the first element is at `src`, and is placed at offset `off` of the
 * region behind `dst`. As pwc_putv with a piece for each element, but the sources follow the rule
 * of one put: where all elements together have over pwc_packed_max bytes and lie in a region of
 * this client, they must not be changed until the local event. -EINVAL also: `dims` is not 1 to 4,
 * or the reserved word is not 0.
 */
PWC_API int pwc_put_shape(pwc_remote *dst, uint64_t off, const void *src,
                          const struct pwc_shape *shape, pwc_cid lid, pwc_cid rid, unsigned flags);

/* Get the elements of a shape; the first element is at offset `off` of the region behind `src`, and
 * is copied to `dst`. As pwc_getv; -EINVAL as above. */
PWC_API int pwc_get_shape(pwc_remote *src, uint64_t off, void *dst, const struct pwc_shape *shape,
                          pwc_cid lid, pwc_cid rid, unsigned flags);

#ifdef __cplusplus
}
#endif
#endif
