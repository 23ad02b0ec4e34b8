/*
 * Owns how the lengths of steps are kept (step_watch.h). Thread: progress; step_watch_read: any.
 *
 *     longest   | ns, 61 bits                    | part, 3 |
 *     seconds[] | ns, 40 bits | number of the second, 24   |
 */
#include "daemon/control/threads/step_watch.h"

#define SECOND_NS   UINT64_C(1000000000)
#define PART_BITS   3
#define NUMBER_BITS 24
#define NUMBER_MASK ((UINT64_C(1) << NUMBER_BITS) - 1)
#define NS_MOST     ((UINT64_C(1) << 40) - 1) /* 18 minutes */

uint64_t step_watch_own(const struct step_watch *w, uint64_t took, const struct step_usage *usage)
{
    uint64_t used = usage->cpu_ns - w->base.cpu_ns;

    return usage->blocked - w->base.blocked > w->sleeps || used > took ? took : used;
}

void step_watch_end(struct step_watch *w, uint64_t now, uint64_t took, uint32_t part)
{
    uint64_t second = now / SECOND_NS;
    _Atomic uint64_t *slot = &w->seconds[second % 2];

    if (took > NS_MOST)
        took = NS_MOST;
    if (now >= w->second_ends) {
        w->second_ends = (second + 1) * SECOND_NS;
        w->above = 0;
        atomic_store_explicit(slot, second & NUMBER_MASK, memory_order_relaxed);
    }
    if (took > atomic_load_explicit(&w->longest, memory_order_relaxed) >> PART_BITS)
        atomic_store_explicit(&w->longest, took << PART_BITS | part, memory_order_relaxed);
    if (took > w->above) { /* after `longest`, so that no reader sees a second with a longer step
                            * than `longest` */
        w->above = took;
        atomic_store_explicit(slot, took << NUMBER_BITS | (second & NUMBER_MASK),
                              memory_order_release);
    }
}

void step_watch_read(const struct step_watch *w, uint64_t now, struct step_longest *out)
{
    uint64_t second = now / SECOND_NS, longest;

    *out = (struct step_longest){.ns = 0};
    for (uint32_t i = 0; i < 2; i++) {
        uint64_t word = atomic_load_explicit(&w->seconds[i], memory_order_acquire);
        uint64_t ns = word >> NUMBER_BITS;

        /* The thread may be a second ahead of the reader's clock reading. */
        if (((second + 1 - (word & NUMBER_MASK)) & NUMBER_MASK) <= 2 && ns > out->recent_ns)
            out->recent_ns = ns;
    }
    longest = atomic_load_explicit(&w->longest, memory_order_relaxed);
    out->ns = longest >> PART_BITS;
    out->part = longest & ((1u << PART_BITS) - 1);
}
