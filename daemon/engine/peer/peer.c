/* Links to peers: offers, up, down, loss. Thread: the progress thread. */
#include "daemon/engine/peer/peer.h"

#include <string.h>
#include "daemon/engine/peer/bind.h"
#include "daemon/engine/ops/flow.h"
#include "daemon/engine/peer/keepalive.h"
#include "daemon/engine/ledger/ledger.h"
#include "daemon/engine/ledger/notes.h"
#include "daemon/engine/peer/region.h"
#include "daemon/engine/team/instance.h"
#include "daemon/engine/team/letters.h"
#include "daemon/engine/team/progress.h"
#include "daemon/engine/watch/steps.h"
#include "daemon/engine/ops/turn.h"
#include "daemon/engine/peer/marks.h"
#include "daemon/engine/peer/rings.h"
#include "daemon/engine/ops/stage.h"
#include "daemon/engine/ledger/ahead.h"
#include "daemon/engine/ledger/records.h"
#include "daemon/engine/offload/handle.h"
#include "daemon/engine/peer/remote.h"

/* Pauses between tries of an operation that the fabric has refused. Often there is room soon. A
 * connection that is still being made takes longer, and wakes the progress thread when it is
 * there. */
#define REFUSED_RETRY_NS   2000u
#define REFUSED_MOST_NS    1024000u
#define REFUSED_LOOKING_NS 32000u /* where only a look makes room (see fabric_traits.can_sleep) */

/* ---- the link -------------------------------------------------------------------------------- */

/* Drops everything that is under way with this peer: both sides begin at position 0. */
static void peer_discard(struct engine *e, uint32_t peer)
{
    struct peer *p = &e->peers[peer];

    set64(e, &p->their_id, 0);
    set32(e, &p->discarding, 1);
    commit(e);
    for (uint32_t i = chain_first(&e->flows_of_peer, peer); i != NONE;
         i = chain_next(&e->flows_of_peer, i))
        if (e->flows[i].state != FLOW_FREE)
            flow_kill(e, i);
    teams_forget_peer(e, peer);
    bind_forget_node(e, peer);
    region_forget_node(e, peer);
    queue_clear(&e->pool, &p->sent);
    notes_clear(e, peer);
    for (uint32_t i = chain_first(&e->flows_of_peer, peer), next; i != NONE; i = next) {
        next = chain_next(&e->flows_of_peer, i);
        if (e->flows[i].state == FLOW_CLOSED)
            flow_free(e, i);
        commit(e);
    }
    set64(e, &p->tx_tail, 0);
    set64(e, &p->tx_acked, 0);
    set64(e, &p->rx_consumed, 0);
    set32(e, &p->discarding, 0);
    commit(e);
    e->sweep = true;
}

int engine_offer(struct engine *e, uint32_t peer, struct engine_offer *out)
{
    struct peer *p;
    struct peer_live *live;
    int r;

    if (peer >= e->config.peers)
        return -EINVAL;
    peer_know(e, peer);
    p = &e->peers[peer];
    live = &e->peer_live[peer];
    if (live->link == LINK_UP || (live->link == LINK_OFFERED && live->in.dirty))
        engine_peer_down(e, peer); /* the other side has started over */
    if (p->discarding)
        peer_discard(e, peer);
    live->offer_asked = true;
    live->wanted = true;
    /* The new ring needs a free place in `parting` for its own way out. */
    if (live->link == LINK_NONE && rings_parting(live) < PARTING_RINGS) {
        r = e->heap_registered ? ring_prepare(e, peer) : 0;
        if (r < 0) {
            live->wanted = live->offer_asked = false; /* the caller knows, and asks again */
            return r;
        }
    }
    if (live->link != LINK_OFFERED) {
        peer_activate(e, peer);
        return -EAGAIN;
    }
    live->offer_asked = false;
    *out = (struct engine_offer){
        .peer = e->config.self,
        .incarnation = e->arena.header->incarnation,
        .state_id = p->link_id,
        .peer_state_id = p->their_id,
        .consumed = p->rx_consumed,
        .ring_address = live->in.memory.address,
        .ring_key = live->in.memory.key,
        .ring_bytes = live->in.size,
    };
    return fabric_address_of(e->fabric, &out->address);
}

