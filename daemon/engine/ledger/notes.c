/* Control records waiting for a peer. Thread: the progress thread. */
#include "daemon/engine/ledger/notes.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include "shm_ring/fault.h"
#include "daemon/engine/ops/flow.h"
#include "daemon/engine/ops/turn.h"
#include "daemon/engine/ledger/ledger.h"
#include "daemon/engine/peer/marks.h"
#include "daemon/engine/peer/remote.h"

static struct note *note_at(const struct engine *e, const struct queue *queue, uint64_t index)
{
    return queue_at(&e->pool, queue, index);
}

/* The place of a note's record, `size` bytes after its head, from byte `at` on; *part is how many
 * of these bytes stand in this entry. */
static uint8_t *body_part(const struct engine *e, const struct queue *queue, uint64_t index,
                          uint32_t at, uint32_t size, uint32_t *part)
{
    uint32_t entry = 1u << NOTE_SHIFT, place = (uint32_t)offsetof(struct note, body) + at;
    uint32_t room = entry - (place & (entry - 1));

    *part = size - at < room ? size - at : room;
    return (uint8_t *)queue_at(&e->pool, queue, index + (place >> NOTE_SHIFT)) +
           (place & (entry - 1));
}

/* Where a field of a record stands in the body of its note. */
#define BODY_OF(type, field) (offsetof(type, field) - sizeof(struct wire_record))
static_assert(sizeof(struct wire_bound) - sizeof(struct wire_record) <= NOTE_BODY, "one entry");

void notes_body(const struct engine *e, const struct queue *queue, uint64_t index, void *to)
{
    uint32_t size = note_at(e, queue, index)->words * 8u - (uint32_t)sizeof(struct wire_record);

    for (uint32_t at = 0, part; at < size; at += part) {
        const uint8_t *from = body_part(e, queue, index, at, size, &part);

        memcpy((uint8_t *)to + at, from, part);
    }
}

/* Entries of a note with a record of `size` bytes. */
static uint32_t note_span(uint32_t size)
{
    uint32_t bytes = (uint32_t)(offsetof(struct note, body) - sizeof(struct wire_record)) + size;

    return (bytes + (1u << NOTE_SHIFT) - 1) >> NOTE_SHIFT;
}

int notes_room(const struct engine *e, uint32_t peer, uint32_t size)
{
    const struct queue *queue = &e->peers[peer].notes[NOTES_VERDICTS].queue;

    if (FAULT(NOTE_ROOM) < 0)
        return -ENOBUFS;
    return queue_room(&e->pool, queue, note_span(size));
}

/* 0 or -ENOBUFS. */
static int note_push(struct engine *e, uint32_t peer, uint32_t client, const void *record,
                     uint32_t size)
{
    struct peer *p = &e->peers[peer];
    const struct wire_record *head = record;
    bool verdict =
        head->kind == WIRE_FAIL || head->kind == WIRE_REFUSE || head->kind == WIRE_RESULT;
    struct queue *queue = &p->notes[verdict ? NOTES_VERDICTS : NOTES_OTHERS].queue;
    uint32_t body = size - (uint32_t)sizeof(*head), span = note_span(size);
    uint64_t index = queue->tail;

    if (queue_push(&e->pool, queue, span, 0) < 0)
        return -ENOBUFS;
    *note_at(e, queue, index) = (struct note){.cause = p->rx_consumed,
                                              .client = client,
                                              .kind = head->kind,
                                              .words = (uint8_t)(size / 8),
                                              .span = (uint8_t)span};
    for (uint32_t at = 0, part; at < body; at += part) {
        uint8_t *to = body_part(e, queue, index, at, body, &part);

        memcpy(to, (const uint8_t *)(head + 1) + at, part);
    }
    e->peer_live[peer].unlisted = true;
    peer_want(e, peer);
    peer_activate(e, peer);
    return 0;
}

int notes_push(struct engine *e, uint32_t peer, uint32_t client, const void *record, uint32_t size)
{
    return FAULT(NOTE_ROOM) < 0 ? -ENOBUFS : note_push(e, peer, client, record, size);
}

/* Answers to one peer, which wait for its acknowledgement, take at most 1/8 of all chunks. A peer
 * that consumes its records stays far below this bound, however many keys it binds and withdraws.
 */
#define ANSWER_CHUNKS_PART 8u

static uint32_t answers_most(const struct engine *e)
{
    return e->config.chunks_max / ANSWER_CHUNKS_PART * (CHUNK_BYTES >> NOTE_SHIFT);
}

