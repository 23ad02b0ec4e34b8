/*
 * What comes from neighbours, without the daemon: events to who asks for them or to those kept,
 * messages to their handlers. The same rules as for what stands in the rings (channel_probe.c,
 * channel_messages.c), but that what cannot be kept is left where it is, in its origin's ring.
 *
 * Thread: the one that owns the context.
 */
#include <errno.h>
#include "clientlib/channel/channel.h"
#include "shm_ring/fault.h"
#include "proto/wire_abi.h"

enum {
    RUN_MAX = 16, /* records of one neighbour before the next has its turn */
    PASSED = 2,   /* a record has gone, and there is nothing to show */
};

static uint8_t *id_room(const struct neighbours *n)
{
    return n->event + sizeof(struct event_record);
}

static bool matches(uint64_t asked, uint64_t peer)
{
    return asked == PWC_ANY || asked == peer;
}

/* What its origin did before, through the daemon, has not been shown yet. */
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

/* The record at the head, where it may be shown: 1, 0, or -EPROTO. */
static inline int look(struct channel *ch, struct neighbour *from, struct pair_record *record)
{
    int rc = pair_look(&from->ring, record, id_room(&ch->neighbours));

    if (rc == 1 && record->flags & PAIR_AFTER && must_wait(ch, from))
        rc = 0;
    return rc;
}

static inline void pass(struct neighbours *n, struct neighbour *from,
                        const struct pair_record *record)
{
    FAULT(PAIR_READ);
    pair_pass(&from->ring, record);
    from->waits = false;
    if (pair_writer_sleeps(&from->ring))
        n->wakes_due = from->wake_due = true;
}

static inline void show(const struct pair_record *record, uint64_t peer, struct pwc_event *out,
                        const void *id)
{
    out->kind = PWC_REMOTE;
    out->status = 0;
    out->peer = peer;
    out->id = record->id;
    out->data = record->id_len > 0 ? id : NULL;
    out->size = record->id_len;
    out->bytes = record->bytes;
}

/* The record as an event, in front of its id. */
static struct event_record *as_event(const struct neighbours *n, const struct pair_record *record,
                                     uint64_t peer, uint8_t kind)
{
    struct event_record *event = (struct event_record *)(void *)n->event;

    *event = (struct event_record){
        .size = event_bytes(record->id_len),
        .kind = kind,
        .op = record->kind == PAIR_PUT ? SUBMIT_PUT : SUBMIT_GET,
        .id_len = record->id_len,
        .peer = peer,
        .bytes = record->bytes,
        .id = record->id_len > 0 ? 0 : record->id,
    };
    return event;
}

/* ---- requests ------------------------------------------------------------------------------- */

/* Its handler may run now: there is room for the reply, and for its end. Where the origin has asked
 * for more than there is room for: -EPROTO. */
static int may_run(const struct channel *ch, struct neighbour *from, const struct message *block)
{
    if (block->token == WIRE_NONE)
        return 1;
    if (channel_own_room(ch, SESSION_ID_MAX) < 0)
        return 0;
    return ch->neighbours.answer_max > 0 &&
                   pair_room(&from->answers, ch->neighbours.answer_max) == 0
               ? 1
               : -EPROTO;
}

/* The message at the head: 1 when it has been handed over, 0 when it has to wait, -EPROTO. */
static int meet(struct channel *ch, struct neighbour *from, const struct pair_record *record)
{
    const struct event_record *event = as_event(&ch->neighbours, record, from->peer, EVENT_REQUEST);
    const struct message *block = (const struct message *)(event + 1);
    int rc;

    if (!channel_block_valid(ch, event) || (block->token != 0 && block->token != WIRE_NONE))
        return -EPROTO;
    rc = may_run(ch, from, block);
    if (rc <= 0)
        return rc;
    ch->neighbours.answering = from;
    rc = channel_hand_over(ch, event);
    ch->neighbours.answering = NULL;
    return rc == 0;
}

/* A record that is no event that is asked for: 1, an event tells of its handler; PASSED; 0, it has
 * to wait; -EPROTO. */
static __attribute__((noinline)) int take_other(struct channel *ch, struct neighbour *from,
                                                const struct pair_record *record, uint64_t peer,
                                                unsigned kinds, struct pwc_event *out)
{
    int rc;

    if (record->kind == PAIR_MESSAGE) {
        rc = meet(ch, from, record);
        if (rc <= 0)
            return rc;
        rc = kinds & PWC_MESSAGE && matches(peer, from->peer) ? 1 : PASSED;
        if (rc == 1)
            channel_show(ch, out);
    } else if (record->kind == PAIR_UNANSWERED) {
        return -EPROTO;
    } else {
        if (kept_room(&ch->kept, CHANNEL_KEPT_BYTES) < 0)
            return 0;
        kept_add(&ch->kept, as_event(&ch->neighbours, record, from->peer, EVENT_REMOTE));
        rc = PASSED;
    }
    pass(&ch->neighbours, from, record);
    return rc;
}

