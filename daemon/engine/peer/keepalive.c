/* Keepalive (keepalive.h). Thread: the progress thread. */
#include "daemon/engine/peer/keepalive.h"

#include <errno.h>
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

/* Whether something of ours waits for the peer. */
static bool is_waited_for(struct engine *e, uint32_t peer)
{
    const struct peer_live *live = &e->peer_live[peer];

    /* The last test may look at all flows to the peer. */
    return live->outstanding > 0 || live->letters > 0 || live->awaited > 0 ||
           notes_pending(e, peer) || queue_count(&e->peers[peer].sent) > 0 ||
           peer_flow_waits(e, peer);
}

/* Stops watching peers that nothing waits for, and that wait for nothing. */
static void forget_idle(struct engine *e)
{
    struct keepalive *k = &e->keepalive;
    uint32_t kept = 0;

    for (uint32_t i = 0; i < k->count; i++) {
        uint32_t peer = k->watched[i];

        if (e->peer_live[peer].asked || is_waited_for(e, peer))
            k->watched[kept++] = peer;
        else
            e->peer_live[peer].watched = false;
        e->peer_live[peer].asked = false;
    }
    k->count = kept;
}

/* How many intervals of silence this many bytes on their way excuse. A link begins with a sign of
 * life, ahead of all payloads: before it has arrived nothing is excused. */
static uint64_t grant(const struct engine *e, const struct peer_live *live, uint64_t bytes)
{
    uint64_t most = KEEPALIVE_GRANT * e->keepalive.deadline;
    uint64_t intervals = live->heard ? bytes / e->keepalive.bytes : 0;

    return intervals < most ? intervals : most;
}

/* Asks the peer if something of ours waits for it. Our own sign of life goes along, so that the
 * peer hears us, or sees that it does not. Returns whether a question leaves. */
static bool ask(struct engine *e, uint32_t peer)
{
    struct peer_live *live = &e->peer_live[peer];

    if (!is_waited_for(e, peer))
        return false;
    notice_push(e, &(struct engine_notice){
                       .kind = ENGINE_PEER_SILENT, .peer = peer, .length = live->bytes});
    (void)ledger_beat(e, peer);
    return true;
}

/* Counts the intervals in which nothing could be consumed because a run or a payload is missing
 * before what has arrived. A connection that starts over may lose its first messages. */
static uint32_t hole_stays(struct engine *e, uint32_t peer)
{
    struct peer_live *live = &e->peer_live[peer];
    const struct ledger_in *in = &live->in;
    bool hole = in->blocked || (in->arrived != 0 && in->run_end == 0 && !ledger_announced(in));
    uint64_t consumed = e->peers[peer].rx_consumed;

    live->stuck = hole && consumed == live->stuck_at ? live->stuck + 1 : 0;
    live->stuck_at = consumed;
    return live->stuck;
}

/* Counts one more interval for a peer that is watched. Returns whether a question leaves. */
static bool silent_again(struct engine *e, uint32_t peer)
{
    struct peer_live *live = &e->peer_live[peer];
    uint64_t extra;

    /* Bytes that the peer named before it fell silent excuse nothing. */
    if (live->silence++ == 0)
        live->bytes_theirs = 0;
    extra = grant(e, live, live->bytes + live->bytes_theirs);
    if (live->link == LINK_UP && hole_stays(e, peer) >= KEEPALIVE_SILENT + extra) {
        peer_broken(e, peer, -ENODATA);
        return false;
    }
    if (live->link == LINK_UP && live->silence - live->silence_at_up < KEEPALIVE_SILENT + extra)
        return ask(e, peer);
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
    uint64_t ahead = *bytes;

    if (peer >= e->config.peers)
        return -EINVAL;
    live = &e->peer_live[peer];
    *bytes = live->bytes;
    if (live->link != LINK_UP)
        return -ENOTCONN;
    /* The peer waits for us. A connection may carry only one direction, or may have lost what the
     * peer waits for, and only we can see that. */
    live->asked = true;
    live->bytes_theirs = ahead;
    if (!live->watched)
        peer_watch(e, peer);
    return ledger_beat(e, peer) ? 0 : -EAGAIN;
}

void engine_peer_answered(struct engine *e, uint32_t peer, uint64_t bytes)
{
    if (peer < e->config.peers)
        e->peer_live[peer].bytes_theirs = bytes;
}
