/*
 * One step of a handshake that MUNGE vouches for: their credential is opened, ours is made, or
 * both. The calls wait for munged, so they run on a thread of libuv's pool.
 *
 * Thread: control starts it and hears of its end; a pool thread has it in between.
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
    char *theirs;                        /* to be opened, or NULL */
    bool make;                           /* ours, with `mac` in it */
    uint8_t mac[HANDSHAKE_MAC_BYTES];

    int status; /* the result, with the reason in `why` */
    char why[HANDSHAKE_TEXT_MAX];
    uint8_t payload[HANDSHAKE_MAC_BYTES]; /* theirs */
    char *ours;
};

struct munge_async *munge_async_new(const char *theirs);
int munge_async_start(struct munge_async *v, uv_loop_t *loop);
void munge_async_free(struct munge_async *v);
/* Whether munged can vouch for us at all; blocks. -ENOTSUP, -ECONNREFUSED, -EACCES. */
int munge_works(char *why, size_t why_size);

#endif
