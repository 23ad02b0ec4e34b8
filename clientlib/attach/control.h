/*
 * Requests to the daemon over its Unix socket, and their replies.
 *
 * Any thread may call; calls of several threads are under way at once and are told apart by their
 * ids. There is no thread of our own: of the callers that wait, one reads for all.
 *
 * Locks: `lock` guards everything but the reader's side of `frames`, which belongs to the caller
 * that has set `reading`. It is held while a request is written, never while a reply is awaited.
 */
#ifndef PWC_CLIENTLIB_CONTROL_H
#define PWC_CLIENTLIB_CONTROL_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "proto/control.pb-c.h"
#include "clientlib/attach/frames.h"

#define CONTROL_TEXT_MAX 256

/*
 * Sees each reply of the expected kind, with the lock held: 1 when the call is complete, 0 when
 * more replies come, or a negative errno that ends it. A descriptor that is taken is set to -1.
 */
typedef int control_accept(void *context, const Pwc__ClientReply *reply, int *fds, int fd_count);

struct control_call; /* one that waits */

struct control {
    struct frames frames;
    int timeout_ms;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct control_call *calls;
    uint32_t last_id;
    bool reading;
    int over;                    /* 0, or what every call gets from now on */
    char text[CONTROL_TEXT_MAX]; /* the daemon's words on the last failure */
};

/* Takes the connected, nonblocking socket. */
int control_open(struct control *control, int fd, int timeout_ms);
/* Hangs up and waits a moment for the daemon to have noticed. No call may be under way. */
void control_close(struct control *control);

/*
 * Sends a request (its id is filled in) and waits until `accept` has seen a complete reply. 0, an
 * error that the daemon sent or `accept` gave, -ETIMEDOUT, -ESHUTDOWN (the daemon is gone),
 * -EPROTO (it made no sense; the connection is given up). A NULL `accept` waits for one reply.
 */
int control_call(struct control *control, Pwc__ClientRequest *request,
                 Pwc__ClientReply__BodyCase expected, control_accept *accept, void *context);

/*
 * The same of a request that something ends: until that is known, for a daemon that was started
 * anew in the middle (-ECONNABORTED) may have done it or not, but knows when it is asked again. 0:
 * it is gone, also where the daemon knows of none (-EINVAL), or has hung up. Else it may be there
 * still, and its end may yet come.
 */
int control_end(struct control *control, Pwc__ClientRequest *request);

/* Copies the daemon's words on the last failure, cut to `size`; their whole length. */
size_t control_text(struct control *control, char *text, size_t size);

#endif
