/* Batches: gathers the small puts that go together from a session's ring, and queues them as one
 * operation (op_batch.c). Thread: the progress thread. */
#include "daemon/engine/session/session_batch.h"

#include <string.h>
#include "daemon/engine/ops/flow.h"
#include "daemon/engine/ops/op.h"
#include "daemon/engine/kinds/batch_format.h"
#include "daemon/engine/session/quota.h"
#include "daemon/engine/session/session.h"
#include "daemon/engine/watch/steps.h"

/* The puts collected so far; their number is known only at the end of the batch. */
struct gathering {
    uint32_t count, bytes;
    uint32_t count_most; /* by budget, quota and event space */
    uint32_t bytes_most; /* puts and payloads: a record may be no longer than a ledger allows */
    uint32_t room;       /* for puts, payloads and lids */
    uint64_t payload;
    uint64_t lids[BATCH_PUTS_MAX];
    uint64_t block[BATCH_BYTES_MAX / 8];
};

/* Whether the operation may share a batch with others like it. Its other fields have been checked,
 * or batch_joins checks them. */
static bool batchable(const struct submit_record *r)
{
    const struct op_kind *kind = op_kind_of(r->kind);

    return kind && kind->batch != 0 &&
           (r->flags & ~(SUBMIT_NO_LCE | SUBMIT_NO_RCE | SUBMIT_NOTIFY | SUBMIT_SLOT |
                         kind->batch_flags)) == SUBMIT_INLINE &&
           r->lid_len == 0 && r->rid_len == 0 && r->length - 1 < BATCH_PAYLOAD_MAX &&
           r->offset >> BATCH_OFFSET_BITS == 0 && (!kind->batchable || kind->batchable(r));
}

bool batch_may_begin(const struct ring_consumer *ring, const struct submit_record *first)
{
    return ring->tail_seen - ring->head > first->size && batchable(first);
}

/* Whether the put fits one packet, if its region takes packets. */
static bool fits_packet(const struct submit_record *r, const struct remote *remote)
{
    return remote->packet == 0 || r->length <= remote->packet;
}

/* Whether the next put is like the first, and would pass the checks of a single put. */
static bool batch_joins(const struct submit_record *r, uint32_t size,
                        const struct submit_record *first, const struct remote *remote)
{
    return size >= sizeof(*r) && batchable(r) && r->kind == first->kind && r->code == first->code &&
           r->flags == first->flags && r->remote == first->remote && r->reserve == event_bytes(0) &&
           size == sizeof(*r) + abi_pad8((uint32_t)r->length) && r->offset <= remote->length &&
           r->length <= remote->length - r->offset && fits_packet(r, remote);
}

/* Whether there is room for one more put, with a payload of that many bytes, padded. */
static inline bool fits(const struct gathering *g, uint32_t payload)
{
    uint32_t bytes = g->bytes + (uint32_t)sizeof(struct wire_batch_put) + payload;

    return g->count < g->count_most && bytes <= g->bytes_most &&
           bytes + 8 * (g->count + 1) <= g->room;
}

/* Adds a put. Returns the place at which the caller fills in the payload. */
static inline uint64_t *add(struct gathering *g, uint64_t lid, uint64_t rid, uint64_t offset,
                            uint32_t length)
{
    uint64_t *at = g->block + g->bytes / 8;
    const struct wire_batch_put put = {.rid = rid, .place = offset << BATCH_LENGTH_BITS | length};

    memcpy(at, &put, sizeof(put));
    g->lids[g->count++] = lid;
    g->bytes += (uint32_t)sizeof(put) + abi_pad8(length);
    return at + sizeof(put) / 8;
}

static bool gather(struct gathering *g, const struct submit_record *r)
{
    uint32_t length = (uint32_t)r->length, payload = abi_pad8(length);

    if (!fits(g, payload))
        return false;
    batch_copy(add(g, r->lid, r->rid, r->offset, length), r + 1, payload);
    g->payload += length;
    return true;
}

