/*
 * Counts of what hostile processes have done so far, in memory that they share with the test: how
 * many words they have written, how often they have attached, and the reasons that the daemon gave
 * for ending them.
 *
 * Thread: each tally has one writer, its process; the test only reads.
 */
#ifndef PWC_TESTS_HOSTILE_TALLY_H
#define PWC_TESTS_HOSTILE_TALLY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include "pwc/pwc.h"

#define TALLY_REASONS    32u
#define TALLY_REASON_MAX 120u

/* The memory or message that a mutation changes. */
enum target {
    TARGET_RECORD, /* a field of a record that is then submitted */
    TARGET_HEADER, /* a word of the session's header: indices, bells, sizes, handlers */
    TARGET_RACE,   /* any word of rings and segment, while the daemon reads them */
    TARGET_PAIR,   /* a word of a pair, while a neighbour reads it */
    TARGET_SOCKET, /* a frame, or a part of one */
    TARGETS
};

struct tally {
    _Atomic uint64_t mutations[TARGETS];
    _Atomic uint64_t attached;    /* number of sessions */
    _Atomic uint64_t quarantined; /* sessions that the daemon has ended */
    struct {
        char text[TALLY_REASON_MAX];
        uint64_t count;
    } reasons[TALLY_REASONS];
};

/* The memory that the processes of a run share with the test. The tallies follow the board in the
 * same mapping. */
struct board {
    _Atomic bool go, stop;
    struct pwc_key victim; /* the key of the victim's region; written before `go` */
    struct {
        _Atomic uint32_t version; /* odd while the key is being written */
        struct pwc_key key;
    } hostile; /* the key of a region of the hostile neighbour */
};

void tally_count(struct tally *t, enum target target, uint64_t more);
uint64_t tally_sum(const struct tally *t);
/* Counts a session that the daemon has ended, with the reason. */
void tally_reason(struct tally *t, const char *text);
const char *target_name(enum target target);

#endif
