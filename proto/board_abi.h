/*
 * A board: a cache line of bits by which the neighbours that reach a context (pair_abi.h) say that
 * they have written to it, so that the context need not look at each ring. The daemon creates the
 * board (a sealed memfd) with the first pair towards the context, and passes it to that context and
 * to all origins. Each origin has a bit of its own, its slot. docs/same-node.md says why this is
 * right.
 *
 * A target makes a pair quiet by setting the pair's bell to DOORBELL_QUIET. An origin that finds
 * that value sets its bit after it has written its record. A neighbour may be hostile to the
 * others: a bit that it sets for another costs a look; a bit that it clears costs a delay, because
 * the target looks at all rings now and then, and before it sleeps.
 */
#ifndef PWC_PROTO_BOARD_ABI_H
#define PWC_PROTO_BOARD_ABI_H

#include <assert.h>
#include <stdatomic.h>
#include <stdint.h>

#define BOARD_BYTES 4096u
#define BOARD_SLOTS 512u       /* one line of bits */
#define BOARD_NONE  UINT32_MAX /* slot of a pair without a bit, which is never quiet */

struct board_shared {
    /* Bit i % 64 of word i / 64: the origin with slot i has written. Set by the origin, cleared by
     * the target. */
    _Alignas(64) _Atomic uint64_t called[BOARD_SLOTS / 64];
};
static_assert(sizeof(struct board_shared) == 64, "board_shared");

#endif
