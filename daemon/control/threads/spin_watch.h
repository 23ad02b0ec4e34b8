/*
 * Decides, without a clock, whether a thread spins in one call that does not return.
 *
 * The caller looks at the thread SPIN_LOOKS times in the time that a call may take. A thread that
 * has done anything since the first look makes progress, and the looks start over. A thread that
 * has done nothing, and has used its processor, spins. A thread that was stopped, or had no
 * processor, gets more time.
 *
 * Thread: control.
 */
#ifndef PWC_CONTROL_SPIN_WATCH_H
#define PWC_CONTROL_SPIN_WATCH_H

#include <stdbool.h>
#include <stdint.h>

#define SPIN_LOOKS 4u

struct spin_watch {
    uint64_t done;   /* rounds and commands, when the looks began */
    uint64_t cpu_ns; /* processor time used by then */
    uint32_t looks;
};

static inline void spin_watch_begin(struct spin_watch *w, uint64_t done, uint64_t cpu_ns)
{
    *w = (struct spin_watch){.done = done, .cpu_ns = cpu_ns};
}

/* One look. True: the thread has spun in one call for all looks, and has used `least_ns` of a
 * processor. */
static inline bool spin_watch_look(struct spin_watch *w, uint64_t done, uint64_t cpu_ns,
                                   uint64_t least_ns)
{
    if (done != w->done) {
        spin_watch_begin(w, done, cpu_ns);
        return false;
    }
    return ++w->looks >= SPIN_LOOKS && cpu_ns - w->cpu_ns >= least_ns;
}

#endif
