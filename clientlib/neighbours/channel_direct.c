/*
 * Owns nothing: takes events and messages out of the rings of pairs, which neighbours write without
 * the daemon. channel_route decides what becomes of each. A record that cannot be kept stays in its
 * pair's ring.
 *
 * Thread: the one that owns the context.
 */
#include <errno.h>
#include "clientlib/channel/channel_route.h"
#include "shm_ring/fault.h"

enum { RUN_MAX = 16 }; /* records of one neighbour before the next neighbour has its turn */

static uint8_t *id_room(const struct neighbours *n)
{
    return n->event + sizeof(struct event_record);
}

/* Whether earlier events of this origin that came through the daemon have not been shown yet. */
static bool must_wait(struct channel *ch, struct neighbour *of)
{
    if (!of->waits) {
        if (atomic_load_explicit(&ch->shared->spilled, memory_order_acquire))
            return true;
        (void)inbox_pending(&ch->remote);
        of->until = ch->remote.ring.tail_seen;
        of->waits = true;
    }
    return (int64_t)(ch->remote.ring.head - of->until) < 0;
}

/* Reads the record at the head, if it may be shown now: 1, 0, or -EPROTO. */
static inline int look(struct channel *ch, struct neighbour *from, struct pair_record *record)
{
    int rc = pair_look(&from->ring, record, id_room(&ch->neighbours));

    if (rc == 1 && record->flags & PAIR_AFTER && must_wait(ch, from))
        rc = 0;
    return rc;
}

static inline void drop(struct neighbours *n, struct neighbour *from,
                        const struct pair_record *record)
{
    FAULT(PAIR_READ);
    pair_pass(&from->ring, record);
    from->waits = false;
    if (pair_writer_sleeps(&from->ring))
        n->wakes_due = from->wake_due = true;
}

/* Turns a record into an event, with its id by value or after it. For a message, `op` is set later
 * from its block. */
static inline struct event_record as_event(const struct pair_record *record, uint64_t peer,
                                           uint8_t kind)
{
    static const uint8_t ops[] = {[PAIR_PUT] = SUBMIT_PUT,
                                  [PAIR_GET] = SUBMIT_GET,
                                  [PAIR_ATOMIC] = SUBMIT_ATOMIC,
                                  [PAIR_MESSAGE] = 0};

    return (struct event_record){
        .size = event_bytes(record->id_len),
        .kind = kind,
        .op = ops[record->kind],
        .id_len = record->id_len,
        .peer = peer,
        .bytes = record->bytes,
        .id = record->id_len > 0 ? 0 : record->id,
    };
}

/* As channel_route, for a record whose id is in id_room. A record that cannot be kept stays in its
 * ring. */
static __attribute__((noinline)) int route(struct channel *ch, struct neighbour *from,
                                           struct event_record event, uint64_t peer, unsigned kinds,
                                           struct pwc_event *out)
{
    const struct asked asked = {.peer = peer, .kinds = kinds, .keep_max = CHANNEL_KEPT_BYTES};
    struct event_record *at = (struct event_record *)(void *)ch->neighbours.event;
    int rc;

    *at = event;
    rc = channel_route(ch, from, at, &asked, out);
    if (rc >= 0 || rc == -EPROTO)
        return rc;
    ch->notify.held = true;
    return ROUTE_STAYS;
}

/* As route, for a notification that matches no request, without a copy. */
static __attribute__((noinline)) int route_notification(struct channel *ch,
                                                        const struct neighbour *from,
                                                        const struct pair_record *record,
                                                        uint64_t peer, unsigned kinds,
                                                        struct pwc_event *out)
{
    const struct asked asked = {.peer = peer, .kinds = kinds};
    const struct event_record event = as_event(record, from->peer, EVENT_NOTIFY);
    int rc = channel_notified(ch, &event, &asked, out);

    if (rc >= 0)
        return rc;
    ch->notify.held = true;
    return ROUTE_STAYS;
}

/* ---- requests -------------------------------------------------------------------------------- */

/* Takes a record of a neighbour. Returns an enum route, or -EPROTO. */
static inline int take_record(struct channel *ch, struct neighbour *from, bool asked_for,
                              uint64_t peer, unsigned kinds, struct pwc_event *out)
{
    struct neighbours *n = &ch->neighbours;
    struct pair_record record;
    int rc = look(ch, from, &record);

    if (rc != 1)
        return rc;
    if (record.flags & PAIR_NOTIFY &&
        channel_match(ch, from->peer, record.id, (uint32_t)record.bytes)) {
        rc = ROUTE_KEPT;
    } else if (record.flags & PAIR_NOTIFY) {
        rc = route_notification(ch, from, &record, peer, kinds, out);
    } else if (asked_for && kinds & PWC_REMOTE &&
               record.kind <= PAIR_ATOMIC) { /* the most frequent case */
        const struct event_record event = as_event(&record, from->peer, EVENT_REMOTE);

        channel_show(&event, id_room(n), out);
    } else if (record.kind != PAIR_UNANSWERED) {
        uint8_t kind = record.kind == PAIR_MESSAGE ? EVENT_REQUEST : EVENT_REMOTE;

        rc = route(ch, from, as_event(&record, from->peer, kind), peer, kinds, out);
    } else {
        rc = -EPROTO;
    }
    if (rc > 0)
        drop(n, from, &record);
    return rc;
}

