/*
 * Surviving SIGBUS: a client may punch a hole in what we share, or the kernel may be out of memory
 * for it, and then a touch of that page faults in the daemon.
 *
 * One handler for the process. It finds the registered range at fault, maps zero pages over the
 * whole range (the daemon's private ones: work continues, what is read is zero), and counts the hit
 * in the range. A fault outside every range goes on to the default action. The handler uses only
 * async-signal-safe calls. The table is fixed in size and changed by one thread at a time per slot.
 */
#ifndef PWC_SHM_RING_SIGBUS_H
#define PWC_SHM_RING_SIGBUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* As many contexts, segments and pairs as 16 engines have: what one user may have of these leaves
 * room to the others, so the table does. */
#define SIGBUS_RANGES_MAX (16u * (512u + 1024u + 4096u))

/* Installs the handler. Called once by the daemon's main, before any range is added. */
int sigbus_install(void);
/* 0 or more: the range's index; -ENOSPC when the table is full. Any thread. */
int sigbus_add(void *base, size_t size);
/* Whether the range has faulted since it was added. Any thread; no system call. */
bool sigbus_hit(int range);
/* Any range at all has faulted since the last call with the same `*seen` (starts at 0): a cheap
 * test. */
bool sigbus_any(uint64_t *seen);
void sigbus_remove(int range);

#endif
