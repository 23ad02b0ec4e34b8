/* Clients, their sessions and segments: life and end. Thread: the progress thread. */
#include "daemon/engine/session/client.h"

#include <string.h>
#include "daemon/engine/peer/bind.h"
#include "shm_ring/doorbell.h"
#include "shm_ring/fault.h"
#include "daemon/engine/ops/flow.h"
#include "daemon/engine/state/notice.h"
#include "daemon/engine/session/session.h"
#include "daemon/engine/watch/steps.h"
#include "daemon/engine/session/quarantine.h"
#include "daemon/engine/state/table.h"
#include "daemon/engine/team/progress.h"

void client_inherit(struct engine *e)
{
    for (uint32_t i = 0; i < e->config.clients_max; i++)
        if (e->clients[i].state == CLIENT_LIVE && e->clients[i].quarantine != QUARANTINE_NONE)
            quarantine_notice(e, i);
    e->orphans = true;
}

int engine_client_open(struct engine *e, const struct engine_client_info *info)
{
    struct client *c;
    uint32_t free;

    if (info->rank >= info->size || memchr(info->job, '\0', sizeof(info->job)) == NULL)
        return -EINVAL;
    for (uint32_t i = 0; i < e->config.clients_max; i++) {
        c = &e->clients[i];
        if (c->state != CLIENT_FREE && c->uid == info->uid && c->rank == info->rank &&
            strcmp(c->job, info->job) == 0)
            return -EADDRINUSE;
    }
    free = table_take(e, TABLE_CLIENTS);
    if (free == NONE)
        return -ENOSPC;
    c = &e->clients[free];
    *c =
        (struct client){.uid = info->uid, .pid = info->pid, .rank = info->rank, .size = info->size};
    memcpy(c->job, info->job, sizeof(info->job));
    e->withdrawn[free] = false;
    set32(e, &c->state, CLIENT_LIVE);
    commit(e);
    step_attached(e, free);
    return (int)free;
}

void engine_client_close(struct engine *e, uint32_t client)
{
    if (client >= e->config.clients_max || e->clients[client].state != CLIENT_LIVE)
        return;
    set32(e, &e->clients[client].state, CLIENT_CLOSING);
    commit(e);
    step_detached(e, client);
    table_leaves(e, TABLE_CLIENTS, client);
}

static bool ring_size_valid(uint32_t bytes)
{
    return bytes >= SESSION_RING_MIN && bytes <= SESSION_RING_MAX && (bytes & (bytes - 1)) == 0;
}

static bool sizes_valid(const struct session_sizes *sizes)
{
    return ring_size_valid(sizes->submit) && ring_size_valid(sizes->local) &&
           ring_size_valid(sizes->remote) && ring_size_valid(sizes->reply_submit) &&
           ring_size_valid(sizes->reply_event);
}

int engine_session_open(struct engine *e, uint32_t client, uint32_t context, void *base,
                        const struct session_sizes *sizes, uint32_t mark)
{
    struct session_shared *shared = base;
    struct session *s;
    uint32_t free;

    if (client >= e->config.clients_max || e->clients[client].state != CLIENT_LIVE ||
        !sizes_valid(sizes))
        return -EINVAL;
    for (uint32_t i = 0; i < e->open_count; i++) {
        s = &e->sessions[e->open_sessions[i]];
        if (s->client == client && s->context == context)
            return -EADDRINUSE;
    }
    free = table_take(e, TABLE_SESSIONS);
    if (free == NONE)
        return -ENOSPC;
    s = &e->sessions[free];
    *s = (struct session){.client = client,
                          .context = context,
                          .sizes = *sizes,
                          .mark = mark,
                          .generation = (s->generation + 1) % ENGINE_GENERATIONS,
                          .first_flow = NONE,
                          .first_inflow = NONE};
    queue_init(&s->spill, SPILL_SHIFT);
    e->session_live[free] = (struct session_live){.dirty = e->session_live[free].dirty};
    shared->magic = SESSION_MAGIC;
    shared->version = SESSION_VERSION;
    shared->sizes = *sizes;
    shared->message_max = e->message_max;
    shared->fences = e->host->fence != NULL;
    shared->strided = 1;
    shared->context = context;
    shared->rank = e->clients[client].rank;
    atomic_store_explicit(&shared->state, SESSION_LIVE, memory_order_release);
    session_views(e, free, base);
    set32(e, &s->state, SESSION_OPEN);
    commit(e);
    e->open_sessions[e->open_count++] = free;
    session_enters(e, free);
    return (int)free;
}

int engine_session_inherit(struct engine *e, uint32_t session, void *base)
{
    if (session >= e->config.sessions_max || e->sessions[session].state == SESSION_FREE)
        return -EINVAL;
    session_views(e, session, base);
    doorbell_disarm(&e->session_live[session]
                         .shared->submit_bell); /* the earlier process may have died unfenced */
    /* An earlier process has delivered these events, so the sums since this process started leave
     * them out. */
    e->departed.delivered -= e->sessions[session].delivered;
    e->session_live[session].shared->fences = e->host->fence != NULL;
    e->session_live[session].shared->strided = 1;
    bind_show_ended(e, session);
    if (e->clients[e->sessions[session].client].quarantine != QUARANTINE_NONE)
        quarantine_show(e, session);
    if (e->sessions[session].spill_bytes == 0)
        session_release_spill(e, session);
    else
        session_release_handlers(e, session);
    return 0;
}

void engine_set_processor(struct engine *e, uint32_t processor)
{
    e->processor = processor + 1;
    for (uint32_t i = 0; i < e->open_count; i++)
        if (e->session_live[e->open_sessions[i]].attached)
            session_show_processor(e, e->open_sessions[i]);
}

