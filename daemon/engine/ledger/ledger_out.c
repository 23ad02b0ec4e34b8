/* The outbound ledger: staging, runs, credit, acknowledgement, rewind.
 * Thread: the progress thread. */
#include "daemon/engine/ledger/ledger.h"

#include <string.h>
#include "shm_ring/fault.h"
#include "daemon/engine/ops/flow.h"
#include "daemon/engine/peer/marks.h"
#include "daemon/engine/watch/steps.h"

/* The most runs outstanding without an ACK. The rest of the window is kept for runs with an ACK, or
 * two full windows would wait for each other. So no more records are staged before an ACK than may
 * leave (waits_for_runs), and an ACK uses the kept runs only when it covers much
 * (ledger_stage_ack). */
#define RUNS_WITHOUT_ACK (RUN_WINDOW - 16u)

static_assert(sizeof(struct wire_strided) >= sizeof(struct wire_packet) &&
                  sizeof(struct wire_strided) >=
                      sizeof(struct wire_vector) + sizeof(struct vector_piece),
              "no record of an operation has a longer fixed part");

uint32_t record_longest(const struct engine_config *c)
{
    uint32_t payload = abi_pad8(c->packed_max);

    if (payload < packet_longest(c))
        payload = packet_longest(c);
    return (uint32_t)sizeof(struct wire_strided) + SESSION_ID_MAX + payload;
}

bool ledger_fits(const struct engine_config *c, uint32_t bytes)
{
    return bytes >= 4096 && (bytes & (bytes - 1)) == 0 && bytes <= c->ledger_max &&
           bytes - ledger_kept(bytes) >= 2 * record_longest(c);
}

static struct sent *sent_at(const struct engine *e, const struct peer *p, uint64_t index)
{
    return queue_entry(&e->pool, &p->sent, SENT_SHIFT, index);
}

static uint64_t credit_floor(const struct peer *p, const struct ledger_out *out)
{
    uint64_t floor = p->tx_acked < out->completed ? p->tx_acked : out->completed;

    return floor > out->base ? floor : out->base;
}

uint64_t ledger_credit(const struct engine *e, uint32_t peer)
{
    const struct peer *p = &e->peers[peer];
    const struct ledger_out *out = &e->peer_live[peer].out;
    uint64_t used = p->tx_tail - credit_floor(p, out);
    uint64_t limit = out->size - ledger_kept(out->size);

    return out->staging && used < limit ? limit - used : 0;
}

uint32_t ledger_record_most(const struct engine *e, uint32_t peer)
{
    uint32_t size = e->peer_live[peer].out.size, most = (size - ledger_kept(size)) / 2;

    if (e->ordered_max > 0 && e->ordered_max < most)
        most = (uint32_t)e->ordered_max;
    return (most < LEDGER_RECORD_MAX ? most : LEDGER_RECORD_MAX) & ~7u;
}

/* Whether `bytes` more must not be staged yet: where runs are cut, waiting records may need more
 * runs than the window has. Two runs in a row have more than ordered_max bytes together. */
static bool waits_for_runs(const struct engine *e, const struct peer *p,
                           const struct ledger_out *out, uint64_t bytes)
{
    uint16_t outstanding = (uint16_t)(out->run - out->run_acked);
    uint64_t room = outstanding < RUNS_WITHOUT_ACK ? RUNS_WITHOUT_ACK - outstanding : 1;

    return e->ordered_max > 0 && p->tx_tail + bytes - out->sent > room * (e->ordered_max / 2);
}

/* Whether a record of `size` bytes may be staged now; its place is `*offset`, after `*pad` bytes.
 */
static inline bool has_room(const struct engine *e, const struct peer *p,
                            const struct ledger_out *out, uint32_t size, enum ledger_share share,
                            uint32_t *offset, uint32_t *pad)
{
    uint32_t kept = share == LEDGER_OPERATION ? ledger_kept(out->size)
                    : share == LEDGER_NOTE    ? out->size / 32 + LEDGER_ACK_BYTES
                    : share == LEDGER_VERDICT ? LEDGER_ACK_BYTES
                                              : 0;

    *offset = (uint32_t)(p->tx_tail - out->base) & (out->size - 1);
    *pad = out->size - *offset < size ? out->size - *offset : 0;
    if (p->tx_tail - credit_floor(p, out) + *pad + size > out->size - kept || out->switching)
        return false;
    return (share != LEDGER_OPERATION && share != LEDGER_NOTE) ||
           !waits_for_runs(e, p, out, *pad + size);
}

