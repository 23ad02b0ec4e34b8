/*
 * Waiting for room: operations with PWC_WAIT, and those that wait for their end.
 *
 * Thread: the one that owns the context.
 */
#ifndef PWC_CLIENTLIB_ROOM_H
#define PWC_CLIENTLIB_ROOM_H

#include <stdbool.h>
#include "clientlib/attach/context.h"

/* One call with PWC_WAIT, from its first try on. */
struct room {
    struct pwc_ctx *ctx;
    const struct pwc_remote *remote;
    int64_t deadline;  /* 0: not yet known */
    uint32_t id_bytes; /* of the local event's id, for which room is held */
    bool event;        /* the operation has one */
    bool waits;        /* the operation has found no room */
};

/* For an operation over this remote with this local id and these flags: 0; -EOWNERDEAD, -EDEADLK:
 * it may not wait. */
int room_begin(struct room *room, const struct pwc_remote *remote, const pwc_cid *lid,
               unsigned flags);
/* Called before a try that may ask the daemon for something: the time of that request counts,
 * too. */
void room_asks(struct room *room);

/* After a try that gave *rc. True: it found no room, time has passed, and it is to be tried again.
 * False: *rc is the call's result, also where waiting is of no use: -ETIMEDOUT, -ENOBUFS and
 * others.
 */
bool room_wait(struct room *room, int *rc);

#endif
