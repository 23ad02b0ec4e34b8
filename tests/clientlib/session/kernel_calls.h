/*
 * Calls of the kernel that fail, or give false answers, while memory is moved; and memory to move.
 * The test is linked with --wrap for raw_call, mmap64, fstat64 and open64 (the names that the calls
 * have with large offsets).
 *
 * Thread: the test's. A test may move its own variables, `kernel` among them, and a store would be
 * lost while they are copied. So the wrappers write to `kernel` only where the test has set a fault
 * or a count.
 */
#ifndef PWC_TESTS_CLIENTLIB_KERNEL_CALLS_H
#define PWC_TESTS_CLIENTLIB_KERNEL_CALLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How the kernel's list of pages is false. LIE_UNTOUCHED: no page was ever touched. LIE_SWAPPED:
 * all pages that are in memory are said to be swapped out, except in an answer about a single
 * page. */
enum kernel_lie { LIE_NONE, LIE_UNTOUCHED, LIE_SWAPPED };

struct kernel_calls {
    /* The call that fails next, and how many calls of its number succeed before. */
    struct {
        intptr_t number; /* 0: none */
        int error;
        unsigned passes;
        unsigned times;
        bool hole; /* mremap unmaps its target before it fails */
    } fault;
    enum kernel_lie lie;
    bool is_counted;
    size_t bytes_read; /* lengths of all calls of madvise by which the library makes the kernel read
                          pages; grows only with is_counted */
};
extern struct kernel_calls kernel;

size_t page_bytes(void);
/* Map whole pages; the test fails where there is no memory. */
uint8_t *memory_map(size_t pages, int protection, int flags, int fd);
uint8_t *memory_map_anonymous(size_t pages);
/* Bytes that depend on their place. */
void memory_fill(uint8_t *memory, size_t size);
bool memory_is_filled(const uint8_t *memory, size_t size);
/* A descriptor of a sealed file of zeros, as the daemon gives for a segment. */
int memory_file(size_t size);

#endif
