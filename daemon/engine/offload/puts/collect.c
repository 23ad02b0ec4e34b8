/* Owns the list of a handler's sends (collect.h). Thread: the progress thread. */
#include "daemon/engine/offload/puts/collect.h"

#include <errno.h>
#include <string.h>
#include "daemon/engine/offload/account.h"
#include "daemon/engine/offload/gets.h"
#include "daemon/engine/ops/flow.h"
#include "daemon/engine/ops/reply_credit.h"
#include "daemon/engine/ops/submit.h"
#include "daemon/engine/session/quota.h"
#include "daemon/engine/session/session.h"
#include "daemon/handlers/sends.h"
#include "proto/word_abi.h"

/* Chunks that sends leave to other writes of the transaction: a verdict, a STOP, a reply. */
#define CHUNKS_LEFT 6u
/* Entries that a reply without arguments takes in its flow. */
#define EMPTY_ENTRIES 2u

static struct offload *offload_of(const struct engine *e)
{
    return &e->offloads.table[e->offloads.collected->sender.offload];
}

void collect_begin(struct engine *e, const struct sender *sender)
{
    struct collected *c = e->offloads.collected;

    c->sender = *sender;
    memcpy(c->counters, e->offloads.table[sender->offload].counters, sizeof(c->counters));
    c->counted = c->replied = false;
    c->sends = c->events = c->flows = c->bytes = c->chunks = 0;
    c->gets = 0;
    c->gets_most = NONE;
}

/* ---- room ------------------------------------------------------------------------------------ */

/* The place of a flow in the list of flows; a new flow's is after the last. */
static uint32_t place_of(const struct collected *c, uint32_t flow)
{
    uint32_t i = 0;

    while (i < c->flows && c->flow[i].flow != flow)
        i++;
    return i;
}

/* Counts `span` more entries of this flow: 0, or -EAGAIN: there is no room. */
static int take_room(struct engine *e, struct collected *c, uint32_t flow, uint32_t span)
{
    const struct queue *q = &e->flows[flow].ops;
    uint32_t place = place_of(c, flow);
    uint32_t had = place < c->flows ? c->flow[place].span : 0;
    uint32_t chunks =
        c->chunks - (had > 0 ? queue_growth(q, had) : 0) + queue_growth(q, had + span);

    if (queue_count(q) + had + span > COLLECT_FLOW_ENTRIES ||
        chunks + e->chunks_keep + CHUNKS_LEFT > e->pool.state->free ||
        (chunks > c->chunks && quota_room(e, offload_of(e)->session, chunks) < 0))
        return -EAGAIN;
    c->chunks = chunks;
    c->flow[place].flow = flow;
    c->flow[place].span = had + span;
    if (place == c->flows)
        c->flows++;
    return 0;
}

/* ---- drafts ---------------------------------------------------------------------------------- */

/* Begins the next draft, with `bytes` after its record; NULL: the list is full. */
static struct submit_record *draft_begin(struct collected *c, uint32_t bytes)
{
    struct submit_record *draft = (struct submit_record *)(void *)(c->drafts + c->bytes);

    if (c->sends + c->events >= COLLECT_SENDS || sizeof(*draft) + bytes > COLLECT_BYTES - c->bytes)
        return NULL;
    memset(draft, 0, sizeof(*draft) + bytes);
    draft->size = (uint32_t)sizeof(*draft) + bytes;
    return draft;
}

/* Keeps a finished draft, if its flow has room for it and it would not fail at once. */
static int draft_keep(struct engine *e, struct collected *c, uint32_t flow,
                      const struct submit_record *draft)
{
    int r = op_check(e, flow, draft);

    if (r == 0)
        r = take_room(e, c, flow, op_span(draft));
    if (r < 0)
        return r;
    c->send[c->sends].flow = flow;
    c->send[c->sends].get = false;
    c->send[c->sends].at = c->bytes;
    c->sends++;
    c->bytes += draft->size;
    return 0;
}