/* Entries of the flow's queue that the batch takes, the first included. */
static uint32_t gathered_span(const struct gathering *g)
{
    return 1 + (g->bytes + 8 * g->count + (uint32_t)sizeof(struct op) - 1) / sizeof(struct op);
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Contiguous bytes of entries after the tail. */
static uint32_t chunk_left(const struct flow *f)
{
    uint32_t entries = CHUNK_BYTES / sizeof(struct op);

    return (entries - (uint32_t)(f->ops.tail & (entries - 1))) * (uint32_t)sizeof(struct op);
}

/* Gathers the next records straight from the ring, while they differ from the first only in offset,
 * ids and payload; other records are left to batch_joins. Compiled once for each value of
 * `aligned`: whether offsets must be multiples of the length. */
static inline __attribute__((always_inline)) void
gather_alike(struct gathering *g, struct ring_consumer *ring, const struct submit_record *first,
             const struct remote *remote, bool aligned)
{
    enum { HEAD, REMOTE, OFFSET, LENGTH, LID, RID, IDS, PAYLOAD = 8 }; /* words of a record */
    const uint64_t offset_most = UINT64_MAX >> (64 - BATCH_OFFSET_BITS);
    const uint32_t size = first->size, length = (uint32_t)first->length, before = g->count;
    const uint32_t payload = abi_pad8(length);
    uint64_t last_offset = remote->length - first->length;
    const _Atomic uint64_t *record;
    uint64_t left = ring_piece(ring, &record), like[IDS + 1];

    static_assert(offsetof(struct submit_record, rid) == 8 * RID &&
                      offsetof(struct submit_record, lid_len) == 8 * IDS &&
                      sizeof(*first) == 8 * PAYLOAD,
                  "the words of a submit_record");
    memcpy(like, first, sizeof(like));
    if (last_offset > offset_most)
        last_offset = offset_most;
    for (; left >= size && fits(g, payload); left -= size, record += size / 8) {
        uint64_t offset = ring_word(record, OFFSET), *to;

        if (ring_word(record, HEAD) != like[HEAD] || ring_word(record, REMOTE) != like[REMOTE] ||
            ring_word(record, LENGTH) != like[LENGTH] || ring_word(record, IDS) != like[IDS] ||
            offset > last_offset || (aligned && offset & (length - 1)))
            break;
        to = add(g, ring_word(record, LID), ring_word(record, RID), offset, length);
        for (uint32_t i = 0; i < payload / 8; i++)
            to[i] = ring_word(record, PAYLOAD + i);
    }
    g->payload += (uint64_t)(g->count - before) * length;
    ring_consume(ring, (g->count - before) * size);
}

/* Takes records from the ring while they belong together, and moves the ring's head after them. */
static void gather_all(struct engine *e, struct ring_consumer *ring, struct gathering *g,
                       const struct submit_record *first, const struct remote *remote)
{
    bool aligned = op_kind_of(first->kind)->batchable;
    const struct submit_record *r = first;
    uint32_t size = first->size;

    while (gather(g, r)) {
        ring_consume(ring, size);
        if (aligned)
            gather_alike(g, ring, first, remote, true);
        else
            gather_alike(g, ring, first, remote, false);
        if (ring->tail_seen == ring->head ||
            ring_copy(ring, e->next_record, e->record_max, &size) != 1)
            break;
        r = (const struct submit_record *)e->next_record;
        if (!batch_joins(r, size, first, remote))
            break;
    }
}

static void batch_push(struct engine *e, uint32_t session, uint32_t flow,
                       const struct submit_record *first, const struct gathering *g)
{
    struct session *s = &e->sessions[session];
    struct session_live *live = &e->session_live[session];
    struct flow *f = &e->flows[flow];
    struct op *op = flow_op(e, f, f->ops.tail - gathered_span(g));
    const struct op_kind *kind = op_kind_of(first->kind);
    uint32_t reserve = g->count * first->reserve;

    *op = (struct op){
        .kind = OP_BATCH,
        .phase = OP_QUEUED,
        .flags = first->flags,
        .code = first->code,
        .remote = first->remote,
        .span = (uint16_t)gathered_span(g),
        .length = (uint32_t)g->payload,
        .batch = {.count = g->count,
                  .bytes = (uint16_t)g->bytes,
                  .kind = first->kind,
                  .record = kind->batch},
        .reserve = reserve,
        .nonce = UINT16_MAX,
        .submitted_at = e->now,
    };
    memcpy(op + 1, g->block, g->bytes);
    memcpy((uint8_t *)(op + 1) + g->bytes, g->lids, 8 * g->count);
    set64(e, &s->submit_head, live->submit.head);
    set64(e, &s->reserved, s->reserved + reserve);
    set64(e, &s->submitted, s->submitted + g->count);
    commit(e);
    step_submitted(e, flow, f->ops.tail - op->span, op);
    live->ops[kind->counter] += g->count;
    live->bytes[kind->counter] += g->payload;
    flow_ready(e, flow);
    session_took(e, session);
}

int batch_take(struct engine *e, uint32_t session, const struct submit_record *first,
               uint64_t space, int budget)
{
    struct session *s = &e->sessions[session];
    struct ring_consumer *ring = &e->session_live[session].submit;
    const struct remote *remote = &e->remotes[first->remote];
    struct flow *f = &e->flows[remote->flow];
    uint64_t head = ring->head, flying = s->submitted - s->ended;
    uint64_t left =
        flying < e->config.ops_max ? e->config.ops_max - flying : 0; /* replies count, too */
    uint32_t span;
    struct gathering g;

    if (f->state == FLOW_DEAD || !fits_packet(first, remote))
        return 0;
    g.room = chunk_left(f) - (uint32_t)sizeof(struct op);
    g.bytes_most = SESSION_ID_MAX + e->config.packed_max;
    if (g.bytes_most > sizeof(g.block))
        g.bytes_most = sizeof(g.block);
    g.count = g.bytes = 0;
    g.payload = 0;
    g.count_most =
        least(least(BATCH_PUTS_MAX, (uint64_t)budget), least(left, space / event_bytes(0)));
    gather_all(e, ring, &g, first, remote);
    span = gathered_span(&g);
    if (g.count < 2 || quota_push(e, session, &f->ops, span) < 0) {
        ring->head = head;
        return 0;
    }
    batch_push(e, session, remote->flow, first, &g);
    return (int)g.count;
}
