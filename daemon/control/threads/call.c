/* Carries out calls on the progress thread (call.h). */
#include "daemon/control/threads/call.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

static int client_open(struct call *c, struct engine *e)
{
    int rc = engine_client_open(e, &c->client);

    if (rc >= 0)
        host_table_drop_client(c->target->host_table, (uint32_t)rc); /* forgets the faults of the
                                                                      * handle's earlier client */
    return rc;
}

static int session_open(struct call *c, struct engine *e)
{
    struct call_session *s = &c->session;
    struct engine_session_found found;
    struct host_session attached = {.shared = s->base,
                                    .client = s->client,
                                    .wake = s->wake,
                                    .range = s->range,
                                    .relation = s->relation};
    int rc = engine_session_open(e, s->client, s->context, s->base, &s->sizes, s->mark);

    if (rc < 0)
        return rc;
    host_table_add_session(c->target->host_table, (uint32_t)rc, &attached);
    (void)engine_session_find(e, (uint32_t)rc, &found);
    s->generation = found.generation;
    return rc;
}

static int segment_open(struct call *c, struct engine *e)
{
    struct call_segment *s = &c->segment;
    struct engine_segment_found found;
    struct host_segment attached = {.base = s->base, .client = s->client, .range = s->range};
    int rc = engine_segment_open(e, s->client, s->base, s->length);

    if (rc < 0)
        return rc;
    host_table_add_segment(c->target->host_table, (uint32_t)rc, &attached);
    (void)engine_segment_find(e, (uint32_t)rc, &found);
    s->generation = found.generation;
    return rc;
}

static int team_open(struct call *c, struct engine *e)
{
    int rc = engine_team_open(e, &c->team_open.info, c->team_open.area);

    if (rc >= 0)
        host_table_add_area(c->target->host_table, (uint32_t)rc, c->team_open.range);
    return rc;
}

static int detach(struct call *c)
{
    const struct call_detach *d = &c->detach;

    if (d->segment)
        host_table_drop_segment(c->target->host_table, d->handle, d->base);
    else
        host_table_drop_session(c->target->host_table, d->handle, d->base);
    return 0;
}

static int carry_out(struct call *c, struct engine *e)
{
    switch (c->kind) {
    case CALL_CLIENT_OPEN:
        return client_open(c, e);
    case CALL_CLIENT_CLOSE:
        engine_client_close(e, c->handle);
        return 0;
    case CALL_SESSION_OPEN:
        return session_open(c, e);
    case CALL_SESSION_CLOSE:
        engine_session_close(e, c->handle);
        return 0;
    case CALL_SEGMENT_OPEN:
        return segment_open(c, e);
    case CALL_SEGMENT_CLOSE:
        return engine_segment_close(e, c->segment.client, c->segment.segment);
    case CALL_REGION_OPEN:
        return engine_region_open(e, c->region.client, c->region.segment, c->region.offset,
                                  c->region.length, c->region.rights, &c->region.key);
    case CALL_REGION_CLOSE:
        return engine_region_close(e, c->region.client, c->region.slot, c->region.generation,
                                   c->region.cookie);
    case CALL_BIND:
        return engine_bind(e, c->bind.session, c->bind.peer, c->bind.endpoint,
                           c->bind.has_key ? &c->bind.key : NULL, c->bind.cookie);
    case CALL_UNBIND:
        return engine_unbind(e, c->bind.session, c->bind.remote);
    case CALL_NEIGHBOUR:
        return engine_neighbour(e, c->neighbour.origin, &c->neighbour.way, &c->neighbour.found);
    case CALL_OFFER:
        return engine_offer(e, c->peer.number, &c->peer.offer);
    case CALL_PEER_UP:
        return engine_peer_up(e, c->peer.number, &c->peer.offer);
    case CALL_PEER_DOWN:
        engine_peer_down(e, c->peer.number);
        return 0;
    case CALL_PEER_LOST:
        engine_peer_lost(e, c->peer.number);
        return fabric_disconnect(c->target->fabric, c->peer.number);
    case CALL_PING:
        return engine_beat(e, c->peer.number, &c->peer.bytes);
    case CALL_PONG:
        engine_peer_answered(e, c->peer.number, c->peer.bytes);
        return 0;
    case CALL_ECHO:
        return 0;
    case CALL_TRACE:
        engine_trace(e, c->trace);
        return 0;
    case CALL_TEAM_OPEN:
        return team_open(c, e);
    case CALL_TEAM_LEAVE:
        engine_team_leave(e, c->team.handle, c->team.session);
        return 0;
    case CALL_TEAM_ABANDON:
        engine_team_abandon(e, c->team.handle, c->team.session);
        return 0;
    case CALL_TEAM_BREAK:
        engine_team_break(e, c->team.handle);
        return 0;
    case CALL_PROGRAM_LOAD:
        return engine_program_load(e, c->program.client, c->program.image, c->program.bytes);
    case CALL_PROGRAM_UNLOAD:
        return engine_program_unload(e, c->program.client, c->program.program);
    case CALL_OFFLOAD_CREATE:
        return engine_offload_create(e, c->offload.session, &c->offload.info, c->offload.cookie);
    case CALL_OFFLOAD_DESTROY:
        return engine_offload_destroy(e, c->offload.session, c->offload.offload);
    case CALL_OFFLOAD_ENABLE:
        return engine_offload_enable(e, c->offload.session, c->offload.offload);
    case CALL_OFFLOAD_DISABLE:
        return engine_offload_disable(e, c->offload.session, c->offload.offload);
    case CALL_DETACH:
        return detach(c);
    }
    return -EINVAL;
}

static void run(struct command *command, struct engine *engine)
{
    struct call *c = (struct call *)command;

    c->result = carry_out(c, engine);
    atomic_fetch_add_explicit(c->target->calls, 1, memory_order_relaxed);
}

static void done(struct command *command)
{
    struct call *c = (struct call *)command;
    bool embedded = c->embedded;

    if (c->done)
        c->done(c);
    if (!embedded)
        free(c);
}

void call_init(struct call *c, const struct call_target *target, enum call_kind kind, void *owner,
               void (*owner_done)(struct call *call))
{
    *c = (struct call){
        .command = {.run = run, .done = done},
        .target = target,
        .kind = kind,
        .owner = owner,
        .done = owner_done,
        .embedded = true,
    };
}

struct call *call_new(const struct call_target *target, enum call_kind kind, void *owner,
                      void (*owner_done)(struct call *call))
{
    struct call *c = malloc(sizeof(*c));

    if (!c)
        return NULL;
    call_init(c, target, kind, owner, owner_done);
    c->embedded = false;
    return c;
}

void call_post(struct progress *progress, struct call *call)
{
    if (progress)
        progress_post(progress, &call->command);
    else if (!call->embedded)
        free(call);
}