void *ledger_place(struct engine *e, uint32_t peer, uint32_t size, enum ledger_share share)
{
    const struct ledger_out *out = &e->peer_live[peer].out;
    uint32_t offset, pad;

    if (!has_room(e, &e->peers[peer], out, size, share, &offset, &pad))
        return NULL;
    return out->staging + (pad > 0 ? 0 : offset);
}

void *ledger_stage(struct engine *e, uint32_t peer, uint8_t kind, uint32_t size,
                   enum ledger_share share, const struct ledger_mark *mark)
{
    struct peer *p = &e->peers[peer];
    struct ledger_out *out = &e->peer_live[peer].out;
    struct wire_record *head;
    uint32_t offset, pad;

    if (!has_room(e, p, out, size, share, &offset, &pad))
        return NULL;
    if (mark) {
        struct sent *sent;

        if (queue_push(&e->pool, &p->sent, 1, 0) < 0)
            return NULL;
        sent = sent_at(e, p, p->sent.tail - 1);
        *sent = (struct sent){.end = p->tx_tail + pad + size,
                              .slot = mark->slot,
                              .flow = mark->flow,
                              .epoch = mark->epoch,
                              .nonce = mark->nonce,
                              .part = mark->part};
    }
    if (pad > 0) {
        head = (struct wire_record *)(out->staging + offset);
        *head = (struct wire_record){.words = (uint16_t)(pad / 8), .kind = WIRE_PAD};
        offset = 0;
    }
    set64(e, &p->tx_tail, p->tx_tail + pad + size);
    if (share == LEDGER_OPERATION && mark->flow != NONE)
        out->operations = p->tx_tail;
    if (kind == WIRE_BATCH || kind == WIRE_ATOMICS)
        out->batches = true;
    else if (kind != WIRE_PUT && kind != WIRE_ATOMIC)
        out->prompt = true;
    out->last = offset;
    head = (struct wire_record *)(out->staging + offset);
    *head = (struct wire_record){.words = (uint16_t)(size / 8), .kind = kind};
    e->peer_live[peer].records_out++;
    return head;
}

bool ledger_acked_soon(struct engine *e, uint32_t peer, bool asked)
{
    const struct ledger_out *out = &e->peer_live[peer].out;
    struct wire_record *last = (struct wire_record *)(out->staging + out->last);

    if ((last->kind != WIRE_VECTOR && last->kind != WIRE_STRIDED) || !(last->flags & WIRE_PART))
        return true;
    if (asked)
        last->flags |= WIRE_SOON;
    return asked;
}

/*
 * Verdicts may pass a record that waits for room: operations of both sides may wait for each
 * other's acknowledgements, and these for verdicts. Verdicts may take what is kept for them, and
 * three of every four bytes that the peer gives back; the fourth is for the record that waits. The
 * two sides cannot both run out of room, because a verdict gives the peer back more than 4/3 of its
 * own bytes.
 */
