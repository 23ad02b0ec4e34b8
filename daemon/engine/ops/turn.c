/* Turns (turn.h). Thread: the progress thread. */
#include "daemon/engine/ops/turn.h"

/* ---- flows and their turns ------------------------------------------------------------------- */

static struct ready_list *turns_of(struct engine *e, const struct turn *turn)
{
    return &e->peer_live[turn->peer].ready[turn->traffic];
}

/* A flow that had this number before has left: its turn is free if it has no other flow. */
static void turn_leave(struct engine *e, uint32_t flow)
{
    uint32_t left = e->flow_live[flow].turn;
    struct turn *turn = &e->turns[left];
    uint32_t *link;

    if (left == NONE || --turn->flows > 0)
        return;
    link = &e->peer_live[turn->peer].turns;
    while (*link != left)
        link = &e->turns[*link].next;
    *link = turn->next;
    turn->next = e->free_turns;
    e->free_turns = left;
}

/* The table has as many turns as flows, so one is free. */
static uint32_t turn_new(struct engine *e, const struct flow *f, uint32_t client)
{
    struct peer_live *link = &e->peer_live[f->peer];
    uint32_t turn = e->free_turns;

    if (turn == NONE)
        turn = e->turns_used++;
    else
        e->free_turns = e->turns[turn].next;
    e->turns[turn] = (struct turn){.client = client,
                                   .peer = f->peer,
                                   .traffic = f->traffic,
                                   .next = link->turns,
                                   .ready = {NONE, NONE},
                                   .left = TURN_BYTES};
    link->turns = turn;
    return turn;
}

void turn_join(struct engine *e, uint32_t flow, uint32_t client)
{
    const struct flow *f = &e->flows[flow];
    uint32_t turn;

    turn_leave(e, flow);
    turn = e->peer_live[f->peer].turns;
    while (turn != NONE &&
           (e->turns[turn].client != client || e->turns[turn].traffic != f->traffic))
        turn = e->turns[turn].next;
    if (turn == NONE)
        turn = turn_new(e, f, client);
    e->turns[turn].flows++;
    e->flow_live[flow].turn = turn;
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

void turns_clear(struct engine *e, uint32_t peer)
{
    for (int i = 0; i < 2; i++)
        e->peer_live[peer].ready[i] = (struct ready_list){NONE, NONE};
    for (uint32_t i = 0; i < e->config.flows_max; i++) {
        if (e->turns[i].peer == peer)
            e->turns[i].ready = (struct ready_list){NONE, NONE};
        if (e->flows[i].peer == peer)
            e->flow_live[i].ready = false;
    }
}
