/*
 * Stops a node's engine at its n-th store to its arena or to a session's mapping, without a change
 * to the engine: while the node runs, that memory is read-only; each store faults, is counted, and
 * is let through by a single step of the processor. This is slow, so that a sample of the stores is
 * best taken from a sample of the engine's calls: the other calls run at full speed.
 *
 * The guard can also fork at every store: the child dies there and goes on alone, the parent does
 * not die. After one death in four there is a second one, soon.
 *
 * Thread: one; it owns SIGSEGV and SIGTRAP meanwhile. x86-64 only (crash_guard_supported).
 */
#ifndef PWC_TESTS_ENGINE_CRASH_GUARD_H
#define PWC_TESTS_ENGINE_CRASH_GUARD_H

#include <stdbool.h>
#include <stdint.h>
#include "tests/engine/world/world.h"

/* Which calls of the engine are guarded until the first death, and with forks at which of their
 * stores a child dies. */
struct crash_sample {
    uint64_t calls, call;   /* each n-th call, from this one on; below `calls` */
    uint64_t stores, store; /* each n-th store, from this one on; below `stores` */
};

struct crash_guard {
    struct world *world;
    uint32_t victim;
    bool armed;
    bool forking;  /* forks at every store; otherwise the node stops at store number `stop` */
    uint64_t stop; /* number of the store at which the node dies; 0: never */
    struct crash_sample sample;
    uint64_t again;   /* stores until the process that took over dies; 0: by second_stop */
    uint64_t calls;   /* calls of the engine so far */
    uint64_t work;    /* that the victim has done, as its steps returned it */
    uint64_t stores;  /* stores so far: before the first death those of the sample's calls */
    uint64_t died_at; /* the first death; 0: none */
    bool child;       /* this process is a fork that has died */
    uint64_t failed;  /* children that ended with an error */
};

bool crash_guard_supported(void);
/* Installs the guard into its world, and the signal handlers. */
void crash_guard_open(struct crash_guard *g);
void crash_guard_close(struct crash_guard *g);

#endif
