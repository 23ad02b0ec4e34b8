/* Fills and writes the records of a trace (trace.h). Thread: the progress thread. */
#include "daemon/engine/watch/trace.h"

#include "daemon/engine/ops/op.h"
#include "daemon/handlers/run.h"

void engine_trace(struct engine *e, struct trace_ring *ring)
{
    e->trace = ring;
    /* The owners of records that already wait in the ledgers are not known. */
    for (uint32_t i = 0; ring && i < e->config.peers; i++) {
        struct ledger_out *out = &e->peer_live[i].out;

        if (!e->peer_live[i].known)
            continue;
        out->owned = out->sent != e->peers[i].tx_tail;
        out->owner = NONE;
        for (uint32_t run = 0; run < RUN_WINDOW; run++)
            out->run_owner[run] = NONE;
    }
}

static void write_of_session(struct engine *e, uint32_t session, struct trace_record *r)
{
    r->session = session;
    r->client = session == NONE ? NONE : e->sessions[session].client;
    r->uid = session == NONE ? r->uid : e->clients[r->client].uid;
    r->at_ns = e->now;
    trace_ring_write(e->trace, r);
}

void trace_operation(struct engine *e, enum trace_kind kind, uint32_t flow, uint64_t slot,
                     const struct op *op, uint64_t position)
{
    const struct flow *f = &e->flows[flow];
    struct ledger_out *out = &e->peer_live[f->peer].out;

    write_of_session(e, owner_as_session(f->owner),
                     &(struct trace_record){
                         .kind = (uint8_t)kind,
                         .op = op_shown_kind(op),
                         .count = (uint16_t)op_count(op),
                         .flow = flow,
                         .node = f->peer,
                         .uid = f->uid,
                         .sequence = slot,
                         .position = position,
                         .length = op_shown_length(op),
                         .status = op->status,
                     });
    if (kind != TRACE_STAGED)
        return;
    out->owner = !out->owned || out->owner == f->uid ? f->uid : NONE;
    out->owned = true;
}

void trace_event(struct engine *e, enum trace_kind kind, uint32_t session, uint32_t peer,
                 uint32_t origin_flow, const struct event_record *event, uint32_t count)
{
    const struct session_live *live = &e->session_live[session];
    bool spilled = kind == TRACE_REMOTE && e->sessions[session].spill_bytes > 0;

    write_of_session(e, session,
                     &(struct trace_record){
                         .kind = (uint8_t)kind,
                         .op = event->op,
                         .count = (uint16_t)count,
                         .flow = origin_flow,
                         .node = peer,
                         .sequence = (uint32_t)event->sequence,
                         .position = kind == TRACE_REPLY ? live->reply_event.tail
                                     : spilled           ? 0
                                                         : live->remote.tail,
                         .length = (uint32_t)event->bytes,
                         .status = event->status,
                     });
}

void trace_handler(struct engine *e, uint32_t session, uint32_t offload, const struct run *run,
                   uint32_t bytes)
{
    bool timed = e->host->clock != NULL;
    const struct client *c = &e->clients[e->sessions[session].client];

    trace_ring_write(e->trace,
                     &(struct trace_record){
                         .kind = TRACE_HANDLER,
                         .op = (uint8_t)run->stage,
                         .count = 1,
                         .flow = offload,
                         .node = e->config.self,
                         .session = session,
                         .client = e->sessions[session].client,
                         .uid = c->uid,
                         .at_ns = timed ? run->begun : e->now,
                         .position = timed ? e->host->clock(e->host->context) - run->begun : 0,
                         .sequence = run->used,
                         .length = bytes,
                         .status = (int32_t)run->fault,
                     });
}

/* Writes a record that belongs to no operation. */
static void write_other(struct engine *e, struct trace_record *r)
{
    r->flow = r->session = NONE;
    r->at_ns = e->now;
    trace_ring_write(e->trace, r);
}

void trace_run(struct engine *e, enum trace_kind kind, uint32_t peer, uint16_t run, uint64_t bytes,
               int status)
{
    struct ledger_out *out = &e->peer_live[peer].out;

    if (kind == TRACE_RUN)
        out->run_owner[run % RUN_WINDOW] = out->owned ? out->owner : NONE;
    write_other(e, &(struct trace_record){.kind = (uint8_t)kind,
                                          .node = peer,
                                          .client = NONE,
                                          .uid = out->run_owner[run % RUN_WINDOW],
                                          .sequence = run,
                                          .position = out->sent,
                                          .length = (uint32_t)bytes,
                                          .status = status});
    if (kind == TRACE_RUN && out->sent == e->peers[peer].tx_tail)
        out->owned = false;
}

void trace_peer(struct engine *e, enum trace_kind kind, uint32_t peer)
{
    write_other(e, &(struct trace_record){
                       .kind = (uint8_t)kind, .node = peer, .client = NONE, .uid = NONE});
}

void trace_client(struct engine *e, enum trace_kind kind, uint32_t client)
{
    const struct client *c = &e->clients[client];

    write_other(e, &(struct trace_record){.kind = (uint8_t)kind,
                                          .node = e->config.self,
                                          .client = client,
                                          .uid = c->uid,
                                          .status = (int32_t)c->quarantine});
}

/* Records how far a client has read one of its rings, if that is further than before. */
static void look_at_ring(struct engine *e, uint32_t session, enum trace_ring_name name,
                         struct ring_producer *ring)
{
    uint64_t *seen = &e->session_live[session].drained[name];

    /* The delivery of the next event deals with an index that makes no sense. */
    if (ring_used(ring) < 0 || ring->head_seen == *seen)
        return;
    *seen = ring->head_seen;
    write_of_session(e, session,
                     &(struct trace_record){.kind = TRACE_DRAINED,
                                            .op = (uint8_t)name,
                                            .node = e->config.self,
                                            .flow = NONE,
                                            .position = ring->head_seen});
}

void trace_drained(struct engine *e)
{
    for (uint32_t i = 0; i < e->open_count; i++) {
        uint32_t session = e->open_sessions[i];
        struct session_live *live = &e->session_live[session];

        if (!live->attached)
            continue;
        look_at_ring(e, session, TRACE_RING_LOCAL, &live->local);
        look_at_ring(e, session, TRACE_RING_REMOTE, &live->remote);
        look_at_ring(e, session, TRACE_RING_REPLY, &live->reply_event);
    }
}