int notes_answer(struct engine *e, uint32_t peer, uint32_t client, const void *record,
                 uint32_t size)
{
    struct peer *p = &e->peers[peer];

    if (p->answers_owed >= answers_most(e))
        return -EPROTO;
    if (notes_push(e, peer, client, record, size) < 0)
        return -EAGAIN;
    set32(e, &p->answers_owed, p->answers_owed + 1);
    return 0;
}

void notes_append(struct engine *e, uint32_t peer, uint32_t client, const void *record,
                  uint32_t size)
{
    (void)note_push(e, peer, client, record, size);
}

bool notes_pending(const struct engine *e, uint32_t peer)
{
    const struct peer *p = &e->peers[peer];

    return queue_count(&p->notes[NOTES_VERDICTS].queue) > 0 ||
           queue_count(&p->notes[NOTES_OTHERS].queue) > 0;
}

int notes_push_flow(struct engine *e, uint32_t peer, uint32_t client, uint8_t kind, uint32_t flow,
                    uint32_t sequence, int32_t status)
{
    struct wire_flow record = {
        .head.kind = kind, .flow = flow, .sequence = sequence, .status = status};

    return notes_push(e, peer, client, &record, sizeof(record));
}

uint64_t notes_unanswered(const struct engine *e, uint32_t peer)
{
    const struct peer *p = &e->peers[peer];
    const struct notes *verdicts = &p->notes[NOTES_VERDICTS];

    if (verdicts->staged == verdicts->queue.tail)
        return p->rx_consumed;
    return note_at(e, &verdicts->queue, verdicts->staged)->cause;
}

/* ---- in turns -------------------------------------------------------------------------------- */

/* The queue is short enough for these low bits to identify an index in it. No value of them equals
 * NONE. */
#define LOW_BITS UINT32_C(0x7fffffff)

static uint64_t index_of(const struct queue *queue, uint32_t low)
{
    return queue->head + ((low - (uint32_t)queue->head) & LOW_BITS);
}

static void note_list(struct engine *e, uint32_t peer, enum notes_queue which, uint64_t index)
{
    const struct queue *queue = &e->peers[peer].notes[which].queue;
    struct note *note = note_at(e, queue, index);
    uint32_t low = (uint32_t)index & LOW_BITS;
    struct ready_list *list;

    note->turn = turn_of(e, peer, note->client);
    note->next = NONE;
    list = &e->turns[note->turn].waiting[which];
    if (list->first == NONE)
        list->first = low;
    else
        note_at(e, queue, index_of(queue, list->last))->next = low;
    list->last = low;
    turn_notes_wait(e, note->turn, note->span);
}

void notes_list(struct engine *e, uint32_t peer)
{
    e->peer_live[peer].unlisted = false;
    for (int i = 0; i < NOTES_QUEUES; i++) {
        const struct queue *queue = &e->peers[peer].notes[i].queue;
        uint64_t *listed = &e->peer_live[peer].listed[i];

        while (*listed < queue->tail) {
            const struct note *note = note_at(e, queue, *listed);

            if (note->state == NOTE_WAITS)
                note_list(e, peer, i, *listed);
            *listed += note->span;
        }
    }
}

void notes_resume(struct engine *e, uint32_t peer)
{
    e->peer_live[peer].unlisted = true;
    for (int i = 0; i < NOTES_QUEUES; i++)
        e->peer_live[peer].listed[i] = e->peers[peer].notes[i].staged;
}

/* Stages the first note of its turn's list, and charges it. False: there is no room. */
static bool stage(struct engine *e, uint32_t peer, enum notes_queue which, uint64_t index,
                  enum ledger_share share)
{
    struct notes *notes = &e->peers[peer].notes[which];
    struct note *note = note_at(e, &notes->queue, index);
    struct ledger_mark mark = {.flow = NONE, .epoch = which, .slot = index, .nonce = NONE};
    uint64_t begun = e->peers[peer].tx_tail;
    struct wire_record *to = ledger_stage(e, peer, note->kind, note->words * 8u, share, &mark);
    struct turn *turn = &e->turns[note->turn];