static int out_begin(struct engine *e, uint32_t peer, const struct engine_offer *theirs)
{
    struct ledger_out *out = &e->peer_live[peer].out;
    struct peer *p = &e->peers[peer];
    uint8_t *staging = heap_take(&e->heap, theirs->ring_bytes);

    if (!staging)
        return -ENOMEM;
    *out = (struct ledger_out){.staging = staging,
                               .size = theirs->ring_bytes,
                               .base = p->tx_tail,
                               .sent = p->tx_tail,
                               .completed = p->tx_tail,
                               .pass = ledger_kept(theirs->ring_bytes) - LEDGER_ACK_BYTES,
                               .pass_at = p->tx_tail,
                               .remote_address = theirs->ring_address,
                               .remote_key = theirs->ring_key,
                               .nonces_free = NONCE_WINDOW};
    for (uint16_t i = 0; i < NONCE_WINDOW; i++)
        out->nonces[i] = (uint16_t)(NONCE_WINDOW - 1 - i);
    return 0;
}

/* Operations whose payload was on its way begin again; then all flows with something to stage are
 * ready. */
static void flows_resume(struct engine *e, uint32_t peer)
{
    for (uint32_t i = chain_first(&e->flows_of_peer, peer); i != NONE;
         i = chain_next(&e->flows_of_peer, i)) {
        struct flow *f = &e->flows[i];

        if (f->state == FLOW_FREE)
            continue;
        f->posted = 0;
        set64(e, &f->started, f->staged);
        commit(e);
        if (f->state == FLOW_DEAD)
            flow_gone(e, i); /* the peer will never consume the records that were staged when the
                                flow died */
        flow_ready(e, i);
    }
}

/* Records that were staged and not consumed go back to their queues. Their nonces end with the old
 * link. */
static void link_rewind(struct engine *e, uint32_t peer, uint64_t consumed)
{
    struct sent undone;

    while (ledger_rewind(e, peer, consumed, &undone)) {
        if (undone.flow != NONE)
            flow_rewind(e, undone.flow, undone.slot, undone.epoch, undone.part);
        else if (undone.epoch == SENT_LETTER)
            letter_rewind(e, undone.slot);
        else if (undone.epoch != SENT_NONCE)
            notes_rewind(e, peer, undone.epoch, undone.slot);
        commit(e);
    }
}

int engine_peer_up(struct engine *e, uint32_t peer, const struct engine_offer *theirs)
{
    struct peer *p;
    struct peer_live *live;
    uint64_t consumed = theirs->consumed;
    bool known;
    int r;

    if (peer >= e->config.peers || theirs->peer != peer || theirs->state_id == 0 ||
        theirs->address.size > FABRIC_ADDRESS_MAX)
        return -EINVAL;
    if (!ledger_fits(&e->config, theirs->ring_bytes))
        return -EMSGSIZE;
    p = &e->peers[peer];
    live = &e->peer_live[peer];
    if (live->link != LINK_OFFERED)
        return -EAGAIN;
    known = p->their_id == theirs->state_id && theirs->peer_state_id == p->link_id;
    if (!known && (p->tx_acked > 0 || p->rx_consumed > 0))
        peer_discard(e, peer);
    if (!known)
        consumed = 0;
    if (consumed < p->tx_acked || consumed > p->tx_tail)
        return -EPROTO;
    r = fabric_connect(e->fabric, peer, &theirs->address);
    if (r < 0)
        return r;
    link_rewind(e, peer, consumed);
    r = out_begin(e, peer, theirs);
    if (r < 0)
        return r;
    live->in.base = p->rx_consumed;
    live->in.ack_due = p->rx_consumed > 0;
    live->gone = live->back = live->staged_last = NONE;
    turns_clear(e, peer);
    notes_resume(e, peer);
    live->link = LINK_UP;
    letters_resume(e, peer);
    live->pause_ns = 0;
    live->wanted = live->broken = false;
    live->silence_at_up = live->silence;
    live->stuck = 0;
    live->heard = false;
    if (live->latency == 0 && e->latency_count < LATENCIES_MAX)
        live->latency = e->latency_count++;
    step_peer(e, peer, true);
    flows_resume(e, peer);
    if (known && p->their_incarnation != theirs->incarnation)
        bind_refresh_node(e, peer);
    set64(e, &p->their_id, theirs->state_id);
    set32(e, &p->their_incarnation, theirs->incarnation);
    commit(e);
    if (peer != e->config.self)
        ledger_greet(e, peer); /* a sign of life, before any payload (keepalive.h) */
    peer_activate(e, peer);
    return 0;
}

bool peer_pending(struct engine *e, uint32_t peer)
{
    if (queue_count(&e->peers[peer].sent) > 0 || notes_pending(e, peer) ||
        e->peer_live[peer].letters > 0 || e->peer_live[peer].awaited > 0)
        return true;
    if (peer_flow_waits(e, peer))
        return true;
    /* An inflow is held for the peer: a new link shows whether the peer still has the same
     * state. */
    for (uint32_t i = chain_first(&e->inflows_of_peer, peer); i != NONE;
         i = chain_next(&e->inflows_of_peer, i))
        if (e->inflows[i].state != INFLOW_FREE && e->inflows[i].state != INFLOW_PARTING)
            return true;
    return false;
}

