/*
 * Makes submissions that are right except for a few fields.
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
    uint32_t remotes[2]; /* handles that the daemon gave */
    uint32_t segment;
    uint32_t token; /* token of a request that may be replied to */
};

/* Makes a right record of a random kind; with `answer` a reply. */
void record_make(struct bytes *out, struct values *v, const struct given *g, bool answer);
/* Spoils one to three of the record's fields. Returns their number. */
uint32_t record_spoil(struct bytes *b, struct values *v);

#endif
