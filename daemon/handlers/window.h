/*
 * Windows: how an address of a program becomes an address of the daemon, or is refused.
 *
 *     window   w = address >> 61            offset   o = address & (2^61 - 1)
 *     there    o + bytes <= size[w]  --->   base[w] + o
 *     else                           --->   window_nowhere, a line of zeros
 *
 * The address is chosen without a branch. So, where the processor predicts a later branch wrongly
 * and continues, the address is still right, and a wrong prediction reaches no more than the
 * program may. Sizes are below 2^61.
 *
 * Thread: the thread that runs the handler. The host owns the memory of windows, and keeps it
 * mapped during a run.
 */
#ifndef PWC_HANDLERS_WINDOW_H
#define PWC_HANDLERS_WINDOW_H

#include <stdbool.h>
#include <stdint.h>
#include "proto/handler_abi.h"

enum window_access {
    WINDOW_READ = 0,
    WINDOW_WRITE = 1,
    WINDOW_ACCESSES = 2,
};

/* One client's windows, which the host fills for each run. */
struct windows {
    uint8_t *base[HANDLER_WINDOWS]; /* state, host and scratch are multiples of 64, because of
                                     * atomics */
    uint64_t size[WINDOW_ACCESSES][HANDLER_WINDOWS];
};

/* The line of zeros, which nobody writes: an access that is sent here is a fault. */
extern const uint8_t window_nowhere[64];

/* Makes all windows empty, so that every access is a fault. */
void windows_clear(struct windows *w);
/* Sets memory that programs may read and write. */
void window_set(struct windows *w, enum handler_window window, void *base, uint64_t size);
/* Sets memory that programs may only read. */
void window_set_constant(struct windows *w, enum handler_window window, const void *base,
                         uint64_t size);

/* All ones where `wrong` is not 0, else 0. The compiler can't see that there are only two values,
 * so it does not make a branch of the code that uses the mask. */
static inline uint64_t window_mask(uint64_t wrong)
{
    uint64_t mask = (uint64_t)((int64_t)(wrong | -wrong) >> 63);

    __asm__("" : "+r"(mask));
    return mask;
}

/* Gives `index` where it is below `count`, else 0, without a branch. `count` is below 2^63. */
static inline uint64_t window_index(uint64_t index, uint64_t count)
{
    uint64_t mask = (uint64_t)((int64_t)(index - count) >> 63);

    __asm__("" : "+r"(mask));
    return index & mask & ~(uint64_t)((int64_t)index >> 63);
}

/* All ones where `bytes` bytes at `address` are not in their window, else 0. */
static inline uint64_t window_wrong(const struct windows *w, enum window_access access,
                                    uint64_t address, uint64_t bytes)
{
    uint64_t offset = address & HANDLER_OFFSET_MASK;
    uint64_t size = w->size[access][address >> HANDLER_WINDOW_SHIFT];
    uint64_t mask =
        (uint64_t)((int64_t)((size - offset - bytes) | -(bytes >> HANDLER_WINDOW_SHIFT)) >> 63);

    __asm__("" : "+r"(mask));
    return mask;
}

/* Where `bytes` bytes at `address` are in the daemon's memory, or window_nowhere. */
static inline uint8_t *window_at(const struct windows *w, enum window_access access,
                                 uint64_t address, uint64_t bytes)
{
    uint64_t wrong = window_wrong(w, access, address, bytes);
    uint64_t there =
        (uintptr_t)w->base[address >> HANDLER_WINDOW_SHIFT] + (address & HANDLER_OFFSET_MASK);

    return (uint8_t *)(uintptr_t)((there & ~wrong) | ((uintptr_t)window_nowhere & wrong));
}

#endif