/* The word by which the end of a send finds its offload and counter (table.c). */
static uint64_t lid_of(const struct engine *e, const struct run_send *send)
{
    const struct collected *c = e->offloads.collected;
    uint64_t counter = send->counter == HANDLER_NONE ? 0 : send->counter + 1;

    return (uint64_t)offload_handle_of(offload_of(e), c->sender.offload) << OFFLOAD_LID_HANDLE |
           counter;
}

/* Whether the remote is still one of the offload's targets. */
static bool target_stands(const struct engine *e, uint32_t remote)
{
    const struct offload *o = offload_of(e);
    const struct remote *r = &e->remotes[remote];

    return remote != NONE && r->owner == owner_of(OWNER_OFFLOADS, o->session) && !r->unbound &&
           r->cookie >> 32 == offload_handle_of(o, e->offloads.collected->sender.offload);
}

/* The remote of a target: 0, or -EHOSTUNREACH where it leads nowhere any more. */
static int target_remote(const struct engine *e, uint32_t target, uint32_t *remote)
{
    *remote = offload_targets(&e->offloads, e->offloads.collected->sender.offload)[target].remote;
    if (!target_stands(e, *remote))
        return -EHOSTUNREACH;
    return e->remotes[*remote].state == REMOTE_READY || e->remotes[*remote].state == REMOTE_STALE
               ? 0
               : -EHOSTUNREACH;
}

static uint16_t flags_of(const struct run_send *send)
{
    /* Without a counter only errors of the send are of interest. */
    return (uint16_t)((send->counter == HANDLER_NONE ? SUBMIT_NO_LCE : 0) |
                      (send->flags & SEND_QUIET ? SUBMIT_NO_RCE : 0));
}

static int collect_put(struct engine *e, struct collected *c, const struct run_send *send)
{
    uint32_t remote, length = (uint32_t)send->length;
    struct submit_record *draft;
    int r = target_remote(e, send->target, &remote);

    if (r < 0)
        return r;
    if (length > e->config.packed_max)
        return -EMSGSIZE;
    draft = draft_begin(c, abi_pad8(length));
    if (!draft)
        return -ENOBUFS;
    draft->kind = SUBMIT_PUT;
    draft->flags = (uint16_t)(flags_of(send) | (length > 0 ? SUBMIT_INLINE : 0));
    draft->remote = remote;
    draft->offset = send->offset;
    draft->length = length;
    draft->lid = lid_of(e, send);
    draft->rid = send->id;
    if (length > 0)
        memcpy(draft + 1, send->from, length);
    return draft_keep(e, c, e->remotes[remote].flow, draft);
}

/* Drafts an operation between a target and the offload's region, in which nothing is copied.
 * Returns 0 or -ENOBUFS. */
static int host_draft(struct engine *e, struct collected *c, const struct run_send *send,
                      uint32_t remote, struct submit_record **out)
{
    const struct engine_range *host = &offload_of(e)->host;
    struct submit_record *draft = draft_begin(c, 0);

    if (!draft)
        return -ENOBUFS;
    draft->remote = remote;
    draft->offset = send->offset;
    draft->length = send->length;
    draft->lid = lid_of(e, send);
    draft->rid = send->id;
    if (send->length > 0) {
        draft->segment = e->regions[host->slot].segment;
        draft->local_offset = e->regions[host->slot].offset + host->offset + send->host_offset;
    }
    *out = draft;
    return 0;
}

/* Puts from the offload's region as its client would: without a copy, so the bytes must stay. */
static int collect_put_host(struct engine *e, struct collected *c, const struct run_send *send)
{
    struct submit_record *draft;
    uint32_t remote;
    int r = target_remote(e, send->target, &remote);

    if (r < 0)
        return r;
    r = host_draft(e, c, send, remote, &draft);
    if (r < 0)
        return r;
    draft->kind = SUBMIT_PUT;
    draft->flags = flags_of(send);
    return draft_keep(e, c, e->remotes[remote].flow, draft);
}

