/* Turns (turn.h). Thread: the progress thread. */
#include "daemon/engine/ops/turn.h"

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

void turn_push(struct engine *e, uint32_t turn)
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
