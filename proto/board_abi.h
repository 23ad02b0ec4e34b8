/*
 * A board: a line of bits in which the neighbours that reach a context (pair_abi.h) say that they
 * have written to it, so that it need not look at each ring. The daemon creates the board (a sealed
 * memfd) with the first pair towards the context, and passes it to that context and to all origins.
 * Each origin has a bit of its own, its slot. docs/same-node.md says why this is right.
 *
 * A target leaves a pair quiet by DOORBELL_QUIET in the pair's bell. An origin that finds that
 * value sets its bit, after its record. The neighbours are hostile to each other: a bit too many
 * costs a look. A bit that another neighbour has cleared costs a delay, since the target looks at
 * all rings now and then, and before it sleeps.
 */
#ifndef PWC_PROTO_BOARD_ABI_H
#define PWC_PROTO_BOARD_ABI_H

#include <assert.h>
#include <stdatomic.h>
#include <stdint.h>

#define BOARD_BYTES 4096u
#define BOARD_SLOTS 512u       /* one line of bits */
#define BOARD_NONE  UINT32_MAX /* as a slot: the pair is never quiet */

struct board_shared {
    /* Bit i % 64 of word i / 64: slot i calls. Set by its origin, taken by the target. */
    _Alignas(64) _Atomic uint64_t called[BOARD_SLOTS / 64];
};
static_assert(sizeof(struct board_shared) == 64, "board_shared");

#endif
