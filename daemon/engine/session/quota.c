/* Counts the entries that clients and users have in the shared tables (quota.h). Thread: the
 * progress thread. */
#include "daemon/engine/session/quota.h"

#include <errno.h>
#include "daemon/engine/state/held.h"

static uint64_t share(uint64_t configured, uint64_t all)
{
    if (configured == 0)
        configured = all - all / 8;
    return configured < all ? configured : all;
}

void quota_defaults(struct engine_config *c)
{
    c->binds_client = (uint32_t)share(c->binds_client, c->remotes_max);
    c->binds_user = (uint32_t)share(c->binds_user, c->remotes_max);
    c->pairs_client = (uint32_t)share(c->pairs_client, c->flows_max);
    c->pairs_user = (uint32_t)share(c->pairs_user, c->flows_max);
    c->chunks_client = c->chunks_client > 0 ? c->chunks_client : c->chunks_max;
    c->chunks_user = (uint32_t)share(c->chunks_user, c->chunks_max);
    c->teams_user = (uint32_t)share(c->teams_user, TEAMS_MAX);
    c->team_bytes_user = share(c->team_bytes_user, c->team_bytes);
}

static uint32_t user_of(const struct engine *e, uint32_t session)
{
    return e->clients[e->sessions[session].client].uid;
}

/* ---- binds and pairs ------------------------------------------------------------------------- */

static int below(uint32_t client, uint32_t client_max, uint32_t user, uint32_t user_max)
{
    return client < client_max && user < user_max ? 0 : -EDQUOT;
}

int quota_bind(const struct engine *e, uint32_t session, bool flow)
{
    uint32_t client = e->sessions[session].client;
    struct held user = held_of_user(e, client);
    int r = below(e->clients[client].remotes, e->config.binds_client, user.remotes,
                  e->config.binds_user);

    if (r < 0 || !flow)
        return r;
    return below(e->clients[client].flows, e->config.pairs_client, user.flows,
                 e->config.pairs_user);
}

/* Flows of replies take places in the same table as flows of requests. */
int quota_replies(const struct engine *e, uint32_t session)
{
    uint32_t client = e->sessions[session].client;

    return below(e->clients[client].flows, e->config.pairs_client, held_of_user(e, client).flows,
                 e->config.pairs_user);
}

int quota_inflow(const struct engine *e, uint32_t session)
{
    uint32_t client = e->sessions[session].client;

    return below(e->clients[client].inflows, e->config.pairs_client,
                 held_of_user(e, client).inflows, e->config.pairs_user);
}

int quota_grant(const struct engine *e, uint32_t region)
{
    uint32_t client = e->regions[region].client;

    return below(e->clients[client].grants, e->config.binds_client, held_of_user(e, client).grants,
                 e->config.binds_user);
}

/* ---- teams ----------------------------------------------------------------------------------- */

int quota_team(const struct engine *e, uint32_t uid, uint64_t bytes)
{
    uint32_t teams = 0;
    uint64_t held = 0;

    for (uint32_t i = 0; i < TEAMS_MAX; i++) {
        const struct team *t = &e->teams.table[i];

        if (t->state == TEAM_FREE || t->uid != uid)
            continue;
        teams++;
        held += t->bytes;
    }
    if (teams >= e->config.teams_user)
        return -EDQUOT;
    return held + bytes <= e->config.team_bytes_user ? 0 : -ENOBUFS;
}

/* ---- chunks ---------------------------------------------------------------------------------- */

/* The chunks that a client holds, and the chunks that all clients of its user hold. */
struct chunks {
    uint32_t client, user;
};

static uint32_t chunks_of(const struct engine *e, uint32_t session)
{
    return e->session_live[session].chunks + queue_chunks(&e->sessions[session].spill);
}

/* Adds the chunks that waiting notes of the client fill, and of all clients of its user. */
static void add_notes(const struct engine *e, uint32_t client, uint32_t uid, struct chunks *chunks)
{
    for (uint32_t i = 0; i < e->config.clients_max; i++) {
        uint32_t n = e->clients[i].uid == uid ? e->client_notes[i] >> (14 - NOTE_SHIFT) : 0;

        chunks->user += n;
        chunks->client += i == client ? n : 0;
    }
}

/* Whether the context may have `need` more chunks. The first few are within every quota; `has`
 * counts only chunks of the same use, because an event must find room in an empty spill, or nothing
 * would drain. */
static bool may_grow(const struct engine *e, uint32_t session, uint32_t has, uint32_t need)
{
    uint32_t client = e->sessions[session].client, uid = user_of(e, session);
    uint32_t free = e->pool.state->free;
    struct chunks chunks = {0};

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

int quota_room(const struct engine *e, uint32_t session, uint32_t chunks)
{
    return may_grow(e, session, e->session_live[session].chunks, chunks) ? 0 : -ENOBUFS;
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
