/* Decides whether yields pay off, by how long they take (patience.h). Thread: the one that
 * waits. */
#include "shm_ring/patience.h"

/* Yields do not pay off: stop them for a while, four times as long as last time. */
static void block(struct patience *p, uint64_t now)
{
    p->block_ns = p->block_ns == 0 ? PATIENCE_BLOCK_NS : 4 * p->block_ns;
    if (p->block_ns > PATIENCE_BLOCK_MOST_NS)
        p->block_ns = PATIENCE_BLOCK_MOST_NS;
    p->blocked_until = now + p->block_ns;
    p->calm_ns = 0;
}

/* After a short yield. Since the last yield the thread has polled, or slept in between. When it has
 * polled for long, the next block is shorter. */
static void grow_calm(struct patience *p, uint64_t after)
{
    uint64_t since = after - p->yielded_at;

    if (p->block_ns == 0)
        return;
    p->calm_ns += since < PATIENCE_POLL_NS ? since : PATIENCE_POLL_NS;
    if (p->calm_ns < PATIENCE_CALM_NS)
        return;
    p->calm_ns = 0;
    p->block_ns = p->block_ns > PATIENCE_BLOCK_NS ? p->block_ns / 4 : 0;
}

void patience_yielded(struct patience *p, uint64_t before, uint64_t after)
{
    uint64_t took = after - before;

    p->look_until = after + (took < PATIENCE_LOOK_NS ? took : PATIENCE_LOOK_NS);
    if (took > p->long_ns)
        block(p, after);
    else
        grow_calm(p, after);
    p->yielded_at = after;
}

void patience_lost(struct patience *p, uint64_t lost, uint64_t now)
{
    /* While yields are blocked the thread sleeps at once. Such a thread loses its core at times,
     * too, but cannot sleep sooner. */
    if (lost > p->long_ns && now >= p->blocked_until)
        block(p, now);
}