bool ledger_may_pass(struct engine *e, uint32_t peer, uint32_t bytes)
{
    struct ledger_out *out = &e->peer_live[peer].out;
    uint64_t at = credit_floor(&e->peers[peer], out),
             most = ledger_kept(out->size) - LEDGER_ACK_BYTES;
    uint64_t pass = out->pass + (at - out->pass_at) / 4 * 3;
    uint32_t offset = (uint32_t)(e->peers[peer].tx_tail - out->base) & (out->size - 1);
    uint32_t pad = out->size - offset < bytes ? out->size - offset : 0;

    static_assert(sizeof(struct wire_flow) * 4 <= sizeof(struct wire_op) * 3, "verdict, record");
    static_assert((sizeof(struct wire_flow) + 48) * 4 <= (sizeof(struct wire_put) + 48) * 3 &&
                      (sizeof(struct wire_flow) + 8 * SUBMIT_FETCH_MAX) * 4 <=
                          (sizeof(struct wire_put) + 8 * SUBMIT_FETCH_MAX + 32) * 3,
                  "RESULT, ATOMIC with its wire_fetch_pad");
    static_assert((sizeof(struct wire_flow) + 8) * 4 <=
                      (sizeof(struct wire_batch) + sizeof(struct wire_batch_put) + 8) * 3,
                  "RESULT, ATOMICS");
    out->pass = (uint32_t)(pass < most ? pass : most);
    out->pass_at = at;
    return pad + bytes <= out->pass;
}

/* The receiver keeps one bit for each of RUN_WINDOW runs that it has not consumed. Runs in a ring
 * that was left for a larger one count too. */
static bool run_window_open(const struct ledger_out *out)
{
    uint16_t unwritten = (uint16_t)(out->run - out->run_done);
    uint16_t outstanding = (uint16_t)(out->run - out->run_acked);

    return unwritten < RUN_WINDOW && outstanding < (out->urgent ? RUN_WINDOW : RUNS_WITHOUT_ACK);
}

bool ledger_runs_free(const struct engine *e, uint32_t peer)
{
    const struct ledger_out *out = &e->peer_live[peer].out;

    return (uint16_t)(out->run - out->run_acked) < RUNS_WITHOUT_ACK;
}

/* Where writes keep their order only up to some length, a run is cut between two records. */
static uint64_t run_cut(const struct engine *e, const uint8_t *first, uint64_t length)
{
    uint64_t cut = 0;

    if (e->ordered_max == 0 || length <= e->ordered_max)
        return length;
    for (;;) {
        uint64_t size = ((const struct wire_record *)(first + cut))->words * UINT64_C(8);

        if (cut + size > e->ordered_max)
            return cut;
        cut += size;
    }
}

/*
 * A run costs both sides the same, however short it is. A client that keeps few operations in
 * flight, and submits more whenever some have ended, soon has two runs or more under way, each with
 * a part of its operations. So a short run with a batch waits for the ACK of what is under way, and
 * for one more step, because the client continues when it sees the events:
 *
 *     step      the client     the ledger
 *     1         submits 16     48 under way: 16 are staged, and wait
 *     2                        the ACK of the 48; their events
 *     3         submits 48     a run of 64
 *
 * After that all of its operations travel together, and nothing waits. Where a client continues
 * later, on another processor, waiting gains nothing, and is soon not tried any more.
 */
#define TOGETHER_BYTES 4096u /* bytes not acknowledged, all together */
#define PATIENCE_MOST  4u
#define PATIENCE_RUNS  64u /* every so many runs, patience for one more wait is gained */

bool ledger_batches_wait(const struct engine *e, uint32_t peer)
{
    const struct peer *p = &e->peers[peer];
    const struct ledger_out *out = &e->peer_live[peer].out;
    bool under_way = p->tx_acked < out->operations_sent;

    return out->sent != p->tx_tail && (under_way || out->acked_in == e->steps) && !e->hasten &&
           p->tx_tail - p->tx_acked <= TOGETHER_BYTES && (out->waits || out->patience > 0);
}

/* The staged records begin to wait, or continue to wait. */
static void wait_on(struct engine *e, uint32_t peer)
{
    struct ledger_out *out = &e->peer_live[peer].out;

    if (!out->waits)
        out->patience--;
    out->waits = true;
    if (out->acked_in == e->steps)
        peer_activate(e, peer);
}

/* Notes that all staged records leave. */
static void run_leaves(const struct peer *p, struct ledger_out *out)
{
    bool alone = p->tx_acked >= out->operations_sent;

    if (alone && !out->waits)
        out->patience = PATIENCE_MOST;
    else if (out->run % PATIENCE_RUNS == 0 && out->patience < PATIENCE_MOST)
        out->patience++;
    out->batches = out->prompt = out->waits = false;
    out->operations_sent = out->operations;
}

