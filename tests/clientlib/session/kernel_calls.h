/*
 * Calls of the kernel that fail, or do not say the truth, while memory is moved; and memory to
 * move. The test is linked with these: --wrap=raw_call, mmap64, fstat64, open64 (with large offsets
 * the calls have the names of 64 bits).
 *
 * Thread: the test's. A test may move its own variables, and so `kernel`: nothing writes to it but
 * the test, unless the test has asked for that.
 */
#ifndef PWC_TESTS_CLIENTLIB_KERNEL_CALLS_H
#define PWC_TESTS_CLIENTLIB_KERNEL_CALLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How the kernel's list of pages is not true: no page was ever touched; or all are swapped out that
 * are in memory, but for a page that is asked for alone. */
enum kernel_lie { LIE_NONE, LIE_UNTOUCHED, LIE_SWAPPED };

struct kernel_calls {
    /* The call that fails next, and after how many that do not. */
    struct {
        intptr_t number; /* 0: none */
        int error;
        unsigned passes;
        unsigned times;
        bool hole; /* mremap unmaps the place before it fails */
    } fault;
    enum kernel_lie lie;
    bool is_counted;
    size_t bytes_read; /* that the library has had read, if that is counted */
};
extern struct kernel_calls kernel;

size_t page_bytes(void);
/* Whole pages; the test fails where there is no memory. */
uint8_t *memory_map(size_t pages, int protection, int flags, int fd);
uint8_t *memory_map_anonymous(size_t pages);
/* Bytes that depend on their place. */
void memory_fill(uint8_t *memory, size_t size);
bool memory_is_filled(const uint8_t *memory, size_t size);
/* A descriptor of a sealed file of zeros, as the daemon gives for a segment. */
int memory_file(size_t size);

#endif
