/*
 * Tells a forked child from its parent without a system call: a page that the kernel wipes in the
 * child (MADV_WIPEONFORK) holds a nonzero word in the process that made it.
 *
 * Thread: any; the word never changes after fork_guard_open.
 */
#ifndef PWC_CLIENTLIB_FORK_GUARD_H
#define PWC_CLIENTLIB_FORK_GUARD_H

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

#endif
