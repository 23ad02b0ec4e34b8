/*
 * Which pages of a range have contents: the others read as zero, and need not be copied where
 * zeroed pages take their place (move.h).
 *
 * A page that cannot be judged counts as touched: where the kernel gives no /proc/self/pagemap or
 * no descriptor, where a call fails, and private pages of a file. The kernel's list of pages cannot
 * show one case: memory that a userfaultfd fills at its first touch counts as never touched.
 *
 * Between touched_of_memory or touched_of_file and touched_close, nothing may change the mappings
 * of the range; touched_next has its stack alone, as move.h asks.
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
    int fd;                         /* /proc/self/pagemap or the file; -1: no page can be judged */
    bool shared;                    /* fd is the file's, and not ours */
    uintptr_t page;                 /* bytes */
    uintptr_t origin;               /* shared: where the file's first byte stands or would stand */
    uintptr_t files_from, files_to; /* private: private pages of files stand between these */
    uintptr_t known_from, known_to; /* private: the pages that entries are of */
    uint64_t entries[TOUCHED_ENTRIES];
};

struct touched_run {
    uintptr_t from, to;
};

/* Whole private pages, where they stand. */
void touched_of_memory(struct touched *touched, uintptr_t start, size_t length);
/* Pages of a shared mapping of a file, whose descriptor it is unless the program has closed it. */
void touched_of_file(struct touched *touched, uintptr_t origin, int fd, dev_t device, ino_t inode);
void touched_close(struct touched *touched);

/* The first touched pages of [from, end), all of them without a gap as far as is known. False:
 * there are none. */
bool touched_next(struct touched *touched, uintptr_t from, uintptr_t end, struct touched_run *out);

#endif
