/* Bursts (burst.h). Thread: the progress thread. */
#include "daemon/engine/ops/burst.h"

bool burst_may_pause(const struct engine *e, const struct turn *t)
{
    const struct peer_live *peer = &e->peer_live[t->peer];

    for (int i = 0; i < SPARSE_CLIENTS; i++)
        if (peer->sparse[i].client != t->client && e->now < peer->sparse[i].until)
            return true;
    return false;
}

bool burst_ends(struct engine *e, uint32_t turn)
{
    struct turn *t = &e->turns[turn];
    struct peer_live *live = &e->peer_live[t->peer];
    const struct peer *p = &e->peers[t->peer];

    if (t->paused)
        return false;
    if (p->tx_acked < t->burst_from && t->soon && burst_may_pause(e, t)) {
        t->paused = true;
        live->pauses++;
        list_push(&live->paused, e->turn_next_paused, turn);
        return false;
    }
    t->burst = BURST_UNITS;
    t->burst_from = p->tx_tail;
    return true;
}

uint32_t burst_resumes(struct engine *e, uint32_t peer)
{
    struct ready_list *paused = &e->peer_live[peer].paused;
    uint32_t turn = paused->first;

    if (turn == NONE || e->turns[turn].burst_from > e->peers[peer].tx_acked)
        return NONE;
    e->turns[turn].paused = false;
    return list_pop(paused, e->turn_next_paused);
}

/* Counts the units that a turn has used. Returns whether they are a small part of all. */
static bool uses_little(struct peer_live *live, struct turn *t)
{
    uint32_t halvings = live->halvings - t->halvings;

    t->halvings = live->halvings;
    t->used = (halvings < 32 ? t->used >> halvings : 0) + t->spent;
    live->used += t->spent;
    if (live->used > SPARSE_OF_UNITS) {
        live->used /= 2;
        live->halvings++;
    }
    return t->used < live->used / SPARSE_PART;
}

/* The two clients that were sparse last are kept, so that one of them is another than the client
 * that asks. */
void burst_compare(struct engine *e, struct turn *t, bool empty)
{
    struct peer_live *live = &e->peer_live[t->peer];
    struct sparse_client *sparse = live->sparse;

    if (!uses_little(live, t)) {
        for (int i = 0; i < SPARSE_CLIENTS; i++)
            if (sparse[i].client == t->client)
                sparse[i].until = 0;
    } else if (empty && !t->paused && t->blocked.first == NONE && t->client != NONE) {
        if (sparse[0].client != t->client)
            sparse[1] = sparse[0];
        sparse[0] = (struct sparse_client){t->client, e->now + SHARED_NS};
    }
}

void burst_clear(struct turn *t)
{
    t->paused = t->soon = false;
    t->burst = BURST_UNITS;
    t->burst_from = 0;
}
