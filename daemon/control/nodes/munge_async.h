/*
 * One step of a handshake by MUNGE: opens the other side's credential, makes ours, or both. The
 * calls wait for munged, so they run on a thread of libuv's pool.
 *
 * Thread: the control thread starts the step and calls `done` at its end; in between a thread of
 * the pool owns the struct.
 */
#ifndef PWC_CONTROL_MUNGE_ASYNC_H
#define PWC_CONTROL_MUNGE_ASYNC_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>
#include "daemon/peering/handshake.h"

struct munge_async {
    uv_work_t work;
    void *owner;
    void (*done)(struct munge_async *v); /* frees it by munge_async_free */
    char *theirs;                        /* the credential to open, or NULL */
    bool make;                           /* make our credential, with `mac` in it */
    uint8_t mac[HANDSHAKE_MAC_BYTES];

    int status; /* the result, with the reason in `why` */
    char why[HANDSHAKE_TEXT_MAX];
    uint8_t payload[HANDSHAKE_MAC_BYTES]; /* the content of their credential */
    char *ours;
};

struct munge_async *munge_async_new(const char *theirs);
int munge_async_start(struct munge_async *v, uv_loop_t *loop);
void munge_async_free(struct munge_async *v);
/* Checks that munged can vouch for us; blocks. Returns 0, -ENOTSUP, -ECONNREFUSED or -EACCES. */
int munge_works(char *why, size_t why_size);

#endif
