/*
 * A client that has attached properly and then writes what no library would into its session. The
 * client is quarantined with the reason that fits, and all of it is given back, or the operation
 * ends with an error; two ranks that put to each other meanwhile, and a neighbour of its job,
 * notice nothing.
 *
 * Thread: the test's; the two ranks have one of their own.
 */
#ifndef PWC_TESTS_CONTROL_HOSTILE_CLIENT_H
#define PWC_TESTS_CONTROL_HOSTILE_CLIENT_H

#include <stdbool.h>
#include <stdint.h>
#include "tests/lib/raw/session.h"
#include "tests/suite.h"

#define EVENT_BYTES ((uint32_t)sizeof(struct event_record)) /* of an event without a long id */

#ifdef __SANITIZE_ADDRESS__
#define REPETITIONS 4
#else
#define REPETITIONS 20
#endif

/* Attaches it. */
void hostile_open(struct raw_session *s);
/* The client gets the reason, its session shows it too, and the daemon hangs up, shows the reason,
 * and gives everything back. */
void hostile_quarantined(struct raw_session *s, const char *reason);
/* Its next local event has this status, and the daemon continues to serve it. */
void hostile_event(struct raw_session *s, int status);
/* A good put ends well. */
void hostile_served(struct raw_session *s);
/* The client detaches, and everything is given back. */
void hostile_leave(struct raw_session *s);

/* Rank 1 of its job. */
const struct raw_session *hostile_neighbour(void);
/* Whether a client that behaves is served. */
bool hostile_others_served(void);
/* The two ranks and the neighbour continue: the last test of each program. */
void hostile_others_go_on(void);

/* Main of such a test program: its daemon is argv[1]. Returns the exit status. */
int hostile_main(int argc, char **argv, const char *name, CU_TestInfo *tests);

#endif