/* take_record for the neighbour whose turn it is, if the probe asks for its events, or records must
 * be routed. */
static inline int take(struct channel *ch, uint64_t peer, unsigned kinds, struct pwc_event *out)
{
    struct neighbour *from = &ch->neighbours.list[ch->neighbours.turn];
    bool asked_for = kinds & CHANNEL_REMOTE_KINDS && (peer == PWC_ANY || peer == from->peer);

    return asked_for || channel_sorts(ch) ? take_record(ch, from, asked_for, peer, kinds, out)
                                          : ROUTE_STAYS;
}

/* Gives the turn to the next neighbour, and forgets this one if its pair is over. */
static void turn(struct neighbours *n, int rc)
{
    struct neighbour *from = &n->list[n->turn];

    n->run = 0;
    if (rc < 0 || (from->over && !pair_pending(&from->ring)))
        neighbours_forget(n, n->turn);
    else if (++n->turn >= n->active)
        n->turn = 0;
}

/* ---- answers --------------------------------------------------------------------------------- */

/* Takes the next answer of one pair: as take. */
static int take_answer(struct channel *ch, struct direct_pair *pair, uint64_t peer, unsigned kinds,
                       struct pwc_event *out)
{
    struct neighbours *n = &ch->neighbours;
    struct pair_record record;
    int rc = pair_look(&pair->answers, &record, id_room(n));

    if (rc != 1)
        return rc;
    if (record.kind == PAIR_UNANSWERED)
        rc = ROUTE_RAN;
    else if (record.kind == PAIR_MESSAGE)
        rc = route(ch, NULL, as_event(&record, pair->peer, EVENT_REPLY), peer, kinds, out);
    else
        rc = -EPROTO;
    if (rc <= 0)
        return rc;
    pair_pass(&pair->answers, &record);
    /* Release the room at once: `awaited` no longer counts this answer, so another answer may need
     * the room. */
    pair_release(&pair->answers);
    pair->awaited--;
    n->awaited--;
    return rc;
}

static __attribute__((noinline)) int take_answers(struct channel *ch, uint64_t peer, unsigned kinds,
                                                  struct pwc_event *out)
{
    struct neighbours *n = &ch->neighbours;

    for (struct direct_pair *pair = n->ours; pair; pair = pair->next) {
        int rc = ROUTE_RAN;

        for (unsigned run = 0; rc > ROUTE_SHOWN && pair->awaited > 0 && run < RUN_MAX; run++)
            rc = take_answer(ch, pair, peer, kinds, out);
        if (rc == ROUTE_SHOWN)
            return 1;
        if (rc < 0)
            pair->broken = true;
        if (rc < 0 || (rc == 0 && pair->over && !pair_pending(&pair->answers)))
            neighbours_await_none(n, pair);
    }
    return 0;
}

/* Advances n->turn to the next neighbour that has a record, or whose pair is over. With many
 * neighbours a probe spends most of its time here. Returns how many of `left` are still to visit,
 * including that neighbour. */
static inline uint32_t next_pending(struct neighbours *n, uint32_t left)
{
    const struct neighbour *from, *end;
    uint32_t before = left;

    if (left == 0)
        return 0;
    from = n->list + n->turn;
    end = n->list + n->active;
    while (left > 0 && !pair_pending(&from->ring) && !from->over) {
        from = from + 1 < end ? from + 1 : n->list;
        left--;
    }
    if (left != before) {
        n->turn = (uint32_t)(from - n->list);
        n->run = 0;
    }
    return left;
}

/* ---- notifications that match -------------------------------------------------------- */

/* Takes a notification from the head of a neighbour's ring, without the steps that others need, if
 * a started request matches it. Loads each of its words once. */
static inline bool take_notification(struct channel *ch, struct neighbour *from)
{
    const struct pair_line *line = &from->ring.lines[from->ring.head & from->ring.mask];
    uint64_t head = atomic_load_explicit(&line->head, memory_order_acquire); /* E */
    const struct pair_record record = {.lines = 1, .bytes = line->bytes, .id = line->id};

    atomic_signal_fence(memory_order_seq_cst); /* as in pair_look */
    if (!pair_arrived(head, from->ring.head) || !pair_heads_notification(head) ||
        !channel_match(ch, from->peer, record.id, (uint32_t)record.bytes))
        return false;
    drop(&ch->neighbours, from, &record);
    return true;
}

