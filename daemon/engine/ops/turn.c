/* Turns (turn.h). Thread: the progress thread. */
#include "daemon/engine/ops/turn.h"

/* ---- whose they are -------------------------------------------------------------------------- */

/* Moves the turn that is found to the front of the list: a client that sends much is found soon. */
static uint32_t turn_find(struct engine *e, uint32_t peer, uint32_t client)
{
    uint32_t *first = &e->peer_live[peer].turns, *link = first, turn;

    while (*link != NONE && e->turns[*link].client != client)
        link = &e->turns[*link].next;
    turn = *link;
    if (turn == NONE || link == first)
        return turn;
    *link = e->turns[turn].next;
    e->turns[turn].next = *first;
    *first = turn;
    return turn;
}

static uint32_t turn_new(struct engine *e, uint32_t peer, uint32_t client)
{
    uint32_t turn = e->free_turns;

    if (turn != NONE)
        e->free_turns = e->turns[turn].next;
    else if (e->turns_used < e->turns_max)
        turn = e->turns_used++;
    else
        return turn_of_nobody(e, peer);
    e->turns[turn] = turn_empty(client, peer);
    e->turns[turn].next = e->peer_live[peer].turns;
    e->peer_live[peer].turns = turn;
    return turn;
}

uint32_t turn_of(struct engine *e, uint32_t peer, uint32_t client)
{
    uint32_t turn = client == NONE ? turn_of_nobody(e, peer) : turn_find(e, peer, client);

    return turn != NONE ? turn : turn_new(e, peer, client);
}

/* Frees the turn if nothing belongs to it any more. */
static void turn_let_go(struct engine *e, uint32_t turn)
{
    struct turn *t = &e->turns[turn];
    uint32_t *link = &e->peer_live[t->peer].turns;

    if (t->client == NONE || t->flows > 0 || t->listed || t->paused)
        return;
    while (*link != turn)
        link = &e->turns[*link].next;
    *link = t->next;
    t->next = e->free_turns;
    e->free_turns = turn;
}

void turn_join(struct engine *e, uint32_t flow, uint32_t client)
{
    uint32_t left = e->flow_live[flow].turn, turn = turn_of(e, e->flows[flow].peer, client);

    e->turns[turn].flows++;
    e->flow_live[flow].turn = turn;
    if (left == NONE)
        return;
    /* The turn of the flow that had this number before. */
    e->turns[left].flows--;
    turn_let_go(e, left);
}

uint32_t turn_client(const struct engine *e, uint32_t flow)
{
    uint32_t turn = e->flow_live[flow].turn;

    return turn != NONE ? e->turns[turn].client : NONE;
}

/* ---- operations and notes to stage ----------------------------------------------------------- */

void turn_list(struct engine *e, uint32_t turn)
{
    struct turn *t = &e->turns[turn];

    if (t->listed)
        return;
    t->listed = true;
    if (t->left <= 0)
        t->left += TURN_BYTES;
    list_push(&e->peer_live[t->peer].ready, e->turn_next, turn);
}

void turn_end(struct engine *e, uint32_t peer)
{
    uint32_t turn = list_pop(&e->peer_live[peer].ready, e->turn_next);
    struct turn *t = &e->turns[turn];
    bool empty = turn_is_empty(t);

    t->listed = false;
    burst_turn_ends(e, t, empty);
    if (empty)
        turn_let_go(e, turn);
    else
        turn_list(e, turn);
}

void turn_ready(struct engine *e, uint32_t flow)
{
    struct flow_live *live = &e->flow_live[flow];

    live->ready = true;
    list_push(&e->turns[live->turn].ready[e->flows[flow].traffic], e->flow_next, flow);
    if (!e->turns[live->turn].paused)
        turn_list(e, live->turn);
}

void turn_unready(struct engine *e, uint32_t flow)
{
    struct flow_live *live = &e->flow_live[flow];
    struct turn *turn = &e->turns[live->turn];

    if (live->blocked) {
        list_remove(&turn->blocked, e->flow_next, flow);
        if (turn->blocked.first == NONE)
            list_remove(&e->peer_live[turn->peer].blocked, e->turn_next_blocked, live->turn);
    } else if (live->ready) {
        list_remove(&turn->ready[e->flows[flow].traffic], e->flow_next, flow);
    }
    live->ready = live->blocked = false;
}

void turn_block(struct engine *e, uint32_t flow)
{
    struct flow_live *live = &e->flow_live[flow];
    struct turn *turn = &e->turns[live->turn];

    live->blocked = true;
    live->unblocked = false;
    if (turn->blocked.first == NONE)
        list_push(&e->peer_live[turn->peer].blocked, e->turn_next_blocked, live->turn);
    list_push(&turn->blocked, e->flow_next, flow);
}

/* Takes the first blocked flow of the first client in the list, and makes it ready again; the
 * client's next blocked flow comes after those of other clients. */
static void turn_unblock(struct engine *e, struct peer_live *peer)
{
    uint32_t number = list_pop(&peer->blocked, e->turn_next_blocked);
    struct turn *turn = &e->turns[number];
    uint32_t flow = list_pop(&turn->blocked, e->flow_next);

    if (turn->blocked.first != NONE)
        list_push(&peer->blocked, e->turn_next_blocked, number);
    e->flow_live[flow].blocked = false;
    e->flow_live[flow].unblocked = true;
    turn_ready(e, flow);
}

void turns_unblock(struct engine *e, uint32_t peer)
{
    struct peer_live *live = &e->peer_live[peer];
    uint64_t bytes = live->bytes;

    for (; live->blocked.first != NONE && bytes < turn_window(e, live);
         bytes += e->config.piece_bytes)
        turn_unblock(e, live);
}

void turns_resume(struct engine *e, uint32_t peer)
{
    uint32_t turn;

    while ((turn = burst_resumes(e, peer)) != NONE)
        turn_list(e, turn);
}

void turn_notes_wait(struct engine *e, uint32_t turn, uint32_t entries)
{
    struct turn *t = &e->turns[turn];

    t->notes += entries;
    if (t->client != NONE)
        e->client_notes[t->client] += entries;
    turn_list(e, turn);
}

void turn_notes_leave(struct engine *e, uint32_t turn, uint32_t entries)
{
    struct turn *t = &e->turns[turn];

    t->notes -= entries;
    if (t->client != NONE)
        e->client_notes[t->client] -= entries;
}

static void turn_clear(struct engine *e, uint32_t turn)
{
    struct turn *t = &e->turns[turn];

    turn_notes_leave(e, turn, t->notes);
    for (int i = 0; i < NOTES_QUEUES; i++)
        t->waiting[i] = (struct ready_list){NONE, NONE};
    for (int i = 0; i < 2; i++)
        t->ready[i] = (struct ready_list){NONE, NONE};
    t->letters = t->blocked = (struct ready_list){NONE, NONE};
    t->listed = false;
    burst_clear(t);
}

void turns_clear(struct engine *e, uint32_t peer)
{
    struct peer_live *live = &e->peer_live[peer];
    uint32_t turn = live->turns;

    turn_clear(e, turn_of_nobody(e, peer));
    while (turn != NONE) {
        uint32_t next = e->turns[turn].next;

        turn_clear(e, turn);
        turn_let_go(e, turn);
        turn = next;
    }
    live->ready = live->blocked = live->paused = (struct ready_list){NONE, NONE};
    for (uint32_t i = chain_first(&e->flows_of_peer, peer); i != NONE;
         i = chain_next(&e->flows_of_peer, i))
        e->flow_live[i].ready = e->flow_live[i].blocked = false;
}
