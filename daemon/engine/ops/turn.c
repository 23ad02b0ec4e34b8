/* Turns (turn.h). Thread: the progress thread. */
#include "daemon/engine/ops/turn.h"

#include <errno.h>
#include "daemon/engine/ops/flow.h"

/* ---- lists: first and last, and who comes next in a table ------------------------------------ */

static void list_push(struct ready_list *list, uint32_t *next, uint32_t i)
{
    next[i] = NONE;
    if (list->first == NONE)
        list->first = i;
    else
        next[list->last] = i;
    list->last = i;
}

static uint32_t list_pop(struct ready_list *list, const uint32_t *next)
{
    uint32_t i = list->first;

    list->first = next[i];
    return i;
}

static void list_remove(struct ready_list *list, uint32_t *next, uint32_t i)
{
    uint32_t before = NONE;

    for (uint32_t at = list->first; at != i; at = next[at])
        before = at;
    if (before == NONE)
        list->first = next[i];
    else
        next[before] = next[i];
    if (list->last == i)
        list->last = before;
}

/* ---- flows and their turns ------------------------------------------------------------------- */

static struct ready_list *turns_of(struct engine *e, const struct turn *turn)
{
    return &e->peer_live[turn->node].ready[turn->traffic];
}

void turn_join(struct engine *e, uint32_t flow, uint32_t client)
{
    const struct flow *f = &e->flows[flow];
    struct flow_live *live = &e->flow_live[flow];
    uint32_t found = NONE;

    /* What had this number before is gone. So one of the turns is free: there are as many. */
    if (live->turn != NONE)
        e->turns[live->turn].flows--;
    for (uint32_t i = 0; i < e->config.flows_max; i++) {
        const struct turn *turn = &e->turns[i];

        if (turn->flows == 0) {
            found = found == NONE ? i : found;
        } else if (turn->client == client && turn->node == f->node && turn->traffic == f->traffic) {
            found = i;
            break;
        }
    }
    if (e->turns[found].flows == 0)
        e->turns[found] = (struct turn){.client = client,
                                        .node = f->node,
                                        .traffic = f->traffic,
                                        .ready = {NONE, NONE},
                                        .left = TURN_BYTES};
    e->turns[found].flows++;
    live->turn = found;
}

/* Behind the others: that ends a turn, and begins the next. */
static void turn_push(struct engine *e, uint32_t turn)
{
    struct turn *t = &e->turns[turn];

    if (t->left <= 0)
        t->left += TURN_BYTES;
    list_push(turns_of(e, t), e->turn_next, turn);
}

void turn_ready(struct engine *e, uint32_t flow)
{
    struct flow_live *live = &e->flow_live[flow];
    struct turn *turn = &e->turns[live->turn];

    live->ready = true;
    if (turn->ready.first == NONE)
        turn_push(e, live->turn);
    list_push(&turn->ready, e->flow_next, flow);
}

void turn_unready(struct engine *e, uint32_t flow)
{
    struct flow_live *live = &e->flow_live[flow];
    struct turn *turn = &e->turns[live->turn];

    if (!live->ready)
        return;
    live->ready = false;
    list_remove(&turn->ready, e->flow_next, flow);
    if (turn->ready.first == NONE)
        list_remove(turns_of(e, turn), e->turn_next, live->turn);
}

void turns_clear(struct engine *e, uint32_t node)
{
    for (int i = 0; i < 2; i++)
        e->peer_live[node].ready[i] = (struct ready_list){NONE, NONE};
    for (uint32_t i = 0; i < e->config.flows_max; i++) {
        if (e->turns[i].node == node)
            e->turns[i].ready = (struct ready_list){NONE, NONE};
        if (e->flows[i].node == node)
            e->flow_live[i].ready = false;
    }
}

/* ---- one step -------------------------------------------------------------------------------- */

/* Flows that find no nonce, until the step is over: each is asked once, and others may need none.
 */
struct aside {
    struct ready_list flows;
    int count;
};

/* The first of them stages, until its turn or what it has is over. As turns_step. */
static int turn_take(struct engine *e, struct ready_list *list, struct aside *aside, int *work)
{
    struct turn *turn = &e->turns[list->first];
    uint32_t flow = turn->ready.first;
    int r = 0;

    /* In debt for a payload: that matters to the others, if there are any. */
    if (turn->left <= 0 && list->first == list->last)
        turn->left = TURN_BYTES;
    if (turn->left > 0) {
        r = flow_advance(e, flow, &turn->left, work);
        if (r == -ENOSPC || r == -EAGAIN)
            return r;
        list_pop(&turn->ready, e->flow_next);
        if (r == -EBUSY) {
            list_push(&aside->flows, e->flow_next, flow);
            aside->count++;
        } else if (r == 1) {
            list_push(&turn->ready, e->flow_next, flow);
        } else {
            e->flow_live[flow].ready = false;
        }
    } else {
        ++*work;
    }
    if (turn->ready.first == NONE)
        list_pop(list, e->turn_next);
    else if (turn->left <= 0 || r == -EBUSY)
        turn_push(e, list_pop(list, e->turn_next));
    return 0;
}

int turns_step(struct engine *e, uint32_t node, int budget, int *work)
{
    bool starved = false;

    /* Replies first: requests that wait for a nonce hold none of them back. */
    for (int traffic = FLOW_REPLIES; traffic >= FLOW_REQUESTS; traffic--) {
        struct ready_list *list = &e->peer_live[node].ready[traffic];
        struct aside aside = {{NONE, NONE}, 0};
        int r = 0;

        while (r == 0 && list->first != NONE && *work + aside.count < budget)
            r = turn_take(e, list, &aside, work);
        while (aside.flows.first != NONE)
            turn_ready(e, list_pop(&aside.flows, e->flow_next));
        if (r < 0)
            return r;
        starved |= aside.count > 0;
    }
    return starved ? -EAGAIN : 0;
}