/* Ends the draining of a link, once the fabric has given back every operation and ring. */
static void peer_drained(struct engine *e, uint32_t peer)
{
    struct peer_live *live = &e->peer_live[peer];

    if (live->link != LINK_DRAINING || live->outstanding > 0 || live->drops > 0 || live->in.ring ||
        live->in.next_ring)
        return;
    if (live->out.staging)
        heap_give(&e->heap, live->out.staging, live->out.size);
    if (live->out.next_staging)
        heap_give(&e->heap, live->out.next_staging, live->out.next.bytes);
    live->out.staging = live->out.next_staging = NULL;
    live->link = LINK_NONE;
    live->broken = false;
    if (live->offer_asked)
        peer_activate(e, peer);
    if (peer_pending(e, peer))
        peer_want(e, peer);
}

/* The handshake under way has died, and its offer with it. peer_drained looks where the earlier
 * link still drains. */
static void handshake_died(struct engine *e, uint32_t peer)
{
    struct peer_live *live = &e->peer_live[peer];

    live->wanted = live->offer_asked = false;
    if (live->link == LINK_NONE && live->known && !e->peers[peer].discarding &&
        peer_pending(e, peer))
        peer_want(e, peer);
}

void engine_peer_down(struct engine *e, uint32_t peer)
{
    struct peer_live *live;
    struct ledger_in *in;

    if (peer >= e->config.peers)
        return;
    live = &e->peer_live[peer];
    in = &live->in;
    if (live->link == LINK_NONE || live->link == LINK_DRAINING) {
        handshake_died(e, peer);
        return;
    }
    if (live->link == LINK_UP)
        step_peer(e, peer, false);
    letters_stop(e, peer);
    live->link = LINK_DRAINING;
    live->wanted = live->offer_asked = false;
    fabric_disconnect(e->fabric, peer);
    if (in->registered)
        ring_part(e, peer, in->ring, in->size, &in->memory);
    if (in->registered)
        in->ring = NULL;
    if (in->next_ring && in->next_ready) {
        ring_part(e, peer, in->next_ring, in->next_size, &in->next_memory);
        in->next_ring = NULL;
    }
    peer_drained(e, peer);
}

void engine_peer_lost(struct engine *e, uint32_t peer)
{
    struct peer *p;

    if (peer >= e->config.peers)
        return;
    peer_know(e, peer);
    p = &e->peers[peer];
    set64(e, &p->link_id, peer_new_id(e));
    set64(e, &p->their_id, 0);
    set32(e, &p->discarding, 1);
    commit(e);
    engine_peer_down(e, peer);
    peer_discard(e, peer);
    e->peer_live[peer].wanted = false;
    keepalive_heard(e, peer); /* the next link counts silence from 0 */
}

/* ---- progress -------------------------------------------------------------------------------- */

/* The link to ourselves needs no handshake: both halves are ours. */
static void self_link(struct engine *e)
{
    struct engine_offer offer;

    if (engine_offer(e, e->config.self, &offer) == 0)
        engine_peer_up(e, e->config.self, &offer);
}

/* Offers the link that was asked for while the last one drained. No caller is left to get an error.
 */
static void offer_late(struct engine *e, uint32_t peer)
{
    struct engine_offer unused;
    int r = engine_offer(e, peer, &unused);

    if (r < 0 && r != -EAGAIN)
        ring_lacks(e, peer, r);
}

/* A record takes 1 of the budget for this many bytes that collectives copy or combine for it, or by
 * which its elements are rounded up, besides what its own bytes take. */
#define BESIDE_BYTES 64u

/* Takes records that have arrived, up to `budget`. Returns how much of it was used, or -EPROTO. */
static int consume(struct engine *e, uint32_t peer, int budget)
{
    struct ledger_record record;
    struct ledger_in *in = &e->peer_live[peer].in;
    uint64_t spent = e->offloads.spent, begun = e->peers[peer].rx_consumed + in->part;
    int consumed = 0, r = 0;
    bool stays = false;

    while (consumed < budget && offload_may_go_on(e, spent) && ledger_announced(in) &&
           (r = ledger_next(e, peer, &record)) > 0) {
        const struct record_kind *kind = &record_kinds[record.head.kind];
        uint64_t beside = e->teams.moved + e->rounded;

        r = record_take(e, peer, &record);
        if (r < 0)
            arena_rollback(&e->arena);
        stays = r == -EAGAIN;
        if (stays)
            break;
        if (r < 0)
            return r;
        consumed += ledger_consumed(e, peer, &record, record_wait(kind, &record));
        r = kind->after ? kind->after(e, peer) : 0;
        if (r < 0)
            return r;
        consumed += (int)((e->teams.moved + e->rounded - beside) / BESIDE_BYTES);
    }
    in->left = consumed >= budget && ledger_announced(in);
    if (stays && e->offloads.spent == spent)
        return consumed;
    if (stays && in->part == 0)
        ledger_look_behind(e, peer);
    else if (!offload_may_go_on(e, spent))
        ledger_look_ahead(e, peer, e->peers[peer].rx_consumed + in->part - begun,
                          e->offloads.spent - spent);
    return r < 0 && !stays ? r : consumed + stays;
}

