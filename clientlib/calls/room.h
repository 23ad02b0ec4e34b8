/*
 * Waiting for room: for operations with PWC_WAIT, and for calls that wait for their operation's
 * end.
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
    bool event;        /* the operation has a local event */
    bool waits;        /* the operation has found no room */
};

/* Begins a call over this remote with this local id and these flags: 0; -EOWNERDEAD, -EDEADLK: the
 * call may not wait. */
int room_begin(struct room *room, const struct pwc_remote *remote, const pwc_cid *lid,
               unsigned flags);
/* Called before a try that may send a request to the daemon: the time of the request counts,
 * too. */
void room_asks(struct room *room);

/* Called after a try whose result is *rc. True: there was no room, and time has passed: try again.
 * False: *rc is the call's result, also where waiting is useless: -ETIMEDOUT, -ENOBUFS and others.
 */
bool room_wait(struct room *room, int *rc);

#endif
