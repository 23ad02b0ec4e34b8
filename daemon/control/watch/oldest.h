/*
 * The oldest of many operations, for a view that has room for a bounded number of rows. Thread: one
 * at a time.
 */
#ifndef PWC_CONTROL_OLDEST_H
#define PWC_CONTROL_OLDEST_H

#include <stdbool.h>
#include <stdint.h>
#include "views/rows.h"

struct oldest_op {
    struct view_op op;
    uint32_t engine;
};

struct oldest {
    struct oldest_op *ops; /* room for 2 * most, so that a sort serves `most` operations */
    uint32_t count, most;
    bool left_out;     /* some operations were too young */
    uint64_t least_ns; /* once some were left out: the age that an operation must exceed */
};

/* 0, or -ENOMEM; then nothing is kept, and the other functions may be called. */
int oldest_open(struct oldest *o, uint32_t most);
/* Offers an operation. False: the operation is too young, and so are all younger ones. */
bool oldest_take(struct oldest *o, const struct view_op *op, uint32_t engine);
/* Puts the operations in order, the oldest first, and leaves `most` of them. */
void oldest_sort(struct oldest *o);
void oldest_close(struct oldest *o);

#endif
