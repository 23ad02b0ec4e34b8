/*
 * Two ranks of one node that have bound each other, what they have seen of each other's operations,
 * and a thread that sleeps at one of them. Thread: the test's.
 */
#ifndef PWC_TESTS_SYSTEM_TWO_H
#define PWC_TESTS_SYSTEM_TWO_H

#include <stdbool.h>
#include <stdint.h>
#include "pwc/am.h"
#include "tests/lib/cluster.h"
#include "tests/lib/rank.h"
#include "proto/clock.h"

#define TWO_REGION_BYTES (4u << 20)
#define TWO_WAIT_NS      INT64_C(20000000000)

enum { TWO_REQUEST = 7, TWO_REPLY = 70 }; /* indices of handlers at b and at a */

struct two {
    struct rank a, b;
    uint64_t seen;    /* numbers of everything that b has seen, events and requests, from 0 on */
    uint64_t replied; /* b's local events, of replies that asked for one: how many, and the */
    uint64_t replied_sum; /* sum of their numbers: they have no order over changes of path */
    uint64_t replies_asked;
    uint64_t back;     /* the number of the last reply that a has seen, plus 1 */
    uint64_t answered; /* the number of the last reply that b has made, plus 1 */
    uint64_t ended;    /* a's next local event */
    bool right;
};

int two_attach(const struct cluster *cluster, struct rank *r, const char *job, uint32_t number);
void two_open(struct two *t, const struct cluster *cluster, const char *job);
void two_close(struct two *t);

/* Checks a condition that must hold; `right` keeps that all have held. */
void two_check(struct two *t, bool right);
/* Each side takes the events there are: b only these kinds. */
void two_take(struct two *t, unsigned kinds);

/* Contents of the pairs that this process maps: messages that their origins have sent, and marks
 * of ends that are gone (enum pair_gone). */
struct two_pairs {
    uint64_t sent;
    uint32_t gone;
};
struct two_pairs two_pairs(void);

/* Main of such a test program: its daemon is argv[1], keys follow. Returns the exit status. */
int two_main(struct cluster *cluster, int argc, char **argv, int (*run)(void));

#endif
