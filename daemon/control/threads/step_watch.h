/*
 * Keeps how long the progress thread's steps take: the longest since the start, and the longest of
 * each of the last two seconds. Pure: the caller gives times and usage.
 *
 * A step lasts from one look at the clock to the next. Time in which the kernel ran another thread
 * instead, or the hypervisor took the processor, does not count: a step takes at most the processor
 * time since `base` was noted, which is at most STEP_BASE_NS before the step began. Time in which
 * the thread has blocked counts. Only for a step that looks long is the system asked for the
 * thread's usage.
 *
 * Thread: the progress thread; step_watch_read: any.
 */
#ifndef PWC_CONTROL_STEP_WATCH_H
#define PWC_CONTROL_STEP_WATCH_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define STEP_BASE_NS UINT64_C(500000) /* how old `base` may be when a step begins */
#define STEP_SURE_NS UINT64_C(100000) /* a shorter step has no switch that matters */

/* The thread's use of its processor, as the kernel counts it. */
struct step_usage {
    uint64_t cpu_ns;
    uint64_t blocked; /* how often the thread has blocked */
};

struct step_watch {
    uint64_t began; /* when the step under way began, ns; 0: there is none */
    uint64_t above; /* the longest step of this second: shorter ones change nothing */
    uint64_t second_ends;
    struct step_usage base;
    uint64_t base_at;
    uint64_t sleeps; /* sleeps between steps since `base_at`: 1 at most */
    /* Each is one word, so that a reader gets parts that belong together (step_watch.c). */
    _Atomic uint64_t longest;
    _Atomic uint64_t seconds[2];
};

/* Parts are numbers of enum engine_part. */
struct step_longest {
    uint64_t ns, part;  /* since the start */
    uint64_t recent_ns; /* in this second and the last */
};

/* Whether the step that ends now may change anything. If not, step_watch_end need not be called. */
static inline bool step_watch_asks(const struct step_watch *w, uint64_t now)
{
    return now - w->began > w->above || now >= w->second_ends;
}

/* The part of a step's `took` ns in which the thread ran, by its usage at the step's end. */
uint64_t step_watch_own(const struct step_watch *w, uint64_t took, const struct step_usage *usage);
/* Records that a step has ended which took this long. */
void step_watch_end(struct step_watch *w, uint64_t now, uint64_t took, uint32_t part);
void step_watch_read(const struct step_watch *w, uint64_t now, struct step_longest *out);

#endif
