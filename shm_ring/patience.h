/*
 * Patience: the next action of a thread that waits. Owns the time of the last work, and a measure
 * of how busy the thread's core is.
 *
 *               no work                    none for `window_ns`
 *     work ---------------> yield, again ------------------------> sleep
 *                            |       ^                              ^
 *        a yield took longer |       | later, to see whether        |
 *        than `long_ns`, or  v       | it is still so               |
 *        the core was lost  sleep at once: 1, 4, 16 .. 1024 ms -----+
 *
 * Polling with a yield is the fastest way to wait where all others on the core yield or sleep soon,
 * and the slowest where one of them computes: a computing thread keeps the core for a scheduler's
 * slice, while a sleeper would be woken at once. A long yield shows such a thread. Each new try
 * costs another long yield, so tries become rarer.
 *
 * A short yield does not show that nobody computes. Kernels since 6.6 yield within the scheduler's
 * group alone (a control group, or a session where autogroups are on), and the threads of a daemon
 * and of its clients are often in different ones. A thread of another group takes the core in the
 * middle of the work instead (patience_lost). So the computing thread is forgotten only when the
 * waiting thread has polled for the time of two slices, and kept the core.
 *
 * A yield takes longer than a look. Where one has brought nothing, the others on the core wait,
 * too, and what they wait for may come to this thread. So a thread on which others wait looks on
 * its own for as long as the yield took, and yields again then: nobody waits much longer than with
 * yields alone, and what comes is seen sooner.
 *
 * Pure: it is handed times in ns, of one clock. Thread: the one that waits.
 */
#ifndef PWC_SHM_RING_PATIENCE_H
#define PWC_SHM_RING_PATIENCE_H

#include <stdbool.h>
#include <stdint.h>

enum patience_mode {
    PATIENCE_ADAPTIVE = 0,
    PATIENCE_DEDICATED = 1, /* polls only: the core is ours */
    PATIENCE_SLEEP = 2,     /* sleeps as soon as there is no work */
};

enum patience_step {
    PATIENCE_POLL,
    PATIENCE_YIELD,  /* and poll again; call patience_yielded */
    PATIENCE_HASTEN, /* do what is due at the deadline: sleeping until then takes longer */
    PATIENCE_SLEEP_NOW,
};

/* The first value is a guess that proved right; the second was 100 us before: docs/lab/daemon.md,
 * "Waiting". */
#define PATIENCE_WINDOW_NS UINT64_C(200000)
#define PATIENCE_LONG_NS   UINT64_C(400000)
/* For a client, on which others do not wait: where many clients poll on few cores, a round takes
 * longer than that, since a process that computes keeps its slice of 2.8 ms or more. */
#define PATIENCE_SLICE_NS UINT64_C(2500000)
/* A sleep of less than this costs all processes more than it gives. */
#define PATIENCE_WAKE_NS UINT64_C(30000)
#define PATIENCE_LOOK_NS UINT64_C(10000) /* looks between two yields take no longer */
#define PATIENCE_POLL_NS UINT64_C(20000) /* from yield to yield of a thread that polls */
/* Two slices: a program that computes would have taken the core from a thread that polls for so
 * long. */
#define PATIENCE_CALM_NS       UINT64_C(8000000)
#define PATIENCE_BLOCK_NS      UINT64_C(1000000)
#define PATIENCE_BLOCK_MOST_NS UINT64_C(1024000000)

struct patience {
    enum patience_mode mode;
    uint64_t window_ns;     /* after work, yielding pays off for this long */
    uint64_t long_ns;       /* a yield that took longer ran a program that computes */
    uint64_t worked;        /* when there was work last */
    uint64_t blocked_until; /* do not yield before */
    uint64_t block_ns;      /* how long that was last believed; 0: never, or forgotten */
    uint64_t calm_ns;       /* polled since `blocked_until` without losing the core */
    uint64_t yielded_at;    /* when the last yield ended */
    uint64_t look_until;    /* where the last yield has brought nothing */
};

static inline void patience_init(struct patience *p, enum patience_mode mode, uint64_t long_ns)
{
    *p = (struct patience){.mode = mode, .window_ns = PATIENCE_WINDOW_NS, .long_ns = long_ns};
}

/* There was work, or a wait begins: the window is open again. */
static inline void patience_worked(struct patience *p, uint64_t now)
{
    p->worked = now;
    p->look_until = 0;
}

/* Whether a yield may be tried. */
static inline bool patience_may_yield(const struct patience *p, uint64_t now)
{
    return p->mode == PATIENCE_ADAPTIVE && now >= p->blocked_until;
}

/* Whether it yields when there is no work, as long as the window is open; else it sleeps. */
static inline bool patience_yields(const struct patience *p, uint64_t now)
{
    return p->mode == PATIENCE_DEDICATED || patience_may_yield(p, now);
}

/* Instead of a yield: whether to look again first. For a thread on which others wait. */
static inline bool patience_looks(const struct patience *p, uint64_t now)
{
    return now < p->look_until;
}

/* The action when there is nothing to do before `deadline` (UINT64_MAX: no deadline). */
static inline enum patience_step patience_next(const struct patience *p, uint64_t now,
                                               uint64_t deadline)
{
    if (p->mode == PATIENCE_DEDICATED)
        return PATIENCE_POLL;
    if (patience_may_yield(p, now) && now - p->worked < p->window_ns)
        return PATIENCE_YIELD;
    return deadline <= now || deadline - now < PATIENCE_WAKE_NS ? PATIENCE_HASTEN
                                                                : PATIENCE_SLEEP_NOW;
}

/* A yield has lasted from `before` to `after`. */
void patience_yielded(struct patience *p, uint64_t before, uint64_t after);
/* The thread has lost its core for `lost` ns, up to `now`, while it neither yielded nor slept. */
void patience_lost(struct patience *p, uint64_t lost, uint64_t now);

#endif
