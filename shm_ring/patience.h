/*
 * Patience: the next action of a thread that waits. The struct holds the time of the last work, and
 * a measure of how busy the thread's core is.
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
 * slice, while a sleeper would be woken at once. A long yield is the sign of such a thread. Each
 * new try costs another long yield, so tries become rarer. But a thread that runs now and then (an
 * agent that monitors the node, a worker of the kernel) also makes a yield long. So a time without
 * a long yield shortens the next block, by steps.
 *
 * A short yield does not show that nobody computes. Since Linux 6.6 a thread yields only to threads
 * of its own scheduler group (daemon/control/clients/sched_group.h), and the threads of a daemon
 * and of its clients are often in different ones. A thread of another group takes the core in the
 * middle of work instead (patience_lost). So the waiting thread trusts yields a step more only when
 * it has polled for the time of two slices and kept the core: the next block is then a quarter as
 * long.
 *
 * A yield takes longer than a look. When a yield has brought no work, the other threads on the core
 * wait, too, perhaps for this thread. So a thread that others wait for (a daemon's) polls alone for
 * as long as the yield took, and then yields again: nobody waits much longer than with yields
 * alone, and new work is seen sooner.
 *
 * Pure: the caller passes times in ns, of one clock. Thread: the one that waits.
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
    PATIENCE_YIELD,  /* yield the processor, call patience_yielded, then poll again */
    PATIENCE_HASTEN, /* do now what is due at the deadline: a sleep would end too late */
    PATIENCE_SLEEP_NOW,
};

/* The window is a guess that proved right; the limit of a long yield was 100 us earlier:
 * docs/lab/daemon.md, "Waiting". */
#define PATIENCE_WINDOW_NS UINT64_C(200000)
#define PATIENCE_LONG_NS   UINT64_C(400000)
/* The limit for a client, which others do not wait for. Where many clients poll on few cores,
 * yields to all of them take longer than PATIENCE_LONG_NS; a process that computes keeps its slice
 * of 2.8 ms or more. */
#define PATIENCE_SLICE_NS UINT64_C(2500000)
/* A sleep shorter than this costs more than it saves. */
#define PATIENCE_WAKE_NS UINT64_C(30000)
#define PATIENCE_LOOK_NS UINT64_C(10000) /* the longest time of looks between two yields */
#define PATIENCE_POLL_NS UINT64_C(20000) /* the most that counts as polled between yields */
/* Two slices: a program that computes would have taken the core from a thread that polls for so
 * long. */
#define PATIENCE_CALM_NS       UINT64_C(8000000)
#define PATIENCE_BLOCK_NS      UINT64_C(1000000)
#define PATIENCE_BLOCK_MOST_NS UINT64_C(1024000000)

struct patience {
    enum patience_mode mode;
    uint64_t window_ns;     /* how long after work yields pay off */
    uint64_t long_ns;       /* a longer yield means that a program that computes has run */
    uint64_t worked;        /* when there was work last */
    uint64_t blocked_until; /* do not yield before */
    uint64_t block_ns;      /* length of the last block of yields, shorter after calm; 0: none */
    uint64_t calm_ns;       /* polled without losing the core, since the last change of block_ns */
    uint64_t yielded_at;    /* when the last yield ended */
    uint64_t look_until;    /* look without yields until then; set by a yield that brought no
                               work */
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

/* Whether the thread yields or polls without work, as long as the window is open; else it
 * sleeps. */
static inline bool patience_yields(const struct patience *p, uint64_t now)
{
    return p->mode == PATIENCE_DEDICATED || patience_may_yield(p, now);
}

/* Whether to look again before the next yield. For a thread that others wait for. */
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
