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

enum { TWO_REQUEST = 7, TWO_REPLY = 70 }; /* handlers of b, and of a */

struct two {
    struct rank a, b;
    uint64_t seen;        /* how many of a's operations b has seen, as events or as requests */
    uint64_t replied;     /* number of b's local events, which some replies ask for, */
    uint64_t replied_sum; /* and the sum of their ids: changes of path change their order */
    uint64_t replies_asked;
    uint64_t back;     /* number of the last reply that a has seen, plus 1 */
    uint64_t answered; /* number of the last reply that b has sent, plus 1 */
    uint64_t ended;    /* number of a's next local event */
    bool right;
};

int two_attach(const struct cluster *cluster, struct rank *r, const char *job, uint32_t number);
void two_open(struct two *t, const struct cluster *cluster, const char *job);
void two_close(struct two *t);

/* Checks a condition. `right` stays true as long as all conditions have held. */
void two_check(struct two *t, bool right);
/* Both sides take the events that have arrived; b only takes these kinds. */
void two_take(struct two *t, unsigned kinds);

/* A look into the pairs that this process maps: how many messages their origins have sent, and the
 * marks of ends that are gone (enum pair_gone). */
struct two_pairs {
    uint64_t sent;
    uint32_t gone;
};
struct two_pairs two_pairs(void);

/* The main function of such a test program; argv[1] is the daemon, its keys follow. Returns the
 * exit status. */
int two_main(struct cluster *cluster, int argc, char **argv, int (*run)(void));

#endif
