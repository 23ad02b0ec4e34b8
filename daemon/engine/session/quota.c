/* Counts the entries that clients and users have in the shared tables (quota.h). Thread: the
 * progress thread. */
#include "daemon/engine/session/quota.h"

static uint32_t share(uint32_t configured, uint32_t all)
{
    if (configured == 0)
        configured = all - all / 8;
    return configured < all ? configured : all;
}

void quota_defaults(struct engine_config *c)
{
    c->binds_client = share(c->binds_client, c->remotes_max);
    c->binds_user = share(c->binds_user, c->remotes_max);
    c->pairs_client = share(c->pairs_client, c->flows_max);
    c->pairs_user = share(c->pairs_user, c->flows_max);
    c->chunks_client = c->chunks_client > 0 ? c->chunks_client : c->chunks_max;
    c->chunks_user = share(c->chunks_user, c->chunks_max);
}

/* The number of entries that a client and its user have. */
struct held {
    uint32_t client, user;
};

static uint32_t user_of(const struct engine *e, uint32_t session)
{
    return e->clients[e->sessions[session].client].uid;
}

/* ---- binds and pairs ------------------------------------------------------------------------- */

static void count_flow(const struct engine *e, uint32_t flow, bool own, struct held *binds,
                       struct held *pairs)
{
    uint32_t named = e->flow_live[flow].remotes;

    binds->user += named;
    binds->client += own ? named : 0;
    pairs->user++;
    pairs->client += own;
}

/* Flows of replies take places in the same table as flows of requests. */
static void count_flows(const struct engine *e, uint32_t session, struct held *binds,
                        struct held *pairs)
{
    uint32_t client = e->sessions[session].client, uid = user_of(e, session);
    const struct leaving *leaving = &e->leaving[TABLE_FLOWS];

    for (uint32_t i = 0; i < e->open_count; i++) {
        const struct session *s = &e->sessions[e->open_sessions[i]];

        if (e->clients[s->client].uid != uid)
            continue;
        for (uint32_t f = s->first_flow; f != NONE; f = e->flows[f].next)
            count_flow(e, f, s->client == client, binds, pairs);
    }
    /* Flows whose context is gone still count for their user. */
    for (uint32_t i = 0; i < leaving->count; i++) {
        uint32_t flow = leaving->entries[(leaving->head + i) % leaving->size];
        const struct flow *f = &e->flows[flow];

        if (f->state != FLOW_FREE && f->owner == OWNER_GONE && f->uid == uid)
            count_flow(e, flow, false, binds, pairs);
    }
}

static bool pairs_left(const struct engine *e, const struct held *pairs)
{
    return pairs->client < e->config.pairs_client && pairs->user < e->config.pairs_user;
}

int quota_bind(const struct engine *e, uint32_t session, bool flow)
{
    struct held binds = {0}, pairs = {0};

    count_flows(e, session, &binds, &pairs);
    if (binds.client >= e->config.binds_client || binds.user >= e->config.binds_user)
        return -EDQUOT;
    return !flow || pairs_left(e, &pairs) ? 0 : -EDQUOT;
}

int quota_replies(const struct engine *e, uint32_t session)
{
    struct held binds = {0}, pairs = {0};

    count_flows(e, session, &binds, &pairs);
    return pairs_left(e, &pairs) ? 0 : -EDQUOT;
}

int quota_inflow(const struct engine *e, uint32_t session)
{
    uint32_t client = e->sessions[session].client, uid = user_of(e, session);
    struct held pairs = {0};

    for (uint32_t i = 0; i < e->open_count; i++) {
        const struct session *s = &e->sessions[e->open_sessions[i]];

        if (e->clients[s->client].uid != uid)
            continue;
        for (uint32_t in = s->first_inflow; in != NONE; in = e->inflows[in].next) {
            pairs.client += s->client == client;
            pairs.user++;
        }
    }
    return pairs_left(e, &pairs) ? 0 : -EDQUOT;
}

