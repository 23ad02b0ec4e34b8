/*
 * The process's attachment to the daemon.
 *
 * Threads: any. Members above `lock` never change after pwc_init, or have a lock of their own;
 * `lock` guards the members below. Order of locks: the client's, the link's, then those of spans
 * and landings.
 */
#ifndef PWC_CLIENTLIB_CLIENT_H
#define PWC_CLIENTLIB_CLIENT_H

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include "clientlib/attach/daemon_link.h"
#include "clientlib/attach/guard.h"
#include "clientlib/memory/landings.h"
#include "pwc/pwc.h"
#include "clientlib/memory/segments.h"
#include "clientlib/memory/spans.h"
#include "clientlib/memory/tract.h"

struct pwc_client {
    struct fork_guard guard;
    struct daemon_link link;
    struct span_table spans;
    struct landing_table landings;
    uint32_t node;
    uint64_t instance; /* of the job; 0: the job's home is too old to send it */
    uint32_t rank;
    uint32_t size; /* PWC_OPEN in an open job */
    uint32_t packed_max;
    uint64_t bounce_max;
    uint64_t message_max;
    _Atomic uint32_t exchanges; /* exchanges that this rank has begun */

    pthread_mutex_t lock;
    struct segments segments;
    struct tracts tracts;
    struct pwc_region *regions;
    struct pwc_ctx *contexts;
    struct pwc_program *programs;
    struct pwc_offload *offloads;
    uint32_t *world_joins; /* by context number: how often the context has called pwc_team_world */
    uint32_t world_joins_count;
};

/* Whether this is a child made by fork, which owns nothing of the client. */
static inline bool client_is_forked(const struct pwc_client *client)
{
    return fork_guard_in_child(&client->guard);
}

/* 0 where a call may block or run handlers: not in a forked child, not inside a handler. */
static inline int client_may_block(const struct pwc_client *client)
{
    if (client_is_forked(client))
        return -EOWNERDEAD;
    return handler_on_this_thread() ? -EDEADLK : 0;
}

/* As client_may_block, at the start of a call that sets pwc_error_text: drops the text about an
 * earlier call. */
static inline int client_may_ask(struct pwc_client *client)
{
    if (client_is_forked(client))
        return -EOWNERDEAD;
    daemon_link_begin(&client->link);
    return handler_on_this_thread()
               ? daemon_link_refuse(&client->link, -EDEADLK,
                                    "a handler, or the fold of a collective, must not ask the "
                                    "daemon")
               : 0;
}

/* 0, or -ENOTSUP with its text: `what` needs to know how many ranks the job has. */
static inline int client_needs_size(struct pwc_client *client, const char *what)
{
    char why[DAEMON_TEXT_MAX];

    if (client->size != PWC_OPEN)
        return 0;
    snprintf(why, sizeof(why), "%s in an open job: it has no fixed number of ranks", what);
    return daemon_link_refuse(&client->link, -ENOTSUP, why);
}

#endif
