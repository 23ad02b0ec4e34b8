/*
 * A hostile client: it attaches properly, then writes into its session what no library would.
 * Either the daemon quarantines the client with the right reason and gives back all that it held,
 * or the operation ends with an error. Two ranks that put to each other meanwhile, and a neighbour
 * of the same job, notice nothing.
 *
 * Thread: the test's; the two ranks have one of their own.
 */
#ifndef PWC_TESTS_CONTROL_HOSTILE_CLIENT_H
#define PWC_TESTS_CONTROL_HOSTILE_CLIENT_H

#include <stdbool.h>
#include <stdint.h>
#include "tests/lib/raw/session.h"
#include "tests/suite.h"

/* Bytes of an event without a long id. */
#define EVENT_BYTES ((uint32_t)sizeof(struct event_record))

#ifdef __SANITIZE_ADDRESS__
#define REPETITIONS 4
#else
#define REPETITIONS 20
#endif

/* Attaches the hostile client. */
void hostile_open(struct raw_session *s);
/* Checks that the client is quarantined with this reason: in its reply, in its session and in the
 * daemon's view. The daemon has closed the connection and given back all. */
void hostile_quarantined(struct raw_session *s, const char *reason);
/* Checks that the client's next local event has this status, and that the daemon still serves the
 * client. */
void hostile_event(struct raw_session *s, int status);
/* Checks that a good put of the client succeeds. */
void hostile_served(struct raw_session *s);
/* Detaches the client, and checks that the daemon gives back all. */
void hostile_leave(struct raw_session *s);

/* The neighbour, rank 1 of the client's job. */
const struct raw_session *hostile_neighbour(void);
/* Whether the daemon serves a well-behaved client. */
bool hostile_others_served(void);
/* Checks that the two ranks and the neighbour still work: the last test of each program. */
void hostile_others_go_on(void);

/* The main function of such a test program; argv[1] is the daemon's path. Returns the exit
 * status. */
int hostile_main(int argc, char **argv, const char *name, CU_TestInfo *tests);

#endif