int quota_grant(const struct engine *e, uint32_t region)
{
    const struct client *owner = &e->clients[e->regions[region].client];
    uint32_t user = 0;

    for (uint32_t i = 0; i < e->config.clients_max; i++)
        user += e->clients[i].uid == owner->uid ? e->clients[i].grants : 0;
    return owner->grants < e->config.binds_client && user < e->config.binds_user ? 0 : -EDQUOT;
}

/* ---- chunks ---------------------------------------------------------------------------------- */

static uint32_t chunks_of(const struct engine *e, uint32_t session)
{
    return e->session_live[session].chunks + queue_chunks(&e->sessions[session].spill);
}

/* Chunks that the notes of a client fill, which wait to be staged; and those of all of its user. */
static void add_notes(const struct engine *e, uint32_t client, uint32_t uid, struct held *chunks)
{
    for (uint32_t i = 0; i < e->config.clients_max; i++) {
        uint32_t n = e->clients[i].uid == uid ? e->client_notes[i] >> (14 - NOTE_SHIFT) : 0;

        chunks->user += n;
        chunks->client += i == client ? n : 0;
    }
}

/* Whether `need` chunks more are within the quotas; the first few of a context always are. `has`:
 * what it has of the kind: an event must find room in an empty spill, or nothing would drain. */
static bool may_grow(const struct engine *e, uint32_t session, uint32_t has, uint32_t need)
{
    uint32_t client = e->sessions[session].client, uid = user_of(e, session);
    uint32_t free = e->pool.state->free;
    struct held chunks = {0};

    if (need + e->chunks_keep > free)
        return false;
    if (has + need <= QUOTA_CONTEXT_CHUNKS)
        return true;
    for (uint32_t i = 0; i < e->open_count; i++) {
        uint32_t s = e->open_sessions[i];
        uint32_t n = user_of(e, s) == uid ? chunks_of(e, s) : 0;

        chunks.user += n;
        chunks.client += e->sessions[s].client == client ? n : 0;
    }
    add_notes(e, client, uid, &chunks);
    return need + e->chunks_keep + chunks.client <= free &&
           chunks.client + need <= e->config.chunks_client &&
           chunks.user + need <= e->config.chunks_user;
}

/* Pushes entries for which the queue takes `grows` more chunks. */
static int push_counted(struct engine *e, uint32_t session, struct queue *q, uint32_t n,
                        uint32_t grows, uint32_t keep)
{
    int r = queue_push(&e->pool, q, n, keep);

    if (r == 0)
        e->session_live[session].chunks += grows;
    return r;
}

int quota_push_chunks(struct engine *e, uint32_t session, struct queue *q, uint32_t n)
{
    uint32_t grows = queue_growth(q, n);

    if (grows > 0 && !may_grow(e, session, e->session_live[session].chunks, grows))
        return -ENOBUFS;
    return push_counted(e, session, q, n, grows, e->chunks_keep);
}

int quota_push_reply(struct engine *e, uint32_t session, struct queue *q, uint32_t n)
{
    return push_counted(e, session, q, n, queue_growth(q, n), e->chunks_keep / 2);
}

int quota_push_spill(struct engine *e, uint32_t session, uint32_t n)
{
    struct queue *q = &e->sessions[session].spill;
    uint32_t grows = queue_growth(q, n);

    if (grows > 0 && !may_grow(e, session, queue_chunks(q), grows))
        return -ENOBUFS;
    return queue_push(&e->pool, q, n, e->chunks_keep);
}

void quota_pop_chunks(struct engine *e, uint32_t session, struct queue *q, uint32_t n)
{
    uint32_t free = e->pool.state->free;

    queue_pop(&e->pool, q, n);
    e->session_live[session].chunks -= e->pool.state->free - free;
}

void quota_count(struct engine *e, uint32_t session, const struct queue *q)
{
    e->session_live[session].chunks += queue_chunks(q);
}