    if (!to)
        return false;
    notes_body(e, &notes->queue, index, to + 1);
    set8(e, &note->state, NOTE_STAGED);
    if (index == notes->staged) {
        do
            index += note_at(e, &notes->queue, index)->span;
        while (index < notes->queue.tail && note_at(e, &notes->queue, index)->state != NOTE_WAITS);
        set64(e, &notes->staged, index);
    }
    commit(e);
    turn->waiting[which].first = note->next;
    turn->left -= (int64_t)(e->peers[peer].tx_tail - begun);
    turn_notes_leave(e, note->turn, note->span);
    return true;
}

int notes_stage(struct engine *e, struct turn *turn, enum notes_queue which, int *work)
{
    const struct queue *queue = &e->peers[turn->peer].notes[which].queue;
    struct ready_list *list = &turn->waiting[which];

    while (turn->left > 0 && list->first != NONE) {
        if (!stage(e, turn->peer, which, index_of(queue, list->first), LEDGER_OPERATION))
            return -ENOSPC;
        ++*work;
    }
    return 0;
}

int notes_pass(struct engine *e, uint32_t peer)
{
    const struct notes *notes = &e->peers[peer].notes[NOTES_VERDICTS];
    int passed = 0;

    /* The oldest waiting note is the first of its turn. */
    while (notes->staged < e->peer_live[peer].listed[NOTES_VERDICTS]) {
        uint32_t bytes = note_at(e, &notes->queue, notes->staged)->words * 8u;
        uint64_t begun = e->peers[peer].tx_tail;

        if (!ledger_may_pass(e, peer, bytes) ||
            !stage(e, peer, NOTES_VERDICTS, notes->staged, LEDGER_VERDICT))
            break;
        e->peer_live[peer].out.pass -= (uint32_t)(e->peers[peer].tx_tail - begun);
        passed++;
    }
    return passed;
}

/* ---- their end ------------------------------------------------------------------------------- */

/* Drops acknowledged notes from the queue's head, in transactions of its own. */
static void notes_pop(struct engine *e, struct queue *queue)
{
    while (queue_count(queue) > 0 && note_at(e, queue, queue->head)->state == NOTE_DONE) {
        queue_pop(&e->pool, queue, note_at(e, queue, queue->head)->span);
        commit(e);
    }
}

void notes_acknowledged(struct engine *e, uint32_t peer, uint32_t which, uint64_t slot)
{
    struct queue *queue = &e->peers[peer].notes[which].queue;
    struct note *note = note_at(e, queue, slot);
    bool close = note->kind == WIRE_CLOSE;
    bool answer = note->kind == WIRE_BOUND || note->kind == WIRE_REVOKED;
    uint32_t flow = NONE;

    if (close) /* the record has our own number of the flow as its sequence */
        memcpy(&flow, note->body + BODY_OF(struct wire_flow, sequence), sizeof(flow));
    if (slot == queue->head)
        queue_pop(&e->pool, queue, note->span);
    else
        set8(e, &note->state, NOTE_DONE);
    if (answer)
        set32(e, &e->peers[peer].answers_owed, e->peers[peer].answers_owed - 1);
    if (close && flow < e->config.flows_max && e->flows[flow].state == FLOW_CLOSED)
        flow_free(e, flow);
    commit(e);
    notes_pop(e, queue);
}

void notes_rewind(struct engine *e, uint32_t peer, uint32_t which, uint64_t slot)
{
    struct notes *notes = &e->peers[peer].notes[which];

    set8(e, &note_at(e, &notes->queue, slot)->state, NOTE_WAITS);
    if (slot < notes->staged)
        set64(e, &notes->staged, slot);
}

void notes_clear(struct engine *e, uint32_t peer)
{
    set32(e, &e->peers[peer].answers_owed, 0);
    commit(e);
    for (uint32_t i = 0; i < NOTES_QUEUES; i++) {
        struct notes *notes = &e->peers[peer].notes[i];

        queue_clear(&e->pool, &notes->queue);
        set64(e, &notes->staged, notes->queue.head);
        commit(e);
    }
}

void notes_inherit(struct engine *e, uint32_t peer)
{
    struct queue *queue = &e->peers[peer].notes[NOTES_OTHERS].queue;

    for (int i = 0; i < NOTES_QUEUES; i++)
        notes_pop(e, &e->peers[peer].notes[i].queue);
    for (uint64_t i = queue->head; i < queue->tail; i += note_at(e, queue, i)->span) {
        struct note *note = note_at(e, queue, i);
        int32_t *status = (void *)(note->body + BODY_OF(struct wire_bound, status));

        if (note->kind == WIRE_BOUND && *status == 0)
            *status = -EAGAIN;
    }
}
