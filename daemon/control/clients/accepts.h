/*
 * Bounds how many connections a listener accepts in a millisecond. Anybody may connect as often as
 * they like, and the kernel's part of the work is charged to no account (account.h).
 *
 * Thread: control.
 */
#ifndef PWC_CONTROL_ACCEPTS_H
#define PWC_CONTROL_ACCEPTS_H

#include <stdbool.h>
#include <stdint.h>

enum { ACCEPTS_A_MS = 4 };

struct accepts {
    uint64_t at_ms; /* the loop's time, in ms, that `count` is for */
    uint32_t count; /* connections accepted in that millisecond */
};

/* Whether one more connection may be accepted at `now_ms`; if not, one may in the next millisecond.
 * The caller counts the connection. */
static inline bool accepts_more(struct accepts *a, uint64_t now_ms)
{
    if (now_ms != a->at_ms)
        *a = (struct accepts){.at_ms = now_ms};
    return a->count < ACCEPTS_A_MS;
}

#endif
