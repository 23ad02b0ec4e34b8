/* Staging in turns (stage.h). Thread: the progress thread. */
#include "daemon/engine/ops/stage.h"

#include <errno.h>
#include "daemon/engine/ledger/notes.h"
#include "daemon/engine/ops/flow.h"
#include "daemon/engine/ops/turn.h"
#include "daemon/engine/team/letters.h"

/* A step stages about so many bytes, short elements rounded up, and posts them: the peer's node can
 * place them while the next step stages more. */
#define STEP_BYTES (256u << 10)

/* Flows that found no nonce in this step: each is tried once, because other flows may need none. */
struct aside {
    struct ready_list flows;
    int count;
};

/* Advances the first flow of the list. Results as those of flow_advance. */
static int flow_take(struct engine *e, struct turn *turn, struct ready_list *flows,
                     struct aside *aside, int *work)
{
    uint32_t flow = flows->first;
    int r = flow_advance(e, flow, turn, work);

    if (r == -ENOSPC || r == -EAGAIN)
        return r;
    list_pop(flows, e->flow_next);
    if (r == -EBUSY) {
        list_push(&aside->flows, e->flow_next, flow);
        aside->count++;
    } else if (r == -ENOBUFS) {
        turn_block(e, flow);
    } else if (r == 1) {
        list_push(flows, e->flow_next, flow);
    } else {
        e->flow_live[flow].ready = false;
    }
    return r;
}

/* Stages what is first in a turn: verdicts, other notes, letters, replies, requests. */
static int turn_stage(struct engine *e, struct turn *turn, struct aside *aside, int *work)
{
    int64_t left = turn->left;
    int r;

    for (int which = 0; which < NOTES_QUEUES; which++)
        if (turn->waiting[which].first != NONE) {
            r = notes_stage(e, turn, which, work);
            burst_note(turn, left - turn->left);
            return r;
        }
    if (turn->letters.first != NONE) {
        r = letters_stage(e, turn, work);
        burst_note(turn, left - turn->left);
        return r;
    }
    if (!burst_goes_on(e, (uint32_t)(turn - e->turns)))
        return 0;
    for (int traffic = FLOW_REPLIES; traffic >= FLOW_REQUESTS; traffic--)
        if (turn->ready[traffic].first != NONE)
            return flow_take(e, turn, &turn->ready[traffic], aside, work);
    return 0;
}

/* Notes that this client has something to stage. Where another client was the last one that had,
 * the two share the link for SHARED_NS. */
static void note_client(struct engine *e, struct peer_live *peer, uint32_t client)
{
    if (client == peer->staged_last || client == NONE)
        return;
    if (peer->staged_last != NONE)
        peer->shared_until = e->now + SHARED_NS;
    peer->staged_last = client;
}

/* Lets the first turn of the list stage until its bytes, its burst or its operations are used up.
 * Results as those of turns_step. */
static int turn_take(struct engine *e, uint32_t peer, struct aside *aside, int *work)
{
    struct ready_list *list = &e->peer_live[peer].ready;
    struct turn *turn = &e->turns[list->first];
    int r = 0;

    /* A turn may be in debt for a payload. The debt counts only while other turns wait. */
    if (turn->left <= 0 && list->first == list->last)
        turn->left = TURN_BYTES;
    if (turn->left > 0) {
        note_client(e, &e->peer_live[peer], turn->client);
        r = turn_stage(e, turn, aside, work);
        if (r == -ENOSPC || r == -EAGAIN)
            return r;
    } else {
        ++*work;
    }
    if (turn->left <= 0 || r == -EBUSY || r == -ENOBUFS || turn_is_empty(turn))
        turn_end(e, peer);
    return 0;
}

int turns_step(struct engine *e, uint32_t peer, int budget, int *work)
{
    const struct ready_list *list = &e->peer_live[peer].ready;
    struct aside aside = {{NONE, NONE}, 0};
    uint64_t end = e->peers[peer].tx_tail + e->rounded + STEP_BYTES;
    int r = 0;

    turns_unblock(e, peer);
    while (r == 0 && list->first != NONE && *work + aside.count < budget &&
           e->peers[peer].tx_tail + e->rounded < end)
        r = turn_take(e, peer, &aside, work);
    while (aside.flows.first != NONE)
        turn_ready(e, list_pop(&aside.flows, e->flow_next));
    return r < 0 ? r : aside.count > 0 ? -EAGAIN : 0;
}
