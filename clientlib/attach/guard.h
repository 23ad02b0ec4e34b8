/*
 * Checks where a call must not run: in a child made by fork, and, if the call may block, inside a
 * handler. Here the program's function for an allreduce, its fold, is a handler, too.
 *
 * A forked child is recognised without a system call: the kernel clears a page in the child
 * (MADV_WIPEONFORK), whose word is not 0 in the process that made it.
 *
 * Threads: any. The word never changes after fork_guard_open. The count of handlers that run
 * belongs to each thread.
 */
#ifndef PWC_CLIENTLIB_GUARD_H
#define PWC_CLIENTLIB_GUARD_H

#include <stdbool.h>
#include <stdint.h>

struct fork_guard {
    const volatile uint32_t *word;
};

int fork_guard_open(struct fork_guard *guard);
void fork_guard_close(struct fork_guard *guard);

static inline bool fork_guard_in_child(const struct fork_guard *guard)
{
    return *guard->word == 0;
}

/* Whether this thread is inside a handler, of any context. */
bool handler_on_this_thread(void);
/* Called before and after a handler runs, also inside another one. */
void handler_enter(void);
void handler_leave(void);

#endif
