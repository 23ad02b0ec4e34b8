/*
 * Memory that a test shares with processes that may die: the board of fault points (fault.h), and a
 * stage, words by which ranks wait for each other. They do not use a barrier of the library,
 * because that would wait for dead ranks.
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
    struct pwc_key keys[STAGE_RANKS];      /* each rank writes its key before it sets `present` */
    _Atomic uint32_t present[STAGE_RANKS]; /* written by each rank: it can be bound */
    _Atomic uint32_t bound;                /* written by the victim: it has bound the others */
    _Atomic uint32_t may_begin;            /* written by the test: the counts before are taken */
    _Atomic uint32_t begun;                /* written by the victim: the others may begin, too */
    _Atomic uint32_t over;                 /* written by the test: the victim has ended */
    _Atomic uint32_t given_up;             /* written by any rank: it got an error, and leaves */
    uint32_t call_ms;                      /* written by the test: timeout of calls; 0: default */
};

/* Returns zeroed memory that children inherit by its descriptor; NULL with errno set on failure. */
void *stage_share(size_t size, int *fd);
void stage_unshare(void *base, size_t size, int fd);
/* For a child: maps the memory whose descriptor's number is in this environment variable. NULL: not
 * possible. */
void *stage_find(const char *variable, size_t size);
/* Sets the environment variable to this descriptor's number, for a child. */
void stage_name(const char *variable, int fd);
/* Sets the environment variable to a path of this descriptor, for processes that do not inherit
 * it. */
void stage_name_path(const char *variable, int fd);

#endif
