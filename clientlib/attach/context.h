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
#include "clientlib/attach/daemon_post.h"
#include "clientlib/calls/am_handlers.h"
#include "clientlib/calls/give_way.h"
#include "clientlib/calls/yields.h"
#include "shm_ring/mapping.h"
#include "clientlib/binds/bound.h"
#include "shm_ring/patience.h"
#include "clientlib/memory/spans.h"
#include "clientlib/memory/staging.h"

struct pwc_remote {
    struct pwc_ctx *ctx;
    struct pwc_remote *next; /* in pwc_ctx.bound or pwc_ctx.unbound */
    pwc_peer peer;
    uint64_t length;
    uint32_t handle;     /* the daemon's */
    uint32_t rights;     /* PWC_REMOTE_* */
    uint32_t slot;       /* of the region, part of its key */
    uint32_t generation; /* of the region, part of its key */
    bool way; /* the remote has a pair: operations on it need not go through the daemon */
    struct direct_pair *pair; /* shared by all remotes of this peer; or NULL */
    uint8_t *memory;          /* with a way: the region's memory, if its rights allow access */
    struct mapping mapping;   /* of the pages of `memory` */
    uint64_t flush;     /* local id of the last SUBMIT_FLUSH that pwc_flush submitted for it */
    uint64_t flush_at;  /* channel.submitted after that SUBMIT_FLUSH */
    struct pwc_key key; /* key and keyed: for a remote that is not bound yet */
    bool keyed;         /* the remote is bound with that key; else the peer alone */
    struct pwc_remote *previous; /* in the same list as `next` */
    struct pwc_remote *beside;   /* in a bucket of pwc_ctx.bound */
    struct bind *bind;           /* under way (binds/bind_start.c); or NULL */
    int error;                   /* why the remote could not be bound */
};

/* A Medium whose payload the caller writes into the submission ring (channel.submit.open). */
struct prepared {
    struct message block;
    uint8_t *at; /* where the block goes */
    /* The message's request, which counts the message already; or NULL. */
    struct pwc_request *request;
};

/* Operations over loose memory that are not wholly submitted (calls/series.h). */
struct series_queue {
    struct series *pool; /* memory of all series; NULL before the first */
    struct series *free;
    struct series *first, *last;
};

/* The teams that a context is in, and its persistent collectives, by number of their request.
 */
struct context_teams {
    struct pwc_team *all;
    struct pwc_team *active; /* teams that need a look */
    struct team_again **again;
    uint32_t again_count;
};

/* The function that takes events while a call waits (pwc_set_handler). */
struct context_events {
    pwc_event_handler run; /* NULL: there is none */
    void *argument;
    unsigned kinds; /* enum pwc_kinds */
    unsigned asked; /* kinds that the pwc_wait under way asks for: its caller gets such events, not
                       `run` */
};

/* Binds that were started and have not ended (binds/bind_start.c). */
struct context_binds {
    struct bind *first, *last; /* in the order of their deadlines */
    uint32_t count;
    struct daemon_mailbox mailbox; /* open from the first bind on */
    bool watched; /* the descriptor of pwc_fd is readable for answers (attach/descriptor.h) */
};

/* The call that waits now. */
struct context_wait {
    uint32_t call;  /* enum session_wait */
    uint32_t shown; /* the value in session_waits */
    int64_t at;     /* time up to which the call's wait is counted; 0: the call has not paused
                       yet */
    bool unheard;   /* the last yield was beside the daemon, and has let nobody run */
    bool batch;     /* asleep under the batch policy, instead of the system's */
    bool unbatched; /* the system does not let this process change its policy */
    struct yields yields;
};

struct pwc_ctx {
    struct pwc_client *client;
    struct pwc_ctx *next;
    uint32_t session; /* the daemon's handle */
    uint32_t number;
    struct mapping mapping;
    int doorbell_fd;   /* eventfd: wakes the daemon */
    int wake_fd;       /* socket: bytes from the daemon wake us; hangs up when the daemon dies */
    int descriptor;    /* of pwc_fd (attach/descriptor.h); -1: pwc_fd has not been called */
    int64_t health_at; /* when to check next whether the daemon still lives */
    struct patience patience;
    struct context_wait wait;
    struct give_way give_way;
    struct context_events events;
    uint64_t flushes;
    uint32_t neighbour_changes_seen; /* session_shared.neighbours at the last neighbours_update */
    uint32_t neighbour_changes_checked; /* at the last look for neighbours that have gone */
    struct bound_remotes bound;
    struct pwc_remote *unbound; /* remotes that are not bound yet, or could not be (bind.h) */
    struct context_binds binds;
    struct pwc_window *windows;
    struct context_teams teams;
    struct span_view spans;
    struct landing_view landings;
    struct staging staging;
    struct series_queue series;
    struct handlers handlers;
    struct prepared prepared;
    uint32_t left_behind; /* number of the first request that a blocking call has left under way */
    struct channel channel;
};

/* Closes the context in order, and frees it in any case. Returns 0, or the error because of which
 * the daemon may still have it. */
int context_end(struct pwc_ctx *ctx);
/* Frees what the context holds in this process, and asks the daemon for nothing. */
void context_free(struct pwc_ctx *ctx);

#endif