/* ---- all records ----------------------------------------------------------------------------- */

int channel_take_direct(struct channel *ch, uint64_t peer, unsigned kinds, struct pwc_event *out)
{
    struct neighbours *n = &ch->neighbours;

    ch->notify.held = false;
    if (n->awaited > 0 && take_answers(ch, peer, kinds, out) == 1)
        return 1;
    if (neighbours_may_rest(n))
        neighbours_listen(n);
    for (uint32_t left = n->active; left > 0; left = next_pending(n, left - 1)) {
        int rc;

        do
            rc = take(ch, peer, kinds, out);
        while (rc > ROUTE_SHOWN && ++n->run < RUN_MAX);
        if (rc == ROUTE_SHOWN && ++n->run < RUN_MAX)
            return 1;
        turn(n, rc);
        if (rc == ROUTE_SHOWN)
            return 1;
    }
    return 0;
}

/* Takes one notification that matches, or whatever else has arrived. */
static void take_some(struct channel *ch)
{
    struct neighbours *n = &ch->neighbours;

    if (n->awaited > 0 || !take_notification(ch, &n->list[n->turn]))
        (void)channel_take_direct(ch, PWC_ANY, 0, NULL);
    else if (++n->turn >= n->active)
        n->turn = 0;
}

bool channel_run_direct(struct channel *ch)
{
    struct neighbours *n = &ch->neighbours;
    uint32_t started = ch->notify.matcher.started;

    ch->notify.held = false; /* until something is found that has to wait */
    if (neighbours_may_rest(n))
        neighbours_listen(n);
    if (n->awaited == 0 && (!channel_sorts(ch) || next_pending(n, n->active) == 0))
        return false;
    take_some(ch);
    if (ch->notify.matcher.started < started && ch->direct_run++ < CHANNEL_DIRECT_MAX)
        return true;
    ch->direct_run = 0;
    return false;
}

/* Whether half of the ring's lines hold records. */
static bool is_crowded(const struct neighbour *from)
{
    const struct pair_reader *r = &from->ring;
    uint64_t half = r->head + PAIR_LINES / 2;

    return pair_arrived(atomic_load_explicit(&r->lines[half & r->mask].head, memory_order_relaxed),
                        half);
}

/* Keeps records of one neighbour. Returns the last result of take_record. */
static int relieve(struct channel *ch, struct neighbour *from)
{
    int rc;

    do
        rc = take_record(ch, from, false, PWC_ANY, 0, NULL);
    while (rc > 0 && is_crowded(from));
    return rc;
}

int channel_relieve(struct channel *ch)
{
    struct neighbours *n = &ch->neighbours;

    if (channel_sorts(ch)) /* channel_run has looked into these rings */
        return 0;
    for (uint32_t i = n->active; i-- > 0;) {
        struct neighbour *from = &n->list[i];
        int rc = is_crowded(from) ? relieve(ch, from) : 0;

        if (rc == 0 && from->waits) { /* waits for earlier events that came through the daemon */
            channel_learn(ch);
            rc = is_crowded(from) ? relieve(ch, from) : 0;
        }
        if (rc < 0)
            neighbours_forget(n, i);
        else if (is_crowded(from) && ch->notify.held)
            return -ENOBUFS;
    }
    return 0;
}

/* Whether the record at the head is a reason for a probe for these kinds. */
static bool worth_a_probe(struct channel *ch, struct neighbour *from, uint64_t peer, unsigned kinds)
{
    const struct message *block = (const struct message *)(void *)id_room(&ch->neighbours);
    bool asked_for = kinds & CHANNEL_REMOTE_KINDS && (peer == PWC_ANY || peer == from->peer);
    struct pair_record record;
    int rc = asked_for || channel_sorts(ch) ? look(ch, from, &record) : 0;

    if (rc != 1)
        return rc < 0;
    if (record.kind == PAIR_MESSAGE)
        return record.id_len < sizeof(*block) || channel_reply_room(ch, from, block) != 0;
    if (record.flags & PAIR_NOTIFY)
        return (asked_for && kinds & PWC_NOTIFICATION) ||
               channel_may_notify(ch, from->peer, record.id);
    return (asked_for && kinds & PWC_REMOTE) || kept_room(&ch->kept, CHANNEL_KEPT_BYTES) == 0;
}

bool channel_direct_pending(struct channel *ch, uint64_t peer, unsigned kinds)
{
    struct neighbours *n = &ch->neighbours;

    for (uint32_t i = 0; i < n->count; i++)
        if (worth_a_probe(ch, &n->list[i], peer, kinds))
            return true;
    for (const struct direct_pair *pair = n->ours; pair; pair = pair->next)
        if (pair->awaited > 0 && pair_pending(&pair->answers))
            return true;
    return neighbours_have_room(n);
}
