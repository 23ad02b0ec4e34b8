/*
 * An owner of the tests: node 0's engine submits on its own (daemon/engine/ops/submit.h) to a
 * context of a client. The owner keeps its state where a real owner would: in the arena, as the
 * word of its bind, which changes in the transactions of its operations. So after a death of the
 * process the word says which operations were submitted and which have ended.
 *
 * Thread: one.
 */
#ifndef PWC_TESTS_ENGINE_OWN_H
#define PWC_TESTS_ENGINE_OWN_H

#include "daemon/engine/state/flows.h"
#include "tests/engine/world/world.h"

#define OWN_OPS    32u
#define OWN_OWNER  owner_of(OWNER_KINDS - 1, 0)
#define OWN_ORIGIN UINT64_C(0x700000009) /* rank 9, context 7: no client has it */

struct own {
    struct world *world;
    uint32_t target, context; /* the target: a client of any node, and its context */
    uint32_t ended;           /* bit i: operation i has ended; from the word */
    int32_t status[OWN_OPS];
    uint32_t silent;  /* operations that ended well, without a report */
    int32_t bound;    /* status of a bind that failed */
    uint32_t arrived; /* a bit for each event at the target */
};

/* The owner's row, to be given to world_open with a `struct own` as its context. */
extern const struct owner_kind own_row;

/* Binds to the context, and waits for the answer. Returns 0, or the bind's error. When node 0 dies,
 * the call goes on when the node is back. */
int own_bind(struct own *o, struct world *w, uint32_t target, uint32_t context);
/* Submits operation `number`, with a remote event: a put of 8 bytes to its place, or without `data`
 * of no bytes. Returns 0, or the error. When node 0 dies: as own_bind. */
int own_submit(struct own *o, uint32_t number, bool data, uint16_t flags);
/* Makes rounds, at most this many, until everything that was submitted has ended, silent operations
 * too; and takes the target's events. */
void own_finish(struct own *o, uint32_t rounds);
/* Frees everything that the owner has. */
void own_leave(struct own *o);

#endif
