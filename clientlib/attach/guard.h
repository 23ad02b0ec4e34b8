/*
 * Where a call must not run: in a child made by fork, and, where it may block, inside a handler.
 *
 * A forked child is recognised without a system call: the kernel wipes a page in the
 * child (MADV_WIPEONFORK), which in the process that made it holds a nonzero word.
 *
 * Threads: any. The word never changes after fork_guard_open. Whether a handler runs is a state of
 * each thread on its own.
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

/* This thread is inside a handler, of any context. */
bool handler_on_this_thread(void);
/* Around the call of a handler. */
void handler_enter(void);
void handler_leave(void);

#endif
