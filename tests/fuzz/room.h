/*
 * The control room and an engine in one thread: a call is carried out when it is posted, and what
 * comes of it at the next turn, the same at each start. For what clients say on their sockets.
 *
 * call_post, progress_watch, progress_unwatch and progress_engine are replaced (--wrap).
 *
 * Thread: one.
 */
#ifndef PWC_TESTS_FUZZ_ROOM_H
#define PWC_TESTS_FUZZ_ROOM_H

#include <stddef.h>
#include <stdint.h>

struct room;

/* NULL: it does not come up, which is a bug in itself. */
struct room *room_new(void);
/* Ends all clients and frees everything. Aborts when something of theirs is left. */
void room_free(struct room *room);
/* A connection to it: our end. */
int room_connect(struct room *room);
/* Steps until nothing happens any more. */
void room_turn(struct room *room);

#endif
