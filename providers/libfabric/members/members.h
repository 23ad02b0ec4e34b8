/*
 * The endpoints of a completion queue or a counter, which drives their progress and sleeps until an
 * event comes to one of them. Owned by the queue or counter.
 */
#ifndef PWC_PROVIDER_MEMBERS_H
#define PWC_PROVIDER_MEMBERS_H

#include <stdbool.h>
#include <stdint.h>

struct endpoint;
struct members;

int members_new(bool locked, struct members **out);
void members_free(struct members *members);

/* Adds the endpoint; adding it again changes nothing. -FI_ENOMEM. */
int members_add(struct members *members, struct endpoint *endpoint);
/* Removes the endpoint, however often it was added. */
void members_drop(struct members *members, struct endpoint *endpoint);

/* Removes the endpoint, and keeps this value as its part of members_sum. Does nothing if the
 * endpoint is no member. */
void members_retire(struct members *members, struct endpoint *endpoint, uint64_t value);

/* Takes the events of all endpoints. 0 if no event is left, 1 if some may be left, or the error of
 * an endpoint whose session is over. */
int members_progress(struct members *members);

/* Waits until all that the endpoints have submitted before the call has ended, for `ms`
 * milliseconds at most. Other threads may submit more meanwhile. -FI_EBUSY: something has not
 * ended. */
int members_flush(struct members *members, int ms);

/* Call one of these after each look of a program that polls: members_found if the look has found
 * something, else members_yield. After a second look in vain without a submission in between,
 * members_yield lets the daemon run, which may need this processor. */
void members_found(struct members *members);
void members_yield(struct members *members);

/* Looks once a second whether the endpoints' daemon lives (endpoint_watch). */
void members_watch(struct members *members);

/* Before a sleep: takes the events that came before the descriptor was armed. Returns whether none
 * is left. Then look whether they have brought what the thread waits for, and else call
 * members_sleep. */
bool members_arm(struct members *members);
/* Sleeps until an event may have come, until members_wake, or for `ms` milliseconds (-1: no end).
 * May return early. */
void members_sleep(struct members *members, int ms);

/* Lets sleepers look again. Any thread. */
void members_wake(struct members *members);
/* Whether a thread may sleep, since the last members_wake. Any thread. */
bool members_asleep(struct members *members);

/* Returns a descriptor that becomes readable with the next event, or a negative errno.
 * members_quiet makes it unreadable again after members_wake, and takes the events; returns whether
 * none is left. */
int members_descriptor(struct members *members);
bool members_quiet(struct members *members);

/* The only endpoint, whose context this thread may call without a lock. NULL: there are none or
 * several, or threads share them, so that another thread may close the endpoint meanwhile. */
struct endpoint *members_single(struct members *members);

/* Calls `each` for all endpoints. Returns the sum of the results and of all values that
 * members_retire has kept. */
uint64_t members_sum(struct members *members, uint64_t (*each)(struct endpoint *endpoint));

/* A clock for time limits: milliseconds. */
int64_t members_now(void);

#endif
