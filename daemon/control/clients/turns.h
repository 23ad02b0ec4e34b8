/*
 * Turns: how much of the control thread's time one user's requests take before those of others.
 *
 *     socket readable --> turns_may? --> request --> turns_count
 *                            | no: the user has had its turn, or has enough under way
 *                            v
 *                         the user's line --> turns_next, when the loop's turn is over: read on
 *
 * In each turn of the loop a user has a number of requests taken from its connections, and it has a
 * number of calls in the engines, of requests that wait for others, and, unless it is alone, a
 * share of the thread's time (account.h) at most. Beyond that its connections are not read: they
 * stand in line, the first of the user's first. So what a user asks for on many connections delays
 * another user's request by one turn of each user, no more.
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

/* Whether a request of this connection may be read now. False: the connection stands in line. */
bool turns_may(struct client *c);
/* Counts a request of this connection that was taken. */
void turns_count(struct client *c);
/* Takes the connection out of its line. */
void turns_leave(struct client *c);
/* A turn of the loop is over: takes the first `TURN_REQUESTS` connections of each user out of its
 * line, one in each call. NULL: there are no more. */
struct client *turns_next(struct control *control);

#endif
