/* The inbound ledger: arrivals, consumption in run order, acknowledgement.
 * Thread: the progress thread. */
#include "daemon/engine/ledger/ledger.h"

#include <string.h>
#include "daemon/engine/peer/keepalive.h"
#include "daemon/engine/ledger/notes.h"
#include "daemon/engine/peer/marks.h"
#include "daemon/engine/session/session.h"

int ledger_arrived(struct engine *e, uint32_t immediate)
{
    uint32_t peer = wire_immediate_node(immediate);
    uint16_t number = (uint16_t)immediate;
    struct ledger_in *in;

    if (peer >= e->config.peers)
        return -EPROTO;
    in = &e->peer_live[peer].in;
    if (e->peer_live[peer].link != LINK_UP && e->peer_live[peer].link != LINK_OFFERED)
        return 0; /* the run belongs to a link that is gone: its records will be sent again */
    in->dirty = true;
    keepalive_heard(e, peer);
    if (immediate >> 30 == WIRE_PAYLOAD) {
        if (number >= NONCE_WINDOW || in->payloads[number] == WIRE_PIECES_MAX)
            return -EPROTO;
        in->payloads[number]++;
        if (in->blocked) /* the write was perhaps a piece of an awaited payload */
            e->peer_live[peer].stuck = 0;
        in->blocked = false;
    } else if (immediate >> 30 == WIRE_RUN) {
        uint16_t ahead = (uint16_t)(number - in->run);

        if (ahead >= RUN_WINDOW)
            return -EPROTO;
        in->arrived |= UINT64_C(1) << (number % RUN_WINDOW);
    } else {
        return -EPROTO;
    }
    peer_activate(e, peer);
    return 0;
}

/* The position up to which the peer may write. The peer may not have taken our last ACK yet, so it
 * knows of this much or of less. In a ring that is new, nothing waits to be consumed. */
static uint64_t credit_end(const struct ledger_in *in)
{
    return (in->acked > in->base ? in->acked : in->base) + in->size;
}

/* Starts on the next run if it has been announced. Returns 1, 0, or -EPROTO. */
static int run_begin(struct engine *e, uint32_t peer)
{
    struct peer *p = &e->peers[peer];
    struct ledger_in *in = &e->peer_live[peer].in;
    uint32_t offset = (uint32_t)(p->rx_consumed - in->base) & (in->size - 1);
    uint64_t bit = UINT64_C(1) << (in->run % RUN_WINDOW);
    struct wire_record head;

    if (!(in->arrived & bit))
        return 0;
    memcpy(&head, in->ring + offset, sizeof(head));
    if (head.run < sizeof(head) || head.run % 8 != 0 || head.run > in->size - offset ||
        p->rx_consumed + head.run > credit_end(in))
        return -EPROTO;
    in->arrived &= ~bit;
    in->run++;
    in->run_end = p->rx_consumed + head.run;
    e->peer_live[peer].runs_in++;
    return 1;
}

/*
 * An ACK costs its sender and its receiver a call of the fabric, unless it rides with records that
 * leave anyway. A client that answers an event does so before the next step, because the thread
 * lets the client run when there is an event for it. So while ACKs find rides, an ACK waits for the
 * next step; after an ACK that left alone, the next one leaves in the step that consumed.
 *
 *     rides      step: consume, event    client answers    step: answer and ACK
 *     none do    step: consume, event, ACK
 */
#define RIDE_NS 1u
/* How long the ACK of notes may wait: notes hold only a little memory, while a client may wait for
 * an operation's ACK. */
#define NOTE_ACK_NS 1000000u
/* The ACK of letters may wait longer: their memory is set aside in any case, and a sender that
 * needs the ACK earlier sends FLOOR (hasten, in team/instance.c). */
#define LETTER_ACK_NS 16000000u

/* Records leave without an ACK. Where some records are unacknowledged, an ACK would have had a
 * ride; where none are, the last ACK may have left a step too early for this ride. */
static void ride_missed(const struct engine *e, struct ledger_in *in, uint64_t unacked)
{
    if (unacked > 0 || e->steps - in->alone_in <= 1)
        in->rides = true;
}

static void ack_leaves(const struct engine *e, struct ledger_in *in, bool company)
{
    in->rides = company;
    if (!company)
        in->alone_in = e->steps;
}

static void ack_wanted(const struct engine *e, struct ledger_in *in, enum ledger_wait wait)
{
    uint64_t at = e->now + (wait == LEDGER_WAIT_LETTER      ? LETTER_ACK_NS
                            : wait != LEDGER_WAIT_OPERATION ? NOTE_ACK_NS
                            : in->rides && !e->hasten       ? RIDE_NS
                                                            : 0);

    if (in->ack_due && in->ack_at <= at)
        return;
    in->ack_due = true;
    in->ack_at = at;
}

/* A record takes 1 + size / CONSUME_BYTES of the budget, so that long records do not delay other
 * clients' events. */
#define CONSUME_BYTES 64u

int ledger_next(struct engine *e, uint32_t peer, struct ledger_record *next)
{
    struct peer *p = &e->peers[peer];
    struct ledger_in *in = &e->peer_live[peer].in;

    if (in->blocked)
        return 0;
    if (in->run_end == 0) {
        int r = run_begin(e, peer);

        if (r <= 0)
            return r;
    }
    next->at = in->ring + ((uint32_t)(p->rx_consumed - in->base) & (in->size - 1));
    memcpy(&next->head, next->at, sizeof(next->head));
    next->size = next->head.words * 8u;
    if (next->size < sizeof(next->head) || next->size > in->run_end - p->rx_consumed ||
        next->head.kind >= WIRE_KINDS)
        return -EPROTO;
    return 1;
}

