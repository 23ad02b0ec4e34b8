/*
 * A test shares this with the processes that it lets die: the board of fault points (fault.h), and
 * a stage: shared words by which ranks wait for each other. A barrier of the library would wait for
 * ranks that have died.
 *
 * Thread: any; each field says which process writes it.
 */
#ifndef PWC_TESTS_FAULTS_STAGE_H
#define PWC_TESTS_FAULTS_STAGE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include "pwc/pwc.h"

#define STAGE_RANKS 3u
#define STAGE_FD    "PWC_STAGE_FD"

struct stage {
    struct pwc_key keys[STAGE_RANKS];      /* the keys of each rank, before the rank exists */
    _Atomic uint32_t present[STAGE_RANKS]; /* its rank's: it can be bound */
    _Atomic uint32_t bound;                /* the victim's: it has bound the others */
    _Atomic uint32_t may_begin;            /* the test's: it has counted what was before */
    _Atomic uint32_t begun;                /* the victim's: so may the others */
    _Atomic uint32_t over;                 /* the test's: the victim has ended */
    _Atomic uint32_t given_up;             /* a rank has got an error, and leaves */
    uint32_t call_ms;                      /* the test's: timeout of calls; 0: the usual */
};

/* Returns zeroed memory that children inherit by its descriptor; NULL with errno set on failure. */
void *stage_share(size_t size, int *fd);
void stage_unshare(void *base, size_t size, int fd);
/* Runs in a child: maps the memory whose descriptor number stands in this variable; or returns
 * NULL. */
void *stage_find(const char *variable, size_t size);
/* Puts the number of this descriptor into the variable, for a child. */
void stage_name(const char *variable, int fd);
/* Puts a path to this descriptor into the variable, for processes that do not inherit it. */
void stage_name_path(const char *variable, int fd);

#endif