/* Without credit: asks the receiver to acknowledge and to grow. */
static void ledger_want(struct engine *e, uint32_t peer)
{
    struct peer_live *live = &e->peer_live[peer];

    if (live->out.wanting || live->out.switching)
        return;
    if (!ledger_stage(e, peer, WIRE_WANT, sizeof(struct wire_record), LEDGER_NOTE, NULL))
        return;
    commit(e);
    live->out.wanting = true;
    live->starved++;
}

/* Sets the time of the next try after a refusal by the fabric, which may not bring an event. The
 * pause grows while nothing leaves. */
static void try_again(struct engine *e, uint32_t peer, bool refused, bool worked,
                      uint64_t *deadline)
{
    uint32_t most = e->fabric->traits.can_sleep ? REFUSED_MOST_NS : REFUSED_LOOKING_NS;
    struct peer_live *live = &e->peer_live[peer];

    if (!refused || worked)
        live->pause_ns = 0;
    if (!refused)
        return;
    if (live->pause_ns == 0 || e->now >= live->again_at) {
        live->pause_ns = live->pause_ns == 0     ? REFUSED_RETRY_NS
                         : live->pause_ns < most ? 2 * live->pause_ns
                                                 : most;
        live->again_at = e->now + live->pause_ns;
    }
    if (live->again_at < *deadline)
        *deadline = live->again_at;
}

int peer_step(struct engine *e, uint32_t peer, int budget, uint64_t *deadline)
{
    struct peer *p = &e->peers[peer];
    struct peer_live *live = &e->peer_live[peer];
    int work = 0, r, flows = 0;
    bool left = live->link == LINK_UP && live->out.sent < p->tx_tail && !live->out.waits;
    bool resting, again;

    if (live->broken && peer == e->config.self)
        engine_peer_down(e, peer); /* the link to ourselves: no other side would do this */
    if (live->link != LINK_UP) {
        peer_drained(e, peer);
        if (p->discarding)
            peer_discard(e, peer);
        if (peer == e->config.self && live->wanted && live->link != LINK_DRAINING)
            self_link(e);
        else if (live->offer_asked && live->link == LINK_NONE)
            offer_late(e, peer);
        if (live->link != LINK_UP)
            return 0;
    }
    r = consume(e, peer, budget);
    if (r < 0) {
        peer_broken(e, peer, r);
        return 1;
    }
    work += r;
    if (live->link != LINK_UP)
        return work + 1;
    if (live->unlisted)
        notes_list(e, peer);
    if (live->in.next_ready && !live->in.next_offered)
        ring_offer_larger(e, peer);
    if (live->out.next.bytes > 0)
        ring_leave(e, peer);
    /* A run that was refused before goes first, or payloads would take every place that becomes
     * free. */
    r = ledger_nudge(e, peer, deadline) || left ? ledger_post(e, peer) : 0;
    if (r != -EAGAIN && live->link == LINK_UP && live->out.voids > 0)
        flows = ledger_stage_voids(e, peer);
    if (live->paused.first != NONE)
        turns_resume(e, peer);
    if (r != -EAGAIN && live->link == LINK_UP && flows == 0 && turns_waiting(e, peer))
        flows = turns_step(e, peer, budget + work, &work);
    if (flows == -ENOSPC) {
        ledger_want(e, peer);
        work += notes_pass(e, peer);
    }
    ledger_stage_ack(e, peer);
    ledger_nudge(e, peer, deadline);
    r = ledger_post(e, peer);
    work += r > 0;
    if (live->link != LINK_UP)
        return work + 1;
    resting = live->in.ack_due && live->in.ack_at > e->now;
    if (resting)
        due_by(&e->resting, peer, live->in.ack_at);
    again = r == -EAGAIN || flows == -EAGAIN || turns_waiting(e, peer) ||
            (live->in.ack_due && !resting) || live->in.run_end != 0 || live->in.arrived != 0 ||
            live->unlisted || (live->in.next_ready && !live->in.next_offered) ||
            live->out.next.bytes > 0;
    if (again)
        peer_activate(e, peer);
    try_again(e, peer, r == -EAGAIN || flows == -EAGAIN, work > 0, deadline);
    return work + (live->broken && peer == e->config.self);
}
