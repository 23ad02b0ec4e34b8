/*
 * The control thread's code and an engine in one thread, to fuzz what clients send on their
 * sockets. A call is carried out when it is posted, and its callback runs at the next turn, so each
 * run is the same.
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

/* NULL: the room could not be opened, which is a bug in itself. */
struct room *room_new(void);
/* Ends all clients and frees everything. Aborts when anything of a client is left. */
void room_free(struct room *room);
/* Makes a connection to the room, and returns the client's end. */
int room_connect(struct room *room);
/* Takes turns until nothing happens any more. */
void room_turn(struct room *room);

#endif
