/*
 * The endpoints that a completion queue or a counter looks after: it drives their progress and
 * sleeps until something comes to one of them. Owned by the queue or counter.
 */
#ifndef PWC_PROVIDER_MEMBERS_H
#define PWC_PROVIDER_MEMBERS_H

#include <stdbool.h>
#include <stdint.h>

struct endpoint;
struct members;

int members_new(bool locked, struct members **out);
void members_free(struct members *members);

/* -FI_ENOMEM. An endpoint that is there already is counted once more. */
int members_add(struct members *members, struct endpoint *endpoint);
/* Takes the endpoint away, however often it was added. */
void members_drop(struct members *members, struct endpoint *endpoint);

/* Takes the endpoint away, and keeps this value as its part of members_sum. Nothing happens where
 * the endpoint is no member. */
void members_retire(struct members *members, struct endpoint *endpoint, uint64_t value);

/* Takes what has come to all endpoints. 0, or the error of an endpoint whose session is over. */
int members_progress(struct members *members);

/* Sleeps until something may have come, until members_wake, or for `ms` milliseconds (-1: no end).
 * May return early. */
void members_sleep(struct members *members, int ms);

/* Lets sleepers look again. Any thread. */
void members_wake(struct members *members);

/* A descriptor that becomes readable with the next event, or a negative errno; and the call that
 * clears what members_wake left in it. */
int members_descriptor(struct members *members);
void members_clear(struct members *members);

/* The only endpoint, or NULL where there are none or several. */
struct endpoint *members_single(struct members *members);

/* Calls `each` for all endpoints, and adds the results to what retired ones have left. */
uint64_t members_sum(struct members *members, uint64_t (*each)(struct endpoint *endpoint));

/* A clock for time limits: milliseconds. */
int64_t members_now(void);

#endif