int ledger_post(struct engine *e, uint32_t peer)
{
    struct peer *p = &e->peers[peer];
    struct peer_live *live = &e->peer_live[peer];
    struct ledger_out *out = &live->out;
    int posted = 0;

    if (ledger_waits(e, peer)) {
        wait_on(e, peer);
        return 0;
    }
    while (out->sent < p->tx_tail) {
        uint32_t offset = (uint32_t)(out->sent - out->base) & (out->size - 1);
        uint64_t length = p->tx_tail - out->sent;
        struct wire_record *first = (struct wire_record *)(out->staging + offset);
        struct fabric_write write;
        int r;

        if (!run_window_open(out))
            return posted;
        if (length > out->size - offset)
            length = out->size - offset;
        length = run_cut(e, (const uint8_t *)first, length);
        first->run = (uint32_t)length;
        write = (struct fabric_write){
            .peer = peer,
            .memory = e->heap_memory.index,
            .source = first,
            .length = length,
            .remote_address = out->remote_address + offset,
            .remote_key = out->remote_key,
            .cookie = cookie_of(COOKIE_RUN, (uint64_t)peer << 16 | out->run),
            .immediate = wire_immediate(WIRE_RUN, e->config.self, out->run),
            .announce = true,
            .record = true,
        };
        r = FAULT(RUN_POST);
        if (r == 0)
            r = fabric_post_write(e->fabric, &write);
        if (r == -EAGAIN)
            return -EAGAIN;
        if (r < 0) {
            peer_broken(e, peer, r);
            return posted;
        }
        out->sent += length;
        out->run_end[out->run % RUN_WINDOW] = out->sent;
        out->run_posted[out->run % RUN_WINDOW] = e->now;
        step_run(e, peer, out->run, length);
        out->run++;
        live->outstanding++;
        live->runs_out++;
        live->bytes_out += length;
        posted = 1;
    }
    if (posted)
        run_leaves(p, out);
    out->urgent = false;
    return posted;
}

void ledger_written(struct engine *e, uint32_t peer, uint16_t run, int status)
{
    struct peer_live *live = &e->peer_live[peer];
    struct ledger_out *out = &live->out;

    live->outstanding--;
    if (live->link != LINK_UP) {
        peer_activate(e, peer); /* its step drains the link */
        return;
    }
    if (status < 0) {
        peer_broken(e, peer, status);
        return;
    }
    step_run_ended(e, peer, run);
    out->done_bits |= UINT64_C(1) << (run % RUN_WINDOW);
    while (out->run_done != out->run && out->done_bits & UINT64_C(1)
                                                             << (out->run_done % RUN_WINDOW)) {
        out->done_bits &= ~(UINT64_C(1) << (out->run_done % RUN_WINDOW));
        out->completed = out->run_end[out->run_done % RUN_WINDOW];
        out->run_done++;
    }
    if (out->sent < e->peers[peer].tx_tail || out->voids > 0)
        peer_activate(e, peer); /* the window, or the ring, has room again */
}

void ledger_free_nonce(struct engine *e, uint32_t peer, uint32_t nonce)
{
    struct ledger_out *out = &e->peer_live[peer].out;

    if (nonce != NONE && out->nonces_free < NONCE_WINDOW)
        out->nonces[out->nonces_free++] = nonce;
}

/* Nonces to be voided stand at the far end of the stack of free nonces, with their pieces. */
#define VOID_PIECES_SHIFT 8u
static_assert(NONCE_WINDOW == 1u << VOID_PIECES_SHIFT &&
                  WIRE_PIECES_MAX <= UINT32_MAX >> VOID_PIECES_SHIFT,
              "a nonce and its pieces in 32 bits");

void ledger_void(struct engine *e, uint32_t peer, uint16_t nonce, uint32_t pieces)
{
    struct ledger_out *out = &e->peer_live[peer].out;

    if (out->nonces_free + out->voids == NONCE_WINDOW)
        return;
    out->nonces[NONCE_WINDOW - ++out->voids] = nonce | pieces << VOID_PIECES_SHIFT;
    peer_activate(e, peer);
}