int engine_session_find(const struct engine *e, uint32_t session, struct engine_session_found *out)
{
    const struct session *s = &e->sessions[session];

    if (session >= e->config.sessions_max || s->state == SESSION_FREE)
        return -ENOENT;
    *out = (struct engine_session_found){.client = s->client,
                                         .context = s->context,
                                         .generation = s->generation,
                                         .sizes = s->sizes,
                                         .mark = s->mark,
                                         .offloads = e->session_live[session].offloads,
                                         .closing = s->state == SESSION_CLOSING};
    return 0;
}

void engine_session_close(struct engine *e, uint32_t session)
{
    if (session >= e->config.sessions_max || e->sessions[session].state != SESSION_OPEN)
        return;
    set32(e, &e->sessions[session].in_order, 1);
    session_begin_close(e, session);
}

void session_begin_close(struct engine *e, uint32_t session)
{
    if (e->sessions[session].state != SESSION_OPEN)
        return;
    teams_forget_session(e, session);
    set32(e, &e->sessions[session].state, SESSION_CLOSING);
    commit(e);
    table_leaves(e, TABLE_SESSIONS, session);
}

/* ---- segments -------------------------------------------------------------------------------- */

static int segment_register(struct engine *e, uint32_t segment, void *base)
{
    struct segment_live *live = &e->segment_live[segment];
    int r;

    *live = (struct segment_live){.base = base};
    r = FAULT(SEGMENT_REGISTER);
    if (r == 0)
        r = fabric_mem_add(e->fabric, base, e->segments[segment].length,
                           FABRIC_REMOTE_READ | FABRIC_REMOTE_WRITE,
                           cookie_of(COOKIE_SEGMENT, segment));
    live->adding = r == 0;
    live->status = r;
    return r;
}

int engine_segment_open(struct engine *e, uint32_t client, void *base, uint64_t length)
{
    struct segment *s;
    uint32_t free;
    int r;

    if (client >= e->config.clients_max || e->clients[client].state != CLIENT_LIVE || length == 0)
        return -EINVAL;
    free = table_take(e, TABLE_SEGMENTS);
    if (free == NONE)
        return -ENOSPC;
    s = &e->segments[free];
    *s = (struct segment){
        .client = client, .length = length, .generation = (s->generation + 1) % ENGINE_GENERATIONS};
    r = segment_register(e, free, base);
    if (r < 0) {
        arena_rollback(&e->arena);
        return r;
    }
    set32(e, &s->state, SEGMENT_OPEN);
    commit(e);
    return (int)free;
}

int engine_segment_inherit(struct engine *e, uint32_t segment, void *base)
{
    if (segment >= e->config.segments_max || e->segments[segment].state == SEGMENT_FREE)
        return -EINVAL;
    return segment_register(e, segment, base);
}

int engine_segment_find(const struct engine *e, uint32_t segment, struct engine_segment_found *out)
{
    const struct segment *s = &e->segments[segment];

    if (segment >= e->config.segments_max || s->state == SEGMENT_FREE)
        return -ENOENT;
    *out = (struct engine_segment_found){.client = s->client,
                                         .generation = s->generation,
                                         .length = s->length,
                                         .closing = s->state == SEGMENT_CLOSING};
    return 0;
}

int engine_segment_close(struct engine *e, uint32_t client, uint32_t segment)
{
    struct segment *seg;

    if (segment >= e->config.segments_max)
        return -EINVAL;
    seg = &e->segments[segment];
    if (seg->state != SEGMENT_OPEN || seg->client != client)
        return -EINVAL;
    if (seg->regions > 0)
        return -EBUSY;
    set32(e, &seg->state, SEGMENT_CLOSING);
    commit(e);
    table_leaves(e, TABLE_SEGMENTS, segment);
    return 0;
}

/* Makes the flows of a list ready, since any of them may wait for the segment. */
static void flows_ready(struct engine *e, uint32_t first)
{
    for (uint32_t i = first; i != NONE; i = e->flows[i].next)
        flow_ready(e, i);
}

void segment_added(struct engine *e, uint32_t segment, int status,
                   const struct fabric_memory *memory)
{
    struct segment_live *live = &e->segment_live[segment];

    live->adding = false;
    live->status = status;
    if (status == 0) {
        live->memory = *memory;
        live->registered = true;
    }
    notice_push(e, &(struct engine_notice){
                       .kind = ENGINE_SEGMENT_READY, .handle = segment, .status = status});
    for (uint32_t i = 0; i < e->open_count; i++)
        if (e->sessions[e->open_sessions[i]].client == e->segments[segment].client)
            flows_ready(e, e->sessions[e->open_sessions[i]].first_flow);
    flows_ready(e, *e->own_flows);
    e->sweep = true;
}

void segment_dropped(struct engine *e, uint32_t segment, int status)
{
    struct segment *seg = &e->segments[segment];

    FAULT(SEGMENT_DROPPED);
    if (status < 0) { /* the card may still reach it: its state stays */
        e->segment_live[segment].dropping = false;
        e->segment_live[segment].registered = e->segment_live[segment].refused = true;
        drop_later(e);
        return;
    }
    e->segment_live[segment] = (struct segment_live){0};
    set32(e, &seg->state, SEGMENT_FREE);
    table_give(e, TABLE_SEGMENTS, segment);
    commit(e);
    notice_push(e, &(struct engine_notice){.kind = ENGINE_SEGMENT_CLOSED, .handle = segment});
    e->sweep = true;
}
