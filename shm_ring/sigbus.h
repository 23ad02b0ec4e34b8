/*
 * Surviving SIGBUS: a client may punch a hole in shared memory, or the kernel may have no memory
 * for it, and then an access to that page faults in the daemon.
 *
 * The process has one handler. The handler finds the registered range of the fault, maps private
 * zero pages over the whole range (work continues, and reads give zeros), and counts the fault in
 * the range. For a fault outside every range the default action follows. The handler uses only
 * async-signal-safe calls. The table has a fixed size, and one thread at a time changes a slot.
 */
#ifndef PWC_SHM_RING_SIGBUS_H
#define PWC_SHM_RING_SIGBUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* As many ranges as 16 engines have contexts, segments and pairs. Quotas keep one user from having
 * all of these, so one user cannot fill the table. */
#define SIGBUS_PAIRS_MAX  (16u * 4096u)
#define SIGBUS_RANGES_MAX (16u * (512u + 1024u) + SIGBUS_PAIRS_MAX)

/* Installs the handler. Called once by the daemon's main, before any range is added. */
int sigbus_install(void);
/* 0 or more: the range's index; -ENOSPC when the table is full. Any thread. */
int sigbus_add(void *base, size_t size);
/* Whether the range has faulted since it was added. Any thread; no system call. */
bool sigbus_hit(int range);
/* Whether any range has faulted since the last call with the same `*seen` (which begins with 0): a
 * cheap test. */
bool sigbus_any(uint64_t *seen);
void sigbus_remove(int range);

#endif
