/*
 * How long the progress thread's steps take: the longest since the start, and the longest of each
 * of the last two seconds. Pure: it is handed times and usage.
 *
 * A step lasts from one look at the clock to the next. Time in which the thread was switched out
 * against its will is not the step's, and no more is time that the hypervisor took from the
 * processor: the step has taken no more than the processor time since `base` was noted, which is at
 * most STEP_BASE_NS before the step began. Time in which the thread has blocked is the step's. So
 * only a step that looks long asks the system, and no other one.
 *
 * Thread: the progress thread; step_watch_read: any.
 */
#ifndef PWC_CONTROL_STEP_WATCH_H
#define PWC_CONTROL_STEP_WATCH_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define STEP_BASE_NS UINT64_C(500000) /* how old `base` may be when a step begins */
#define STEP_SURE_NS UINT64_C(100000) /* a switch takes longer, or does not matter */

/* The thread's use of its processor, as the kernel counts it. */
struct step_usage {
    uint64_t cpu_ns;
    uint64_t blocked; /* times that it has waited by its own will */
};

struct step_watch {
    uint64_t began; /* the step under way, ns; 0: none is */
    uint64_t above; /* shorter steps change nothing */
    uint64_t second_ends;
    struct step_usage base;
    uint64_t base_at;
    uint64_t sleeps; /* between steps, since then: 1 at most */
    /* Each is one word, so that a reader has the parts that belong together (step_watch.c). */
    _Atomic uint64_t longest;
    _Atomic uint64_t seconds[2];
};

/* Parts are numbers of enum engine_part. */
struct step_longest {
    uint64_t ns, part;  /* since the start */
    uint64_t recent_ns; /* in this second and the last */
};

/* Whether the step that ends now may change anything: else step_watch_end need not be called. */
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
