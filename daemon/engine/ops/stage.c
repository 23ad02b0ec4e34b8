/* Staging in turns (stage.h). Thread: the progress thread. */
#include "daemon/engine/ops/stage.h"

#include <errno.h>
#include "daemon/engine/ops/flow.h"
#include "daemon/engine/ops/turn.h"

/* Flows that find no nonce, until the step is over: each is asked once, and others may need none.
 */
struct aside {
    struct ready_list flows;
    int count;
};

/* The first turn of the list stages until its bytes or its operations are used up. Results as those
 * of turns_step. */
static int turn_take(struct engine *e, struct ready_list *list, struct aside *aside, int *work)
{
    struct turn *turn = &e->turns[list->first];
    uint32_t flow = turn->ready.first;
    int r = 0;

    /* A turn may be in debt for a payload. The debt counts only while other turns wait. */
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

int turns_step(struct engine *e, uint32_t peer, int budget, int *work)
{
    bool starved = false;

    /* Replies first: requests that wait for a nonce hold none of them back. */
    for (int traffic = FLOW_REPLIES; traffic >= FLOW_REQUESTS; traffic--) {
        struct ready_list *list = &e->peer_live[peer].ready[traffic];
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
