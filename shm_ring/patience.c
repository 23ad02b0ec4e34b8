/* Decides by the length of yields (patience.h). Thread: the one that waits. */
#include "shm_ring/patience.h"

void patience_yielded(struct patience *p, uint64_t before, uint64_t after)
{
    uint64_t took = after - before;

    p->look_until = after + (took < PATIENCE_LOOK_NS ? took : PATIENCE_LOOK_NS);
    if (took <= p->long_ns) {
        if (p->block_ns > 0 && after - p->blocked_until >= p->block_ns)
            p->block_ns = 0;
        return;
    }
    p->block_ns = p->block_ns == 0 ? PATIENCE_BLOCK_NS : 4 * p->block_ns;
    if (p->block_ns > PATIENCE_BLOCK_MOST_NS)
        p->block_ns = PATIENCE_BLOCK_MOST_NS;
    p->blocked_until = after + p->block_ns;
}
