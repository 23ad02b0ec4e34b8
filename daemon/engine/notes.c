/* Control records waiting for a peer. Thread: the progress thread. */
#include "notes.h"

#include <string.h>
#include "flow.h"
#include "ledger.h"
#include "peer.h"

int notes_push(struct engine *e, uint32_t node, const void *record, uint32_t size)
{
    struct peer *p = &e->peers[node];
    uint8_t kind = ((const struct wire_record *)record)->kind;
    struct queue *queue =
        &p->notes[kind == WIRE_FAIL || kind == WIRE_REFUSE ? NOTE_ANSWER : NOTE_CONTROL].queue;
    struct note *to;

    if (queue_push(&e->pool, queue, 1, 0) < 0)
        return -ENOBUFS;
    to = queue_at(&e->pool, queue, queue->tail - 1);
    memcpy(to->record, record, size);
    ((struct wire_record *)to->record)->words = (uint16_t)(size / 8);
    to->cause = p->rx_consumed;
    peer_want(e, node);
    peer_activate(e, node);
    return 0;
}

int notes_push_flow(struct engine *e, uint32_t node, uint8_t kind, uint32_t flow, uint32_t sequence,
                    int32_t status)
{
    struct wire_flow record = {
        .head.kind = kind, .flow = flow, .sequence = sequence, .status = status};

    return notes_push(e, node, &record, sizeof(record));
}

uint64_t notes_unanswered(const struct engine *e, uint32_t node)
{
    const struct peer *p = &e->peers[node];
    const struct note_queue *answers = &p->notes[NOTE_ANSWER];
    const struct note *oldest;

    if (answers->staged == answers->queue.tail)
        return p->rx_consumed;
    oldest = queue_at(&e->pool, &answers->queue, answers->staged);
    return oldest->cause;
}

bool notes_waiting(const struct engine *e, uint32_t node)
{
    const struct note_queue *notes = e->peers[node].notes;

    return notes[NOTE_ANSWER].staged < notes[NOTE_ANSWER].queue.tail ||
           notes[NOTE_CONTROL].staged < notes[NOTE_CONTROL].queue.tail;
}

bool notes_kept(const struct engine *e, uint32_t node)
{
    const struct note_queue *notes = e->peers[node].notes;

    return queue_count(&notes[NOTE_ANSWER].queue) > 0 ||
           queue_count(&notes[NOTE_CONTROL].queue) > 0;
}

static int stage_queue(struct engine *e, uint32_t node, enum note_kind kind)
{
    struct note_queue *notes = &e->peers[node].notes[kind];
    int staged = 0;

    while (notes->staged < notes->queue.tail) {
        const struct wire_record *note = queue_at(&e->pool, &notes->queue, notes->staged);
        uint32_t size = note->words * 8u;
        struct ledger_mark mark = {
            .flow = NONE, .epoch = kind, .slot = notes->staged, .nonce = NONE};
        uint8_t *to = ledger_stage(e, node, note->kind, size,
                                   kind == NOTE_ANSWER ? LEDGER_ANSWER : LEDGER_NOTE, &mark);

        if (!to)
            return staged;
        memcpy(to + sizeof(*note), note + 1, size - sizeof(*note));
        set64(e, &notes->staged, notes->staged + 1);
        commit(e);
        staged++;
    }
    return staged;
}

int notes_stage(struct engine *e, uint32_t node)
{
    int staged = stage_queue(e, node, NOTE_ANSWER);

    return staged + stage_queue(e, node, NOTE_CONTROL);
}

void notes_acknowledged(struct engine *e, uint32_t node, uint32_t kind)
{
    struct queue *queue = &e->peers[node].notes[kind].queue;
    const struct wire_flow *note = queue_at(&e->pool, queue, queue->head);
    bool close = note->head.kind == WIRE_CLOSE;
    /* CLOSE carries our own number of the flow as its sequence. */
    uint32_t flow = close ? note->sequence : NONE;

    queue_pop(&e->pool, queue, 1);
    if (close && flow < e->config.flows_max && e->flows[flow].state == FLOW_CLOSED)
        set32(e, &e->flows[flow].state, FLOW_FREE);
    commit(e);
}

void notes_discard(struct engine *e, uint32_t node)
{
    for (int i = 0; i < NOTE_QUEUES; i++) {
        struct note_queue *notes = &e->peers[node].notes[i];

        queue_clear(&e->pool, &notes->queue);
        set64(e, &notes->staged, notes->queue.head);
        commit(e);
    }
}

void notes_inherit(struct engine *e, uint32_t node)
{
    struct queue *notes = &e->peers[node].notes[NOTE_CONTROL].queue; /* where BOUND stands */

    for (uint64_t i = notes->head; i < notes->tail; i++) {
        struct wire_bound *w = queue_at(&e->pool, notes, i);

        if (w->head.kind == WIRE_BOUND && w->status == 0)
            w->status = -EAGAIN;
    }
}
