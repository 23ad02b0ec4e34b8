/* Marks on peers (marks.h). Thread: the progress thread. */
#include "daemon/engine/peer/marks.h"

#include "daemon/engine/ops/flow.h"
#include "daemon/engine/ops/turn.h"
#include "daemon/engine/state/notice.h"

uint64_t peer_new_id(struct engine *e)
{
    uint64_t id = 0;

    while (id == 0)
        e->host->random(e->host->context, &id, sizeof(id));
    return id;
}

void peer_init(struct engine *e, uint32_t peer)
{
    struct peer *p = &e->peers[peer];

    *p = (struct peer){0};
    queue_init(&p->sent, SENT_SHIFT);
    for (uint32_t i = 0; i < NOTES_QUEUES; i++)
        queue_init(&p->notes[i].queue, NOTE_SHIFT);
    atomic_signal_fence(memory_order_seq_cst);
    *(volatile uint64_t *)&p->link_id =
        peer_new_id(e); /* last: an entry without it counts as empty */
}

void peer_know(struct engine *e, uint32_t peer)
{
    const struct engine_config *c = &e->config;
    struct peer_live *live = &e->peer_live[peer];

    if (live->known)
        return;
    if (e->peers[peer].link_id == 0)
        peer_init(e, peer);
    live->ready = live->blocked = (struct ready_list){NONE, NONE};
    e->turns[turn_of_nobody(e, peer)] = turn_empty(NONE, peer);
    live->gone = live->back = live->turns = NONE;
    live->sibling = peer != c->self && peer % c->stride == c->self % c->stride;
    live->known = true;
}

bool peer_flow_waits(struct engine *e, uint32_t peer)
{
    uint32_t *waiting = &e->peer_live[peer].waiting_flow;

    if (*waiting != NONE && e->flows[*waiting].peer == peer && flow_waits(&e->flows[*waiting]))
        return true;
    for (*waiting = chain_first(&e->flows_of_peer, peer); *waiting != NONE;
         *waiting = chain_next(&e->flows_of_peer, *waiting))
        if (flow_waits(&e->flows[*waiting]))
            return true;
    return false;
}

void peer_watch(struct engine *e, uint32_t peer)
{
    struct peer_live *live = &e->peer_live[peer];
    struct keepalive *k = &e->keepalive;

    if (peer == e->config.self || e->config.keepalive_ns == ENGINE_NO_KEEPALIVE)
        return;
    live->watched = true;
    live->silence = live->silence_at_up = 0;
    live->bytes_theirs = 0;
    if (k->count == 0)
        k->at = e->now + k->interval;
    k->watched[k->count++] = peer;
}

void peer_want_link(struct engine *e, uint32_t peer)
{
    struct peer_live *live = &e->peer_live[peer];

    peer_know(e, peer);
    live->wanted = true;
    if (peer != e->config.self)
        notice_push(e, &(struct engine_notice){.kind = ENGINE_WANT_PEER, .peer = peer});
    peer_activate(e, peer);
}

void peer_broken(struct engine *e, uint32_t peer, int status)
{
    struct peer_live *live = &e->peer_live[peer];

    if (live->broken || live->link != LINK_UP)
        return;
    live->broken = true;
    notice_push(
        e, &(struct engine_notice){.kind = ENGINE_PEER_BROKEN, .status = status, .peer = peer});
    if (peer == e->config.self)
        peer_activate(e, peer); /* peer_step takes the link down */
}
