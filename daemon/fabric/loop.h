/*
 * The fabric from this node to itself: a write or a read is a copy of memory, which poll makes.
 *
 * Thread: the progress thread. All work is done in its calls, and no memory is allocated after
 * loop_open.
 */
#ifndef PWC_FABRIC_LOOP_H
#define PWC_FABRIC_LOOP_H

#include <stdint.h>
#include "daemon/fabric/fabric.h"

/* Zero means the default. */
struct loop_config {
    uint32_t operations_max; /* 4096: most writes and reads under way; then -EAGAIN */
    uint32_t memories_max;   /* 4096 */
};

int loop_open(const struct loop_config *config, struct fabric **out);

/* Takes memory that another fabric has registered, with that fabric's index, address and key; no
 * event follows. -ENOSPC: the loop has no such index. A loop that adopts memory does not register
 * memory itself. */
int loop_adopt(struct fabric *fabric, const struct fabric_memory *name, void *base, uint64_t length,
               unsigned access);
/* Forgets memory that was adopted: from now on no operation of the loop touches it. */
void loop_disown(struct fabric *fabric, uint32_t index);

#endif
