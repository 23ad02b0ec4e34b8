/* Owns the counts of what clients and users hold (held.h). Thread: the progress thread. */
#include "daemon/engine/state/held.h"

#include "daemon/engine/state/table.h"

/* The client whose context the flow belongs to; NULL: none. */
static struct client *client_of(const struct engine *e, uint32_t flow)
{
    uint32_t session = owner_context(e->flows[flow].owner);

    return session == NONE ? NULL : &e->clients[e->sessions[session].client];
}

static void add(struct engine *e, uint32_t *count, int by)
{
    set32(e, count, *count + (uint32_t)by);
}

/* ---- flows without an owner ------------------------------------------------------------------ */

static struct user_gone *gone_of(const struct engine *e, uint32_t uid)
{
    for (uint32_t i = 0; i < e->gone_count; i++)
        if (e->gone[i].uid == uid)
            return &e->gone[i];
    return NULL;
}

static void gone_add(struct engine *e, uint32_t flow)
{
    struct user_gone *g = gone_of(e, e->flows[flow].uid);

    if (!g) {
        g = &e->gone[e->gone_count++];
        *g = (struct user_gone){.uid = e->flows[flow].uid};
    }
    g->flows++;
    g->remotes += e->flow_live[flow].remotes;
}

/* ---- coming and going ------------------------------------------------------------------------ */

void held_flow_comes(struct engine *e, uint32_t flow)
{
    struct client *c = client_of(e, flow);

    if (c)
        add(e, &c->flows, 1);
}

void held_flow_parts(struct engine *e, uint32_t flow)
{
    struct client *c = client_of(e, flow);

    if (c) {
        add(e, &c->flows, -1);
        add(e, &c->remotes, -(int)e->flow_live[flow].remotes);
    }
    gone_add(e, flow);
}

void held_flow_goes(struct engine *e, uint32_t flow)
{
    struct user_gone *g = gone_of(e, e->flows[flow].uid);

    if (g && --g->flows == 0)
        *g = e->gone[--e->gone_count];
}

void held_remotes(struct engine *e, uint32_t flow, int by)
{
    struct client *c = client_of(e, flow);
    struct user_gone *g = NULL;

    if (c)
        add(e, &c->remotes, by);
    else if (e->flows[flow].owner == OWNER_GONE)
        g = gone_of(e, e->flows[flow].uid);
    if (g)
        g->remotes += (uint32_t)by;
}

void held_inflows(struct engine *e, uint32_t session, int by)
{
    add(e, &e->clients[e->sessions[session].client].inflows, by);
}

void held_inherit(struct engine *e)
{
    for (uint32_t i = 0; i < table_bound(e, TABLE_FLOWS); i++)
        if (e->flows[i].state != FLOW_FREE && e->flows[i].owner == OWNER_GONE)
            gone_add(e, i);
}

/* ---- sums ------------------------------------------------------------------------------------ */

struct held held_of_user(const struct engine *e, uint32_t client)
{
    const struct user_gone *g = gone_of(e, e->clients[client].uid);
    struct held sum = {0};

    for (uint32_t i = 0; i < e->config.clients_max; i++) {
        const struct client *c = &e->clients[i];

        if (c->state == CLIENT_FREE || c->uid != e->clients[client].uid)
            continue;
        sum.flows += c->flows;
        sum.remotes += c->remotes;
        sum.inflows += c->inflows;
        sum.grants += c->grants;
    }
    if (g) {
        sum.flows += g->flows;
        sum.remotes += g->remotes;
    }
    return sum;
}