/* Whether there is room for one more get: 0 or -EAGAIN. Counts the free entries once in a run. */
static int take_get(struct engine *e, struct collected *c)
{
    if (c->gets_most == NONE)
        c->gets_most = gets_room(e, offload_of(e)->session);
    return c->gets < c->gets_most ? 0 : -EAGAIN;
}

/* Gets into the offload's region as its client would, with no event at the target. The get's entry
 * is taken when the operation enters its flow. */
static int collect_get(struct engine *e, struct collected *c, const struct run_send *send)
{
    struct submit_record *draft;
    uint32_t remote;
    int r = target_remote(e, send->target, &remote);

    if (r == 0 && offload_of(e)->ending != OFFLOAD_STAYS)
        r = -ESHUTDOWN;
    if (r == 0)
        r = take_get(e, c);
    if (r < 0)
        return r;
    r = host_draft(e, c, send, remote, &draft);
    if (r < 0)
        return r;
    draft->kind = SUBMIT_GET;
    draft->flags = SUBMIT_NO_RCE;
    r = draft_keep(e, c, e->remotes[remote].flow, draft);
    if (r < 0)
        return r;
    c->send[c->sends - 1].get = true;
    c->send[c->sends - 1].host_offset = send->host_offset;
    c->gets++;
    return 0;
}

/* Drafts an atomic of one element, which fetches nothing. */
static int collect_atomic(struct engine *e, struct collected *c, const struct run_send *send)
{
    uint32_t remote, length = word_bytes(send->code);
    struct submit_record *draft;
    int r = target_remote(e, send->target, &remote);

    if (r < 0)
        return r;
    draft = draft_begin(c, abi_pad8(length));
    if (!draft)
        return -ENOBUFS;
    draft->kind = SUBMIT_ATOMIC;
    draft->code = send->code;
    draft->flags = (uint16_t)(flags_of(send) | SUBMIT_INLINE);
    draft->remote = remote;
    draft->offset = send->offset;
    draft->length = length;
    draft->lid = lid_of(e, send);
    draft->rid = send->id;
    memcpy(draft + 1, &send->value, length);
    return draft_keep(e, c, e->remotes[remote].flow, draft);
}

/* Drafts a message, with its block after the record. */
static struct submit_record *draft_message(const struct engine *e, struct collected *c,
                                           const struct run_send *send)
{
    uint32_t length = (uint32_t)send->length;
    uint32_t bytes = (uint32_t)sizeof(struct message) + 8 * send->arguments + abi_pad8(length);
    struct submit_record *draft = draft_begin(c, bytes);
    struct message *m;

    if (!draft)
        return NULL;
    m = (struct message *)(void *)(draft + 1);
    draft->kind = length > 0 ? SUBMIT_MEDIUM : SUBMIT_SHORT;
    draft->rid_len = (uint16_t)bytes;
    draft->lid = lid_of(e, send);
    *m = (struct message){.index = (uint16_t)send->index,
                          .kind = draft->kind,
                          .arguments = (uint8_t)send->arguments,
                          .payload_len = length};
    if (send->arguments > 0)
        memcpy(m + 1, send->args, UINT64_C(8) * send->arguments);
    if (length > 0)
        memcpy((uint8_t *)(m + 1) + 8 * send->arguments, send->from, length);
    return draft;
}

static int collect_message(struct engine *e, struct collected *c, const struct run_send *send)
{
    struct submit_record *draft;
    uint32_t remote;
    int r = target_remote(e, send->target, &remote);

    if (r < 0)
        return r;
    if (send->length > e->config.packed_max)
        return -EMSGSIZE;
    draft = draft_message(e, c, send);
    if (!draft)
        return -ENOBUFS;
    draft->flags = SUBMIT_NO_LCE | SUBMIT_NO_REPLY;
    draft->remote = remote;
    return draft_keep(e, c, e->remotes[remote].flow, draft);
}

