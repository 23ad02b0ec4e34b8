/*
 * For the speculation probe alone: the interpreter a second time, with an access path that checks
 * by a branch whether an address is in its window. Its vm_run is called unmasked_run. This file is
 * included before daemon/handlers/vm.c. Thread: any.
 */
#ifndef PWC_TESTS_HANDLERS_UNMASKED_H
#define PWC_TESTS_HANDLERS_UNMASKED_H

#define window_at masked_at
#include "daemon/handlers/window.h"
#undef window_at

static inline uint8_t *window_at(const struct windows *w, enum window_access access,
                                 uint64_t address, uint64_t bytes)
{
    uint64_t offset = address & HANDLER_OFFSET_MASK;
    uint64_t window = address >> HANDLER_WINDOW_SHIFT;

    if (bytes > HANDLER_OFFSET_MASK || offset + bytes > w->size[access][window]) {
        __asm__ __volatile__(""); /* keeps the branch: the compiler may not select by data */
        return (uint8_t *)(uintptr_t)window_nowhere;
    }
    return w->base[window] + offset;
}

#define vm_run unmasked_run

#endif
