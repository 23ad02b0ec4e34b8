/*
 * Submissions that are right except for a few fields.
 *
 * Thread: the caller's.
 */
#ifndef PWC_TESTS_HOSTILE_RECORDS_H
#define PWC_TESTS_HOSTILE_RECORDS_H

#include <stdint.h>
#include "tests/lib/raw/session.h"
#include "tests/hostile/values.h"

#define RECORD_ROOM 1024u

struct bytes {
    struct submit_record record;
    uint8_t more[RECORD_ROOM]; /* ids, block, payload */
};

/* The objects that a record may name. */
struct given {
    uint32_t remotes[2]; /* that the daemon gave */
    uint32_t segment;
    uint32_t token; /* of a request to be answered */
};

/* Makes a right record of any kind; a reply where `answer` is set. */
void record_make(struct bytes *out, struct values *v, const struct given *g, bool answer);
/* Spoils one to three of the record's fields. Returns how many. */
uint32_t record_spoil(struct bytes *b, struct values *v);

#endif