/* Drafts a reply. `enter` counts it as owed first, because its submission counts it as sent
 * (reply_answered). */
static int collect_reply(struct engine *e, struct collected *c, const struct run_send *send)
{
    const struct inflow *in = &e->inflows[c->sender.inflow];
    struct run_send reply = *send;
    struct submit_record *draft;
    int r;

    if (!c->sender.may_reply)
        return -ENOENT;
    if (c->replied)
        return -EALREADY;
    if (send->length > e->config.packed_max)
        return -EMSGSIZE;
    reply.index = e->offloads.table[c->sender.offload].index;
    draft = draft_message(e, c, &reply);
    if (!draft)
        return -ENOBUFS;
    draft->flags = SUBMIT_NO_LCE;
    draft->rid = c->sender.inflow;
    r = draft_keep(e, c, in->reply_flow[REPLIER_OFFLOADS], draft);
    c->replied = r == 0;
    return r;
}

static int collect_event(struct engine *e, struct collected *c, const struct run_send *send)
{
    uint32_t size = event_bytes(sizeof(struct offload_word));

    if (c->sends + c->events >= COLLECT_SENDS)
        return -ENOBUFS;
    if (session_try_more(e, offload_of(e)->session, c->sender.inflow, size,
                         c->sender.held + c->events * size) < 0)
        return -EAGAIN;
    c->event[c->events].id = send->id;
    c->event[c->events].value = send->value;
    c->events++;
    return 0;
}

/* ---- the hooks ------------------------------------------------------------------------------- */

int collect_send(void *engine, const struct run_send *send)
{
    struct engine *e = engine;
    struct collected *c = e->offloads.collected;

    switch (send->helper) {
    case HELPER_PUT:
        return collect_put(e, c, send);
    case HELPER_PUT_HOST:
        return collect_put_host(e, c, send);
    case HELPER_GET:
        return collect_get(e, c, send);
    case HELPER_ATOMIC:
        return collect_atomic(e, c, send);
    case HELPER_MESSAGE:
        return collect_message(e, c, send);
    case HELPER_REPLY:
        return collect_reply(e, c, send);
    case HELPER_EVENT:
        return collect_event(e, c, send);
    default:
        return -EOPNOTSUPP;
    }
}

uint32_t collect_target_of(void *engine, uint64_t peer)
{
    struct engine *e = engine;
    const struct offload *o = offload_of(e);
    const struct offload_target *targets =
        offload_targets(&e->offloads, e->offloads.collected->sender.offload);

    for (uint32_t i = 0; i < o->targets; i++)
        if (targets[i].endpoint == peer && target_stands(e, targets[i].remote))
            return i;
    return HANDLER_NONE;
}

uint64_t collect_counter(void *engine, uint32_t counter)
{
    const struct engine *e = engine;

    return e->offloads.collected->counters[counter];
}

void collect_counter_set(void *engine, uint32_t counter, uint64_t value)
{
    struct engine *e = engine;

    e->offloads.collected->counters[counter] = value;
    e->offloads.collected->counted = true;
}

/* ---- the end of the handler ------------------------------------------------------------------ */

/* Within a transaction: puts the operation into its flow, and counts its chunks for the session. */
static void enter(struct engine *e, uint32_t flow, const struct submit_record *draft)
{
    uint32_t free = e->pool.state->free;
    uint32_t session = owner_context(e->flows[flow].owner);

    if (e->flows[flow].traffic == FLOW_REPLIES)
        reply_owe(e, draft->token);
    if (op_enter(e, flow, draft) == 0)
        e->session_live[session].chunks += free - e->pool.state->free;
}

