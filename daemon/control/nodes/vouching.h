/*
 * One step of a handshake that MUNGE vouches for: their credential is opened, ours is made, or
 * both. The calls wait for munged, so they run on a thread of libuv's pool.
 *
 * Thread: control starts it and hears of its end; a pool thread has it in between.
 */
#ifndef PWC_CONTROL_VOUCHING_H
#define PWC_CONTROL_VOUCHING_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>
#include "daemon/peering/handshake.h"

struct vouching {
    uv_work_t work;
    void *owner;
    void (*done)(struct vouching *v); /* frees it by vouching_free */
    char *theirs;                     /* to be opened, or NULL */
    bool make;                        /* ours, with `mac` in it */
    uint8_t mac[HANDSHAKE_MAC_BYTES];

    int status; /* what came of it, with the reason in `why` */
    char why[HANDSHAKE_TEXT_MAX];
    uint8_t payload[HANDSHAKE_MAC_BYTES]; /* theirs */
    char *ours;
};

struct vouching *vouching_new(const char *theirs);
int vouching_start(struct vouching *v, uv_loop_t *loop);
void vouching_free(struct vouching *v);
/* Whether munged vouches for us at all; waits for it. -ENOTSUP, -ECONNREFUSED, -EACCES. */
int vouching_works(char *why, size_t why_size);

#endif
