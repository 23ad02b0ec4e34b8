/*
 * Finds the pages of a range that were ever touched. Other pages read as zero, and need not be
 * copied when zeroed pages replace them (move.h).
 *
 * A page whose state is unknown counts as touched: where the kernel gives no
 * /proc/thread-self/pagemap or no descriptor, where a call fails, and private pages of a file. One
 * case is wrong: memory that a userfaultfd fills at its first touch counts as never touched.
 *
 * Between touched_of_memory or touched_of_file and touched_close, nothing may change the mappings
 * of the range; touched_next writes only to its stack, as move.h demands.
 *
 * Thread: any; a struct touched belongs to its caller.
 */
#ifndef PWC_CLIENTLIB_TOUCHED_H
#define PWC_CLIENTLIB_TOUCHED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { TOUCHED_ENTRIES = 512 };

struct touched {
    int fd;                         /* /proc/thread-self/pagemap or the file; -1: all pages count as
                                       touched */
    bool shared;                    /* fd is the file's, and the caller's */
    uintptr_t page;                 /* bytes */
    uintptr_t origin;               /* shared: the address where the file's first byte is or would
                                       be */
    uintptr_t files_from, files_to; /* private: the range that has private pages of files */
    uintptr_t known_from, known_to; /* private: the range of pages that `entries` describe */
    uint64_t entries[TOUCHED_ENTRIES];
};

struct touched_run {
    uintptr_t from, to;
};

/* For whole private pages, at their place. */
void touched_of_memory(struct touched *touched, uintptr_t start, size_t length);
/* For pages of a shared mapping of a file. `fd` is the file's descriptor, unless the program has
 * closed it. */
void touched_of_file(struct touched *touched, uintptr_t origin, int fd, dev_t device, ino_t inode);
void touched_close(struct touched *touched);

/* Finds the first touched pages of [from, end), as a run without a gap. False: there are none. */
bool touched_next(struct touched *touched, uintptr_t from, uintptr_t end, struct touched_run *out);

#endif