/* Within a transaction: puts the get into its flow, with the table entry that its end leads to. */
static void enter_get(struct engine *e, const struct collected *c, uint32_t i)
{
    struct submit_record *draft = (void *)(e->offloads.collected->drafts + c->send[i].at);
    uint32_t get = gets_take(e, c->sender.offload,
                             &(struct get_draft){.remote = draft->remote,
                                                 .length = (uint32_t)draft->length,
                                                 .place = c->send[i].host_offset,
                                                 .id = draft->rid});

    draft->lid |= (uint64_t)(get + 1) << OFFLOAD_LID_GET;
    enter(e, c->send[i].flow, draft);
}

static void deliver(struct engine *e, const struct collected *c, uint32_t i)
{
    uint32_t session = offload_of(e)->session;
    const struct offload_word word = {
        .cookie = offload_of(e)->cookie, .id = c->event[i].id, .value = c->event[i].value};
    struct event_draft draft = {.head = {.size = event_bytes(sizeof(word)),
                                         .kind = EVENT_OFFLOAD,
                                         .op = OFFLOAD_OWN,
                                         .id_len = sizeof(word),
                                         .origin = c->sender.peer,
                                         .peer = c->sender.origin},
                                .rest = (const uint8_t *)&word,
                                .rest_len = sizeof(word),
                                .front = sizeof(struct event_record)};
    struct event_room room;

    if (session_reserve_for(e, session, c->sender.inflow, draft.head.size, 1, &room) == 0)
        session_deliver(e, session, &room, &draft);
}

void collect_enter(struct engine *e)
{
    struct collected *c = e->offloads.collected;
    struct offload *o = offload_of(e);

    for (uint32_t i = 0; i < c->events; i++)
        deliver(e, c, i);
    for (uint32_t i = 0; i < c->sends; i++)
        if (c->send[i].get)
            enter_get(e, c, i);
        else
            enter(e, c->send[i].flow, (const void *)(c->drafts + c->send[i].at));
    for (uint32_t i = 0; i < HANDLER_COUNTERS && c->counted; i++)
        if (o->counters[i] != c->counters[i])
            set64(e, &o->counters[i], c->counters[i]);
    if (c->sends > 0)
        account_sends(e, o, c->sends);
}

void collect_entered(struct engine *e)
{
    const struct collected *c = e->offloads.collected;

    for (uint32_t i = 0; i < c->flows; i++)
        op_entered(e, c->flow[i].flow);
}

/* ---- replies without arguments --------------------------------------------------------------- */

bool collect_reply_allowed(const struct engine *e, uint32_t inflow)
{
    const struct inflow *in = &e->inflows[inflow];
    const struct queue *q;
    uint32_t chunks;

    if (in->reply_flow[REPLIER_OFFLOADS] == NONE)
        return true;
    q = &e->flows[in->reply_flow[REPLIER_OFFLOADS]].ops;
    chunks = queue_growth(q, EMPTY_ENTRIES);
    return queue_count(q) + EMPTY_ENTRIES <= COLLECT_FLOW_ENTRIES &&
           (chunks == 0 || quota_room(e, in->session, chunks) == 0);
}

int collect_reply_room(const struct engine *e, uint32_t inflow)
{
    uint32_t flow = e->inflows[inflow].reply_flow[REPLIER_OFFLOADS];
    const struct flow *f = &e->flows[flow];

    if (flow == NONE)
        return -ENOBUFS;
    return e->pool.state->free < CHUNKS_LEFT ? -ENOBUFS
                                             : queue_room(&e->pool, &f->ops, EMPTY_ENTRIES);
}

void collect_reply_empty(struct engine *e, uint32_t inflow)
{
    uint32_t flow = e->inflows[inflow].reply_flow[REPLIER_OFFLOADS];
    struct {
        struct submit_record record;
        struct message message;
    } draft = {
        .record = {.size = sizeof(draft),
                   .kind = SUBMIT_SHORT,
                   .flags = SUBMIT_NO_LCE | SUBMIT_NO_RCE,
                   .rid_len = sizeof(draft.message),
                   .token = inflow},
        .message = {.kind = SUBMIT_SHORT},
    };

    enter(e, flow, &draft.record);
}
