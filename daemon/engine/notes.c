/* Control records waiting for a peer. Thread: the progress thread. */
#include "notes.h"

#include <string.h>
#include "flow.h"
#include "ledger.h"
#include "peer.h"

int notes_push(struct engine *e, uint32_t node, const void *record, uint32_t size)
{
    struct peer *p = &e->peers[node];
    struct note *to;

    if (queue_push(&e->pool, &p->notes, 1, 0) < 0)
        return -ENOBUFS;
    to = queue_at(&e->pool, &p->notes, p->notes.tail - 1);
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
    const struct note *oldest;

    if (p->notes_staged == p->notes.tail)
        return p->rx_consumed;
    oldest = queue_at(&e->pool, &p->notes, p->notes_staged);
    return oldest->cause;
}

int notes_stage(struct engine *e, uint32_t node)
{
    struct peer *p = &e->peers[node];
    int staged = 0;

    while (p->notes_staged < p->notes.tail) {
        const struct wire_record *note = queue_at(&e->pool, &p->notes, p->notes_staged);
        uint32_t size = note->words * 8u;
        struct ledger_mark mark = {.flow = NONE, .slot = p->notes_staged, .nonce = NONE};
        uint8_t *to = ledger_stage(e, node, note->kind, size, LEDGER_NOTE, &mark);

        if (!to)
            return staged;
        memcpy(to + sizeof(*note), note + 1, size - sizeof(*note));
        set64(e, &p->notes_staged, p->notes_staged + 1);
        commit(e);
        staged++;
    }
    return staged;
}

void notes_acknowledged(struct engine *e, uint32_t node)
{
    struct peer *p = &e->peers[node];
    const struct wire_flow *note = queue_at(&e->pool, &p->notes, p->notes.head);
    bool close = note->head.kind == WIRE_CLOSE;
    /* CLOSE carries our own number of the flow as its sequence. */
    uint32_t flow = close ? note->sequence : NONE;

    queue_pop(&e->pool, &p->notes, 1);
    if (close && flow < e->config.flows_max && e->flows[flow].state == FLOW_CLOSED)
        set32(e, &e->flows[flow].state, FLOW_FREE);
    commit(e);
}

void notes_inherit(struct engine *e, uint32_t node)
{
    struct queue *notes = &e->peers[node].notes;

    for (uint64_t i = notes->head; i < notes->tail; i++) {
        struct wire_bound *w = queue_at(&e->pool, notes, i);

        if (w->head.kind == WIRE_BOUND && w->status == 0)
            w->status = -EAGAIN;
    }
}