int ledger_consumed(struct engine *e, uint32_t peer, const struct ledger_record *record,
                    enum ledger_wait wait)
{
    struct peer *p = &e->peers[peer];
    struct ledger_in *in = &e->peer_live[peer].in;

    set64(e, &p->rx_consumed, p->rx_consumed + record->size);
    commit(e);
    in->part = 0;
    in->more_follow = wait == LEDGER_WAIT_PART;
    e->peer_live[peer].records_in++;
    e->peer_live[peer].bytes_in += record->size;
    if (p->rx_consumed == in->run_end) {
        in->run_end = 0;
        in->runs_unacked++;
    }
    if (wait != LEDGER_WAIT_NONE)
        ack_wanted(e, in, wait);
    return 1 + (int)(record->size / CONSUME_BYTES);
}

void ledger_ack_soon(struct engine *e, uint32_t peer)
{
    ack_wanted(e, &e->peer_live[peer].in, LEDGER_WAIT_OPERATION);
}

/* ledger_nudge acts after this time without a run: a daemon that sleeps between looks
 * (fabric_traits.can_sleep) notices runs only. */
#define NUDGE_NS 100000u

static bool stage_ack(struct engine *e, uint32_t peer, uint64_t upto)
{
    struct wire_ack *ack;

    /* A client of a sibling may write to our clients without us as soon as it has this ACK: events
     * that came through us are shown first. */
    if (e->peer_live[peer].sibling)
        sessions_show(e);
    ack = ledger_stage(e, peer, WIRE_ACK, sizeof(*ack), LEDGER_ACK, NULL);
    if (!ack)
        return false;
    ack->consumed = upto;
    commit(e);
    e->peer_live[peer].out.urgent = true;
    return true;
}

bool ledger_beat(struct engine *e, uint32_t peer)
{
    struct ledger_in *in = &e->peer_live[peer].in;

    peer_activate(e, peer);
    if (in->acked > 0 || e->peers[peer].rx_consumed == 0)
        return stage_ack(e, peer, in->acked);
    /* The first ACK of this link. */
    in->ack_due = true;
    in->ack_at = 0;
    return true;
}

void ledger_greet(struct engine *e, uint32_t peer)
{
    struct ledger_in *in = &e->peer_live[peer].in;

    in->acked = notes_unanswered(e, peer);
    in->ack_due = in->acked != e->peers[peer].rx_consumed;
    (void)stage_ack(e, peer, in->acked); /* a new ring has room */
}

bool ledger_nudge_idle(struct engine *e, uint32_t peer, uint64_t *deadline)
{
    struct peer_live *live = &e->peer_live[peer];
    uint64_t last = live->out.run_posted[(uint16_t)(live->out.run - 1) % RUN_WINDOW];

    if (e->fabric->traits.can_sleep || peer == e->config.self ||
        (live->out.sent < e->peers[peer].tx_tail && !live->out.waits) || !ledger_runs_free(e, peer))
        return false;
    peer_activate(e, peer);
    if (e->now - last >= NUDGE_NS)
        return ledger_beat(e, peer);
    if (last + NUDGE_NS < *deadline)
        *deadline = last + NUDGE_NS;
    return false;
}

/* Whether an ACK of `unacked` bytes would give back one part in `parts` of the ring, or of the
 * window of runs. */
static bool room_to_give(const struct ledger_in *in, uint64_t unacked, uint32_t parts)
{
    return unacked >= in->size / parts || in->runs_unacked >= RUN_WINDOW / parts;
}

void ledger_stage_ack(struct engine *e, uint32_t peer)
{
    struct peer *p = &e->peers[peer];
    struct peer_live *live = &e->peer_live[peer];
    struct ledger_in *in = &live->in;
    uint64_t unacked = p->rx_consumed - in->acked;
    bool much = room_to_give(in, unacked, in->more_follow ? 2 : 4);
    bool company = live->out.sent != p->tx_tail && !ledger_waits(e, peer);
    bool due;
    uint64_t upto;

    /* Records that are ACKs themselves need no ACK until their room is needed. */
    if (unacked == 0 || !(in->ack_due || room_to_give(in, unacked, 8))) {
        if (company)
            ride_missed(e, in, unacked);
        return;
    }
    /* The last runs of the window are kept for ACKs that give much back, not for ACKs of the parts
     * of one long run. Both sides never wait for each other: a peer whose window is full, too, has
     * sent more than a little. */
    if (!much && !ledger_runs_free(e, peer))
        return;
    /* An ACK that gives much back does not wait as long as an ACK of notes or letters may. Such an
     * ACK may still wait for a ride, which takes only one step. */
    if (much && !(in->ack_due && in->ack_at <= e->now + RIDE_NS)) {
        in->ack_due = true;
        in->ack_at = 0;
    }
    /* The ACK leaves when it is due, or rides when other records leave. An ACK must not pass a
     * verdict: a FAIL is about a record that the ACK would cover. */
    due = in->ack_due && in->ack_at <= e->now;
    if (!due && !company)
        return;
    /* The next step has records to consume: one ACK of both steps costs half as much as two. */
    if (in->left && !in->waited && !much && !company) {
        in->waited = true;
        return;
    }
    upto = notes_unanswered(e, peer);
    if (upto <= in->acked || !stage_ack(e, peer, upto))
        return;
    ack_leaves(e, in, company);
    in->waited = false;
    in->acked = upto;
    in->ack_due = upto != p->rx_consumed;
    if (!in->ack_due)
        in->runs_unacked = 0;
}