/* From the neighbour whose turn it is: as take_other. */
static inline int take(struct channel *ch, uint64_t peer, unsigned kinds, struct pwc_event *out)
{
    struct neighbours *n = &ch->neighbours;
    struct neighbour *from = &n->list[n->turn];
    bool asked_for = kinds & PWC_REMOTE && matches(peer, from->peer);
    struct pair_record record;
    int rc;

    if (!asked_for && !ch->deliver)
        return 0;
    rc = look(ch, from, &record);
    if (rc != 1)
        return rc;
    if (!asked_for || record.kind > PAIR_GET)
        return take_other(ch, from, &record, peer, kinds, out);
    show(&record, from->peer, out, id_room(n));
    pass(n, from, &record);
    return 1;
}

/* It is the next one's turn, and who is to be forgotten goes. */
static void turn(struct neighbours *n, int rc)
{
    struct neighbour *from = &n->list[n->turn];

    n->run = 0;
    if (rc < 0 || (from->over && !pair_pending(&from->ring)))
        neighbours_forget(n, n->turn);
    else if (++n->turn >= n->active)
        n->turn = 0;
}

/* ---- answers -------------------------------------------------------------------------------- */

static void pass_answer(struct neighbours *n, struct direct_pair *pair,
                        const struct pair_record *record)
{
    pair_pass(&pair->answers, record);
    /* At once: the room of an answer that is no longer awaited is the next one's. */
    pair_release(&pair->answers);
    pair->awaited--;
    n->awaited--;
}

/* The next answer of one pair: as take_other. */
static int take_answer(struct channel *ch, struct direct_pair *pair, uint64_t peer, unsigned kinds,
                       struct pwc_event *out)
{
    struct neighbours *n = &ch->neighbours;
    const struct event_record *event;
    struct pair_record record;
    int rc = pair_look(&pair->answers, &record, id_room(n));

    if (rc != 1)
        return rc;
    if (record.kind == PAIR_UNANSWERED) {
        pass_answer(n, pair, &record);
        return PASSED;
    }
    event = as_event(n, &record, pair->peer, EVENT_REPLY);
    if (record.kind != PAIR_MESSAGE || !channel_block_valid(ch, event))
        return -EPROTO;
    if (channel_hand_over(ch, event) < 0)
        return 0;
    pass_answer(n, pair, &record);
    if (!(kinds & PWC_MESSAGE) || !matches(peer, pair->peer))
        return PASSED;
    channel_show(ch, out);
    return 1;
}

static __attribute__((noinline)) int take_answers(struct channel *ch, uint64_t peer, unsigned kinds,
                                                  struct pwc_event *out)
{
    struct neighbours *n = &ch->neighbours;

    for (struct direct_pair *pair = n->ours; pair; pair = pair->next) {
        int rc = PASSED;

        for (unsigned run = 0; rc == PASSED && pair->awaited > 0 && run < RUN_MAX; run++)
            rc = take_answer(ch, pair, peer, kinds, out);
        if (rc == 1)
            return 1;
        if (rc < 0)
            pair->lies = true;
        if (rc < 0 || (rc == 0 && pair->over && !pair_pending(&pair->answers)))
            neighbours_await_none(n, pair);
    }
    return 0;
}

/* Goes on to the next of whom something has come, or who is to be forgotten; of many that is most
 * of what a probe does. How many of `left` are left, with that one. */
static inline uint32_t pass_by(struct neighbours *n, uint32_t left)
{
    const struct neighbour *from = n->list + n->turn, *end = n->list + n->active;
    uint32_t before = left;

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

/* ---- both ----------------------------------------------------------------------------------- */

int channel_take_direct(struct channel *ch, uint64_t peer, unsigned kinds, struct pwc_event *out)
{
    struct neighbours *n = &ch->neighbours;

    if (n->awaited > 0 && take_answers(ch, peer, kinds, out) == 1)
        return 1;
    if (neighbours_may_rest(n))
        neighbours_listen(n);
    for (uint32_t left = n->active; left > 0; left = pass_by(n, left - 1)) {
        int rc;

        do
            rc = take(ch, peer, kinds, out);
        while (rc == PASSED && ++n->run < RUN_MAX);
        if (rc == 1 && ++n->run < RUN_MAX)
            return 1;
        turn(n, rc);
        if (rc == 1)
            return 1;
    }
    return 0;
}

/* The record at the head is worth a probe for these kinds. */
static bool worth_a_probe(struct channel *ch, struct neighbour *from, uint64_t peer, unsigned kinds)
{
    const struct message *block = (const struct message *)(void *)id_room(&ch->neighbours);
    bool asked_for = kinds & PWC_REMOTE && matches(peer, from->peer);
    struct pair_record record;
    int rc = asked_for || ch->deliver ? look(ch, from, &record) : 0;

    if (rc != 1)
        return rc < 0;
    if (record.kind == PAIR_MESSAGE)
        return record.id_len < sizeof(*block) || may_run(ch, from, block) != 0;
    return asked_for || kept_room(&ch->kept, CHANNEL_KEPT_BYTES) == 0;
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
