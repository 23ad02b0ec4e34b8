/* Keepalive (keepalive.h). Thread: the progress thread. */
#include "daemon/engine/peer/keepalive.h"

#include <errno.h>
#include "daemon/engine/ops/flow.h"
#include "daemon/engine/ledger/ledger.h"
#include "daemon/engine/ledger/notes.h"
#include "daemon/engine/state/notice.h"
#include "daemon/engine/peer/marks.h"

void keepalive_open(struct engine *e)
{
    uint64_t interval = e->config.keepalive_ns, deadline = e->config.peer_deadline_ns;

    /* A short deadline must have room for questions, answers, and a new link, too. */
    if (interval > deadline / 5)
        interval = deadline / 5;
    e->keepalive.interval = interval;
    e->keepalive.deadline = (deadline + interval - 1) / interval;
    e->keepalive.bytes = interval / 1000 * KEEPALIVE_SLOWEST / 1000000;
    if (e->keepalive.bytes == 0)
        e->keepalive.bytes = 1;
}

/* Flows that wait say so at their peers: one pass for all. */
static void mark_waiting(struct engine *e)
{
    for (uint32_t i = 0; i < e->keepalive.count; i++)
        e->peer_live[e->keepalive.watched[i]].flow_waits = false;
    for (uint32_t i = 0; i < e->config.flows_max; i++)
        if (flow_waits(&e->flows[i]))
            e->peer_live[e->flows[i].peer].flow_waits = true;
}

static bool is_waited_for(const struct engine *e, uint32_t peer)
{
    const struct peer_live *live = &e->peer_live[peer];

    return live->flow_waits || live->letters > 0 || live->awaited > 0 || live->outstanding > 0 ||
           notes_pending(e, peer) || queue_count(&e->peers[peer].sent) > 0;
}

/* Stops watching peers that nothing waits for. */
static void forget_idle(struct engine *e)
{
    struct keepalive *k = &e->keepalive;
    uint32_t kept = 0;

    mark_waiting(e);
    for (uint32_t i = 0; i < k->count; i++) {
        uint32_t peer = k->watched[i];

        if (is_waited_for(e, peer))
            k->watched[kept++] = peer;
        else
            e->peer_live[peer].watched = false;
    }
    k->count = kept;
}

/* How many intervals of silence the bytes on their way excuse. */
static uint64_t grant(const struct engine *e, const struct peer_live *live)
{
    uint64_t most = KEEPALIVE_GRANT * e->keepalive.deadline;
    uint64_t intervals = live->bytes / e->keepalive.bytes + live->bytes_theirs / e->keepalive.bytes;

    return intervals < most ? intervals : most;
}

/* Counts one more interval of silence of a peer. True: the peer is asked. */
static bool silent_again(struct engine *e, uint32_t peer)
{
    struct peer_live *live = &e->peer_live[peer];
    uint64_t extra;

    /* Bytes that the peer named before it fell silent grant no more time. */
    if (live->silence++ == 0)
        live->bytes_theirs = 0;
    extra = grant(e, live);
    if (live->link == LINK_UP && live->silence - live->silence_at_up < KEEPALIVE_SILENT + extra) {
        notice_push(e, &(struct engine_notice){.kind = ENGINE_PEER_SILENT, .peer = peer});
        return true;
    }
    if (live->silence >= e->keepalive.deadline + extra)
        notice_push(e, &(struct engine_notice){.kind = ENGINE_PEER_GONE, .peer = peer});
    else
        peer_broken(e, peer, -ETIMEDOUT);
    return false;
}

void keepalive_step(struct engine *e, uint64_t *deadline)
{
    struct keepalive *k = &e->keepalive;

    if (k->count == 0)
        return;
    if (e->now >= k->at) {
        uint32_t asks = 0;

        forget_idle(e);
        for (uint32_t i = 0; i < k->count && asks < KEEPALIVE_ASKS; i++) {
            k->next = k->next + 1 < k->count ? k->next + 1 : 0;
            asks += silent_again(e, k->watched[k->next]);
        }
        k->at = e->now + k->interval;
    }
    if (k->count > 0 && k->at < *deadline)
        *deadline = k->at;
}

int engine_beat(struct engine *e, uint32_t peer, uint64_t *bytes)
{
    struct peer_live *live;

    if (peer >= e->config.peers)
        return -EINVAL;
    live = &e->peer_live[peer];
    *bytes = live->bytes;
    if (live->link != LINK_UP)
        return -ENOTCONN;
    return ledger_beat(e, peer) ? 0 : -EAGAIN;
}

void engine_peer_answered(struct engine *e, uint32_t peer, uint64_t bytes)
{
    if (peer < e->config.peers)
        e->peer_live[peer].bytes_theirs = bytes;
}
