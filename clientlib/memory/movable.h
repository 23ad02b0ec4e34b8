/*
 * Which memory can be moved (move.h), and why other memory cannot.
 *
 * Thread: any; the caller promises that nothing changes the mappings meanwhile.
 */
#ifndef PWC_CLIENTLIB_MOVABLE_H
#define PWC_CLIENTLIB_MOVABLE_H

#include <stddef.h>

enum movable {
    MOVABLE_ANONYMOUS, /* anonymous memory as mmap returns it: no heap break, no file */
    MOVABLE_PRIVATE,   /* any private memory: also the heap break, and files, as .data */
};

enum { MOVABLE_WHY_MAX = 160 };

/*
 * Whether all of [start, start + length), whole pages, may be moved: 0; -EINVAL with the reason in
 * `why` (MOVABLE_WHY_MAX bytes); or the error of reading the mappings, with "" in `why`.
 */
int movable_check(enum movable what, const void *start, size_t length, char *why);

#endif