int ledger_stage_voids(struct engine *e, uint32_t peer)
{
    struct ledger_out *out = &e->peer_live[peer].out;

    while (out->voids > 0) {
        uint32_t entry = out->nonces[NONCE_WINDOW - out->voids];
        const struct ledger_mark mark = {.flow = NONE,
                                         .epoch = SENT_NONCE,
                                         .slot = UINT64_MAX,
                                         .nonce = entry & (NONCE_WINDOW - 1)};
        struct wire_void *w = ledger_stage(e, peer, WIRE_VOID, sizeof(*w), LEDGER_OPERATION, &mark);

        if (!w)
            return -ENOSPC;
        w->head.flags = WIRE_NONCE;
        w->nonce = (uint16_t)mark.nonce;
        w->unused = 0;
        w->pieces = entry >> VOID_PIECES_SHIFT;
        commit(e);
        out->voids--;
    }
    return 0;
}

/* The number of records, from the first on, that belong to consecutive operations of one flow. */
static uint32_t sent_in_a_row(const struct engine *e, const struct peer *p,
                              const struct sent *first, uint64_t consumed)
{
    uint32_t n = 1;

    if (first->flow == NONE || first->nonce != NONE || first->part > 0)
        return 1;
    while (n < FLOW_ROW_MAX && n < queue_count(&p->sent)) {
        const struct sent *next = sent_at(e, p, p->sent.head + n);

        if (next->end > consumed || next->flow != first->flow || next->epoch != first->epoch ||
            next->slot != first->slot + n || next->nonce != NONE || next->part > 0)
            break;
        n++;
    }
    return n;
}

int ledger_acknowledge(struct engine *e, uint32_t peer, uint64_t consumed, struct sent *done)
{
    struct peer *p = &e->peers[peer];
    struct ledger_out *out = &e->peer_live[peer].out;

    if (consumed < p->tx_acked || consumed > out->sent)
        return -EPROTO;
    if (queue_count(&p->sent) > 0) {
        const struct sent *first = sent_at(e, p, p->sent.head);

        if (first->end <= consumed) {
            uint32_t row = sent_in_a_row(e, p, first, consumed);

            *done = *first;
            queue_pop(&e->pool, &p->sent, row);
            return (int)row;
        }
    }
    if (consumed > p->tx_acked) {
        set64(e, &p->tx_acked, consumed);
        commit(e);
        out->wanting = false;
        out->acked_in = e->steps;
    }
    while (out->run_acked != out->run && out->run_end[out->run_acked % RUN_WINDOW] <= consumed)
        out->run_acked++;
    return 0;
}

#define NOTES_LOOKED_AT 32

bool ledger_ack_awaited(const struct engine *e, uint32_t peer, uint64_t consumed)
{
    const struct peer *p = &e->peers[peer];
    const struct ledger_out *out = &e->peer_live[peer].out;

    if (out->wanting || p->tx_tail - p->tx_acked > out->size / 4)
        return true;
    for (uint64_t i = p->sent.head; i < p->sent.tail; i++) {
        const struct sent *sent = sent_at(e, p, i);

        if (sent->end > consumed)
            return false;
        if (sent->flow != NONE || sent->epoch == SENT_LETTER || i - p->sent.head == NOTES_LOOKED_AT)
            return true;
    }
    return false;
}

bool ledger_rewind(struct engine *e, uint32_t peer, uint64_t consumed, struct sent *undone)
{
    struct peer *p = &e->peers[peer];

    if (queue_count(&p->sent) > 0) {
        const struct sent *last = sent_at(e, p, p->sent.tail - 1);

        if (last->end > consumed) {
            *undone = *last;
            queue_unpush(&e->pool, &p->sent, 1);
            return true;
        }
    }
    set64(e, &p->tx_tail, consumed);
    commit(e);
    /* Nonces belonged to the old link. */
    for (uint64_t i = p->sent.head; i < p->sent.tail; i++)
        sent_at(e, p, i)->nonce = NONE;
    return false;
}
