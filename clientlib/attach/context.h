/*
 * A context: one thread's session with the daemon, and the remotes bound in it.
 *
 * Thread: the one that uses the context. Its client's lock guards `next` only.
 */
#ifndef PWC_CLIENTLIB_CONTEXT_H
#define PWC_CLIENTLIB_CONTEXT_H

#include <stdbool.h>
#include <stdint.h>
#include "clientlib/channel/channel.h"
#include "clientlib/attach/client.h"
#include "clientlib/neighbours/direct.h"
#include "clientlib/calls/gets.h"
#include "clientlib/calls/handlers.h"
#include "shm_ring/mapping.h"
#include "shm_ring/patience.h"
#include "clientlib/memory/spans.h"

struct pwc_remote {
    struct pwc_ctx *ctx;
    struct pwc_remote *next;
    pwc_peer peer;
    uint64_t length;
    uint32_t handle;          /* the daemon's */
    uint32_t rights;          /* PWC_REMOTE_* */
    uint32_t slot;            /* of the region, with its key */
    uint32_t generation;      /* the same */
    bool way;                 /* what is done to it need not go through the daemon: it has a pair */
    struct direct_pair *pair; /* that all remotes of this peer have, or none */
    uint8_t *memory;          /* with a way: the region, where its rights allow */
    struct mapping mapping;   /* of its pages */
};

/* A Medium whose payload the caller writes: begun in the submission ring (channel.submit.open). */
struct prepared {
    struct message block;
    uint8_t *at; /* where the block goes */
};

struct pwc_ctx {
    struct pwc_client *client;
    struct pwc_ctx *next;
    uint32_t session; /* the daemon's handle */
    uint32_t number;
    struct mapping mapping;
    int doorbell_fd;   /* eventfd: wakes the daemon */
    int wake_fd;       /* socket: bytes from the daemon wake us; hangs up with it */
    bool fd_used;      /* pwc_fd has been called: empty probes arm */
    int64_t health_at; /* when to look next whether the daemon still lives */
    struct patience patience;
    uint64_t flushes;
    uint32_t neighbours_told; /* last sight of session_shared.neighbours */
    struct pwc_remote *remotes;
    struct span_view spans;
    struct landing_view landings;
    struct gets gets;
    struct handlers handlers;
    struct prepared prepared;
    struct channel channel;
};

/* Frees what the context holds in this process; the daemon is not told. */
void context_free(struct pwc_ctx *ctx);

/* Wakes the daemon that sleeps. */
void context_ring(struct pwc_ctx *ctx);

/* Reads what has come by the wake socket. */
void context_read_wake(struct pwc_ctx *ctx);
/* The daemon has told something of neighbours. */
void context_meet_neighbours(struct pwc_ctx *ctx, uint32_t told);
/* Whether it has, since they were met last. */
static inline bool context_neighbours_told(const struct pwc_ctx *ctx)
{
    return atomic_load_explicit(&ctx->channel.shared->neighbours, memory_order_acquire) !=
           ctx->neighbours_told;
}
/* As channel_probe, with what the daemon tells of neighbours taken up first. */
static inline int context_probe(struct pwc_ctx *ctx, pwc_peer peer, unsigned kinds,
                                struct pwc_event *out)
{
    uint32_t told = atomic_load_explicit(&ctx->channel.shared->neighbours, memory_order_acquire);
    int rc;

    if (told != ctx->neighbours_told)
        context_meet_neighbours(ctx, told);
    rc = channel_probe(&ctx->channel, peer, kinds, out);
    if (ctx->channel.neighbours.wakes_due)
        direct_retry_wakes(ctx);
    return rc;
}

/*
 * Lets time pass where a probe has found nothing: yields, or, as ctx->patience says, sleeps until
 * the daemon rings for an event of these kinds or for another reason, the deadline passes, or a
 * moment has gone by (then it looks whether the daemon still lives). May return early.
 */
void context_pause(struct pwc_ctx *ctx, unsigned kinds, int64_t now, int64_t deadline);

/* Asks for wake-ups that are due: later calls may not come. Waits for a moment at most. */
void context_settle_wakes(struct pwc_ctx *ctx);
/* Blocks until what was submitted towards `remote`'s peer has ended. */
int context_flush_peer(struct pwc_ctx *ctx, const struct pwc_remote *remote);

#endif
