/* Control records waiting for a peer. Thread: the progress thread. */
#include "daemon/engine/ledger/notes.h"

#include <string.h>
#include "shm_ring/fault.h"
#include "daemon/engine/ops/flow.h"
#include "daemon/engine/ledger/ledger.h"
#include "daemon/engine/peer/marks.h"
#include "daemon/engine/peer/remote.h"

int notes_push(struct engine *e, uint32_t peer, const void *record, uint32_t size)
{
    struct peer *p = &e->peers[peer];
    uint8_t kind = ((const struct wire_record *)record)->kind;
    bool verdict = kind == WIRE_FAIL || kind == WIRE_REFUSE;
    struct queue *queue = &p->notes[verdict ? NOTES_VERDICTS : NOTES_OTHERS].queue;
    struct note *to;

    if (FAULT(NOTE_ROOM) < 0 || queue_push(&e->pool, queue, 1, 0) < 0)
        return -ENOBUFS;
    to = queue_at(&e->pool, queue, queue->tail - 1);
    memcpy(to->record, record, size);
    ((struct wire_record *)to->record)->words = (uint16_t)(size / 8);
    to->cause = p->rx_consumed;
    peer_want(e, peer);
    peer_activate(e, peer);
    return 0;
}

bool notes_pending(const struct engine *e, uint32_t peer)
{
    const struct peer *p = &e->peers[peer];

    return queue_count(&p->notes[NOTES_VERDICTS].queue) > 0 ||
           queue_count(&p->notes[NOTES_OTHERS].queue) > 0;
}

bool notes_waiting(const struct engine *e, uint32_t peer)
{
    const struct peer *p = &e->peers[peer];

    return p->notes[NOTES_VERDICTS].staged < p->notes[NOTES_VERDICTS].queue.tail ||
           p->notes[NOTES_OTHERS].staged < p->notes[NOTES_OTHERS].queue.tail;
}

int notes_push_flow(struct engine *e, uint32_t peer, uint8_t kind, uint32_t flow, uint32_t sequence,
                    int32_t status)
{
    struct wire_flow record = {
        .head.kind = kind, .flow = flow, .sequence = sequence, .status = status};

    return notes_push(e, peer, &record, sizeof(record));
}

uint64_t notes_unanswered(const struct engine *e, uint32_t peer)
{
    const struct peer *p = &e->peers[peer];
    const struct notes *verdicts = &p->notes[NOTES_VERDICTS];
    const struct note *oldest;

    if (verdicts->staged == verdicts->queue.tail)
        return p->rx_consumed;
    oldest = queue_at(&e->pool, &verdicts->queue, verdicts->staged);
    return oldest->cause;
}

/* The number staged; *full when one found no room. */
static int stage(struct engine *e, uint32_t peer, enum notes_queue which, bool *full)
{
    struct notes *notes = &e->peers[peer].notes[which];
    enum ledger_share share = which == NOTES_VERDICTS ? LEDGER_VERDICT : LEDGER_NOTE;
    int staged = 0;

    while (notes->staged < notes->queue.tail) {
        const struct wire_record *note = queue_at(&e->pool, &notes->queue, notes->staged);
        uint32_t size = note->words * 8u;
        struct ledger_mark mark = {
            .flow = NONE, .epoch = which, .slot = notes->staged, .nonce = NONE};
        uint8_t *to = ledger_stage(e, peer, note->kind, size, share, &mark);

        *full = !to;
        if (!to)
            return staged;
        memcpy(to + sizeof(*note), note + 1, size - sizeof(*note));
        set64(e, &notes->staged, notes->staged + 1);
        commit(e);
        staged++;
    }
    return staged;
}

int notes_stage(struct engine *e, uint32_t peer)
{
    bool full = false;
    int staged = stage(e, peer, NOTES_VERDICTS, &full);

    /* A GO that follows a REFUSE does not come before it. */
    return full ? staged : staged + stage(e, peer, NOTES_OTHERS, &full);
}

void notes_acknowledged(struct engine *e, uint32_t peer, uint32_t which)
{
    struct queue *queue = &e->peers[peer].notes[which].queue;
    const struct wire_flow *note = queue_at(&e->pool, queue, queue->head);
    bool close = note->head.kind == WIRE_CLOSE;
    bool bound = note->head.kind == WIRE_BOUND;
    /* CLOSE carries our own number of the flow as its sequence. */
    uint32_t flow = close ? note->sequence : NONE;

    queue_pop(&e->pool, queue, 1);
    if (bound)
        set32(e, &e->peers[peer].bound_owed, e->peers[peer].bound_owed - 1);
    if (close && flow < e->config.flows_max && e->flows[flow].state == FLOW_CLOSED)
        flow_free(e, flow);
    commit(e);
}

void notes_rewind(struct engine *e, uint32_t peer, uint32_t which, uint64_t slot)
{
    struct notes *notes = &e->peers[peer].notes[which];

    if (slot < notes->staged)
        set64(e, &notes->staged, slot);
}

void notes_clear(struct engine *e, uint32_t peer)
{
    set32(e, &e->peers[peer].bound_owed, 0);
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

    for (uint64_t i = queue->head; i < queue->tail; i++) {
        struct wire_bound *w = queue_at(&e->pool, queue, i);

        if (w->head.kind == WIRE_BOUND && w->status == 0)
            w->status = -EAGAIN;
    }
}
