/* The table of handlers' gets (gets.h). Thread: the progress thread. */
#include "daemon/engine/offload/gets.h"

#include "daemon/engine/offload/find.h"
#include "daemon/engine/state/table.h"

static const struct ready_list empty = {NONE, NONE};

void gets_open(struct engine *e)
{
    struct handler_gets *g = &e->offloads.gets;

    g->sessions = empty;
    for (uint32_t i = 0; i < e->config.sessions_max; i++)
        g->of[i] = empty;
}

/* ---- the table ------------------------------------------------------------------------------- */

/* Free entries, without those that are kept for each client. */
static uint32_t shared_free(const struct engine *e)
{
    const struct free_list *unused = &e->unused[TABLE_GETS];
    uint32_t free = *unused->count + unused->size - *unused->fresh;
    uint32_t kept = GETS_OWN * e->config.clients_max;

    return free > kept ? free - kept : 0;
}

static uint32_t gets_of_user(const struct engine *e, uint32_t uid)
{
    uint32_t gets = 0;

    for (uint32_t i = 0; i < e->config.clients_max; i++)
        gets +=
            e->clients[i].state != CLIENT_FREE && e->clients[i].uid == uid ? e->clients[i].gets : 0;
    return gets;
}

uint32_t gets_room(const struct engine *e, uint32_t session)
{
    const struct client *c = &e->clients[e->sessions[session].client];
    uint32_t own = c->gets < GETS_OWN ? GETS_OWN - c->gets : 0;
    uint32_t free, user;

    if (own == GETS_OWN) /* no handler sends more */
        return own;
    free = shared_free(e);
    user = gets_of_user(e, c->uid);
    return free > user && (free - user) / 2 > own ? (free - user) / 2 : own;
}

uint32_t gets_take(struct engine *e, uint32_t offload, const struct get_draft *draft)
{
    struct offload *o = &e->offloads.table[offload];
    struct client *c = &e->clients[e->sessions[o->session].client];
    const struct remote *remote = &e->remotes[draft->remote];
    uint32_t get = table_take(e, TABLE_GETS);
    struct handler_get *g = &e->offloads.gets.table[get];

    *g = (struct handler_get){.session = o->session,
                              .peer = remote->peer,
                              .endpoint = remote->endpoint,
                              .handled = {.open = 1,
                                          .sequence = get,
                                          .offload = offload_handle_of(o, offload),
                                          .stage = HANDLER_COMPLETION,
                                          .kind = HANDLER_GOT,
                                          .total = draft->length,
                                          .id = draft->id,
                                          .place = draft->place}};
    set32(e, &g->state, GET_SENT);
    set32(e, &o->gets, o->gets + 1);
    set32(e, &c->gets, c->gets + 1);
    return get;
}

void gets_give(struct engine *e, uint32_t get)
{
    struct handler_get *g = &e->offloads.gets.table[get];
    struct client *c = &e->clients[e->sessions[g->session].client];
    uint32_t offload = offload_of_handle(e, g->session, g->handled.offload);

    if (offload != NONE) {
        struct offload *o = &e->offloads.table[offload];

        set32(e, &o->gets, o->gets - 1);
        if (o->gets == 0 && o->ending != OFFLOAD_STAYS)
            table_leaves(e, TABLE_OFFLOADS, offload);
    }
    set32(e, &c->gets, c->gets - 1);
    set32(e, &g->state, GET_FREE);
    table_give(e, TABLE_GETS, get);
}

/* ---- gets that have come --------------------------------------------------------------------- */

void gets_session_back(struct engine *e, uint32_t session)
{
    struct handler_gets *g = &e->offloads.gets;

    if (g->listed[session])
        return;
    g->listed[session] = true;
    list_push(&g->sessions, g->session_next, session);
}

void gets_put_back(struct engine *e, uint32_t get)
{
    struct handler_gets *g = &e->offloads.gets;
    uint32_t session = g->table[get].session;

    list_push(&g->of[session], g->next, get);
    gets_session_back(e, session);
}

void gets_ended(struct engine *e, uint32_t get, uint32_t offload, int32_t status)
{
    struct handler_get *g = &e->offloads.gets.table[get];

    if (g->state != GET_SENT ||
        g->handled.offload != offload_handle_of(&e->offloads.table[offload], offload))
        return;
    set32(e, &g->state, GET_COME);
    if (status < 0) {
        set32(e, (uint32_t *)&g->handled.status, (uint32_t)status);
        set32(e, &g->handled.flags, HANDLED_FAILED);
        set32(e, &g->handled.dropped, g->handled.total);
    }
    gets_put_back(e, get);
}

uint32_t gets_next_session(struct engine *e)
{
    struct handler_gets *g = &e->offloads.gets;
    uint32_t session = list_pop(&g->sessions, g->session_next);

    g->listed[session] = false;
    return session;
}

uint32_t gets_next(struct engine *e, uint32_t session)
{
    struct handler_gets *g = &e->offloads.gets;

    return list_pop(&g->of[session], g->next);
}

/* ---- ends and beginnings --------------------------------------------------------------------- */

void gets_forget(struct engine *e, uint32_t session)
{
    const struct client *c = &e->clients[e->sessions[session].client];

    e->offloads.gets.of[session] = empty;
    for (uint32_t i = 0; c->gets > 0 && i < table_bound(e, TABLE_GETS); i++) {
        const struct handler_get *g = &e->offloads.gets.table[i];

        if (g->state == GET_FREE || g->session != session)
            continue;
        gets_give(e, i);
        commit(e);
    }
}

void gets_inherit(struct engine *e)
{
    for (uint32_t i = 0; i < table_bound(e, TABLE_GETS); i++) {
        const struct handler_get *g = &e->offloads.gets.table[i];

        if (g->state == GET_FREE)
            continue;
        if (offload_of_handle(e, g->session, g->handled.offload) == NONE) {
            gets_give(e, i);
            commit(e);
        } else if (g->state == GET_COME) {
            gets_put_back(e, i);
        }
    }
}
