/*
 * Turns: how much of the control thread's time one user's requests may take before it serves other
 * users' requests.
 *
 *     socket readable --> turns_may? --> request --> turns_count
 *                            | no: the user has had its turn, or has enough under way
 *                            v
 *                         the user's line --> turns_next, when the loop's turn is over: read on
 *
 * Each user has bounds: requests taken from its connections in one turn of the loop, calls in the
 * engines, requests that wait for an answer, and, unless the user is alone, a share of the thread's
 * time (account.h). Beyond a bound its connections are not read, and wait in the user's line, first
 * come, first served. So however much users ask for on many connections, another user's request
 * waits for one turn of each of them at most.
 *
 * Thread: control.
 */
#ifndef PWC_CONTROL_TURNS_H
#define PWC_CONTROL_TURNS_H

#include <stdbool.h>
#include "daemon/control/clients/client.h"

#define TURN_REQUESTS    32u   /* requests of a user in one turn of the loop */
#define TURN_CALLS_MAX   64u   /* calls of a user under way in the engines */
#define TURN_PENDING_MAX 2048u /* half of the frames that are kept for a node without a link */

/* Whether a request of this connection may be read now. False: the connection waits in line. */
bool turns_may(struct client *c);
/* Counts a request of this connection that was taken. */
void turns_count(struct client *c);
/* Takes the connection out of its line. */
void turns_leave(struct client *c);
/* After a turn of the loop, takes the first `TURN_REQUESTS` connections of each user out of the
 * user's line, one in each call. NULL: there are no more. */
struct client *turns_next(struct control *control);

#endif
