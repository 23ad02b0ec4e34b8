/*
 * Puts in packets, and Longs, at their origin; the test is the target. A put that ends half way
 * leaves nothing of itself to be sent again, and a hostile target's answers do no harm: no packet
 * is sent twice without a reason, and none reads outside its put. Each case says which rule it
 * guards. Thread: one.
 */
#include <errno.h>
#include <string.h>
#include "tests/engine/bench/linked_bench.h"
#include "tests/engine/bench/peek.h"
#include "tests/suite.h"

enum {
    PIECE = 1024,   /* bytes of a packet */
    LONG = 32768,   /* more than the ledger's ring can hold */
    MIDDLE = 8192,  /* several packets, which fit the ring */
    TARGET_FLOW = 3 /* number of the flow at the target */
};

/* ---- the target ------------------------------------------------------------------------------ */

/* Answers a BIND: the region takes packets of this many bytes, or no packets (0). `rights` may
 * include WIRE_BOUND_STORES and WIRE_BOUND_OBSERVES. */
static void answer_bind_with(struct bench *b, uint32_t remote, uint32_t flow, uint32_t piece,
                             uint16_t rights)
{
    const struct wire_bound bound = {.head = {.words = sizeof(bound) / 8, .kind = WIRE_BOUND},
                                     .remote = remote,
                                     .flow = flow,
                                     .rights = rights,
                                     .packet = (uint16_t)(piece / WIRE_PACKET_UNIT),
                                     .length = BENCH_SEGMENT,
                                     .address = BENCH_SEGMENT};

    CU_ASSERT_TRUE_FATAL(bench_send(b, &bound, sizeof(bound)));
}

static void answer_bind(struct bench *b, uint32_t remote, uint32_t flow, uint32_t piece)
{
    answer_bind_with(b, remote, flow, piece, 3);
}

/* Opens a bench where remote 0 leads to a region that takes packets, and remote 1 to one with
 * packets of `other` bytes. */
static struct bench *new_bench(uint32_t other)
{
    struct bench *b = unbound_bench(false);
    struct engine_key key = BENCH_KEY;

    CU_ASSERT_EQUAL_FATAL(engine_bind(b->engine, 0, 1, 1, &key, 1), 0);
    answer_bind(b, 0, TARGET_FLOW, PIECE);
    key.slot++;
    CU_ASSERT_EQUAL_FATAL(engine_bind(b->engine, 0, 1, 1, &key, 2), 0);
    answer_bind(b, 1, TARGET_FLOW, other);
    CU_ASSERT_FALSE_FATAL(b->broken);
    return b;
}

/* Binds remote 2 to the other context of the target's client, by a flow of its own. */
static void bind_neighbour(struct bench *b)
{
    const struct engine_key key = BENCH_KEY;

    CU_ASSERT_EQUAL_FATAL(engine_bind(b->engine, 0, 1, UINT64_C(1) << 32 | 1, &key, 3), 0);
    answer_bind(b, 2, TARGET_FLOW + 1, PIECE);
    CU_ASSERT_EQUAL_FATAL(peek_flow_of(b->engine, 2), 1);
}

static void refuse(struct bench *b, uint32_t sequence, uint32_t done)
{
    const struct wire_flow record = {.head = {.words = sizeof(record) / 8, .kind = WIRE_REFUSE},
                                     .sequence = sequence,
                                     .done = done};

    CU_ASSERT_TRUE_FATAL(bench_send(b, &record, sizeof(record)));
}

static void break_link(struct bench *b)
{
    const struct wire_record record = {.words = 1, .kind = 0xff};

    CU_ASSERT_TRUE_FATAL(bench_send(b, &record, sizeof(record)));
    CU_ASSERT_TRUE_FATAL(b->broken);
}

/* Begins a new link, on which the target has consumed records up to this position. */
static void link_again(struct bench *b, uint64_t consumed)
{
    b->position = consumed;
    CU_ASSERT_EQUAL_FATAL(bench_link(b), 0);
    bench_steps(b, 4);
    CU_ASSERT_FALSE_FATAL(b->broken);
}

/* ---- the origin ------------------------------------------------------------------------------ */

static void put(struct bench *b, uint32_t remote, uint32_t length, uint16_t flags)
{
    const struct submit_record record = {.size = sizeof(record),
                                         .kind = SUBMIT_PUT,
                                         .flags = flags,
                                         .remote = remote,
                                         .reserve = event_bytes(0),
                                         .length = length,
                                         .local_offset = BENCH_SEGMENT - length};

    bench_submit(b, &record);
    bench_steps(b, 4);
}

static uint64_t staged(const struct bench *b)
{
    return peek_peer(b->engine, 1).staged;
}

/* Returns the next packet in the ledger from `*at` on, and moves `*at` after it. Returns NULL
 * without one. */
static const struct wire_packet *next_packet(const struct bench *b, uint64_t *at)
{
    while (*at < staged(b)) {
        const struct wire_record *head = peek_record(b->engine, 1, *at);

        *at += head->words * UINT64_C(8);
        if (head->kind == WIRE_PACKET)
            return (const void *)head;
    }
    return NULL;
}

/* Checks that from `at` on the ledger has the packets of one put of `length` bytes, from its first
 * byte on, and no others. */
static void check_packets(const struct bench *b, uint64_t at, uint32_t length)
{
    const struct wire_packet *w;
    uint32_t done = 0;

    while ((w = next_packet(b, &at)) != NULL) {
        CU_ASSERT_EQUAL_FATAL(w->total, length);
        CU_ASSERT_EQUAL_FATAL(w->at, done);
        CU_ASSERT_FATAL(w->put.op.length <= length - done);
        done += w->put.op.length;
    }
    CU_ASSERT_EQUAL(done, length);
}

/* Submits a long put, of which only a part finds room in the ledger. Returns where its first packet
 * stands. */
static uint64_t begin_long(struct bench *b)
{
    uint64_t from = staged(b);

    put(b, 0, LONG, 0);
    CU_ASSERT_EQUAL_FATAL(peek_flow(b->engine, 0).staged, 0);
    CU_ASSERT_FATAL(staged(b) > from + PIECE);
    return from;
}

static void check_event(struct bench *b, int status)
{
    struct event_record event;

    CU_ASSERT_TRUE_FATAL(bench_local_event(b, &event));
    CU_ASSERT_EQUAL(event.status, status);
}

/* ---- a put that has left --------------------------------------------------------------------- */

/* Guards a flow whose target context ends in the middle of a put, so that the put ends and leaves.
 * When the link breaks, or the daemon restarts, before the packets are consumed, the flow sends
 * none of them again. Another flow's put has the memory of that put by then, and continues. */
static void gone_in_the_middle(void)
{
    for (int restarts = 0; restarts < 2; restarts++) {
        struct bench *b = new_bench(PIECE);
        struct event_record event;

        bind_neighbour(b);
        (void)begin_long(b);
        bench_note(b, WIRE_GONE, 0, 0);
        check_event(b, -EHOSTDOWN);
        put(b, 2, PIECE, 0);
        if (restarts) {
            CU_ASSERT_TRUE_FATAL(bench_reopen(b));
        } else {
            break_link(b);
        }
        link_again(b, 0);
        CU_ASSERT_EQUAL(peek_flow(b->engine, 0).state, FLOW_DEAD);
        CU_ASSERT_EQUAL(peek_flow(b->engine, 0).staged, 1);
        CU_ASSERT_FALSE(bench_local_event(b, &event));
        bench_ack(b);
        check_event(b, 0);
        put(b, 0, PIECE, 0);
        check_event(b, -EHOSTDOWN);
        CU_ASSERT_FALSE(b->quarantined);
        bench_free(b);
    }
}

/* ---- a hostile target ------------------------------------------------------------------------ */

/* Guards against a REFUSE of a put that the target has acknowledged, and that is still queued after
 * a put whose payload is on its way: nothing is sent again, and the next put begins at its first
 * byte. */
static void refused_when_it_has_ended(void)
{
    struct bench *b = new_bench(0);
    uint64_t from;

    b->fabric.holds = true;
    put(b, 1, 4096, SUBMIT_REASSEMBLE);
    put(b, 0, MIDDLE, 0);
    bench_ack(b);
    CU_ASSERT_EQUAL_FATAL(peek_flow(b->engine, 0).staged, 2);
    from = staged(b);
    refuse(b, 1, MIDDLE / 2);
    CU_ASSERT_FALSE(peek_flow(b->engine, 0).held);
    CU_ASSERT_EQUAL(peek_flow(b->engine, 0).staged, 2);
    bench_note(b, WIRE_GO, 0, 0);
    put(b, 0, 64, 0);
    check_packets(b, from, 64);
    still_release(&b->fabric);
    bench_ack(b);
    for (int i = 0; i < 3; i++)
        check_event(b, 0);
    CU_ASSERT_FALSE(b->broken || b->quarantined);
    bench_free(b);
}

/* Guards a put in whose middle the target's next process answers that the region takes no packets
 * any more: the rest is sent as an ordinary put, and the next put in packets begins at its first
 * byte. */
static void without_packets_in_the_middle(void)
{
    struct bench *b = new_bench(PIECE);
    struct wire_ack ack = {.head = {.words = sizeof(ack) / 8, .kind = WIRE_ACK}};
    uint64_t from;

    ack.consumed = begin_long(b);
    for (int i = 0; i < 5; i++)
        CU_ASSERT_PTR_NOT_NULL_FATAL(next_packet(b, &ack.consumed));
    CU_ASSERT_TRUE_FATAL(bench_send(b, &ack, sizeof(ack)));
    break_link(b);
    b->restarts++;
    link_again(b, ack.consumed);
    answer_bind(b, 0, TARGET_FLOW, 0);
    answer_bind(b, 1, TARGET_FLOW, PIECE);
    bench_ack(b);
    check_event(b, 0);
    from = staged(b);
    put(b, 1, MIDDLE, 0);
    check_packets(b, from, MIDDLE);
    CU_ASSERT_FALSE(b->broken || b->quarantined);
    bench_free(b);
}

/* Guards against a REFUSE which claims that more is done than was sent: the put continues with the
 * part that has not left. */
static void refused_ahead_of_it(void)
{
    struct bench *b = new_bench(PIECE);
    uint64_t from = begin_long(b);
    const struct wire_packet *w;
    uint32_t sent = 0;

    while ((w = next_packet(b, &from)) != NULL)
        sent += w->put.op.length;
    CU_ASSERT_FATAL(sent < LONG - PIECE);
    refuse(b, 0, LONG - PIECE);
    bench_ack(b);
    from = staged(b);
    bench_note(b, WIRE_GO, 0, 0);
    bench_steps(b, 4);
    w = next_packet(b, &from);
    CU_ASSERT_PTR_NOT_NULL_FATAL(w);
    CU_ASSERT_EQUAL(w->at, sent);
    CU_ASSERT_FALSE(b->broken || b->quarantined);
    bench_free(b);
}

/* ---- puts that are stored -------------------------------------------------------------------- */

static struct bench *storing_bench(void)
{
    struct bench *b = unbound_bench(false);
    const struct engine_key key = BENCH_KEY;

    CU_ASSERT_EQUAL_FATAL(engine_bind(b->engine, 0, 1, 1, &key, 1), 0);
    answer_bind_with(b, 0, TARGET_FLOW, PIECE, 3 | WIRE_BOUND_STORES);
    CU_ASSERT_FALSE_FATAL(b->broken);
    return b;
}

/* Checks that the next packet from `at` on is the record of a put that is stored. */
static void check_stored(const struct bench *b, uint64_t at, bool nonce)
{
    const struct wire_packet *w = next_packet(b, &at);

    CU_ASSERT_PTR_NOT_NULL_FATAL(w);
    CU_ASSERT_EQUAL(w->put.op.head.flags, WIRE_STORED | (nonce ? WIRE_NONCE : 0));
    CU_ASSERT_EQUAL(w->put.op.length, 0);
    CU_ASSERT_EQUAL(w->total, LONG);
    CU_ASSERT_EQUAL(w->at, LONG);
    CU_ASSERT_PTR_NULL(next_packet(b, &at));
}

enum { NOT_REFUSED = UINT32_MAX };

/* An operation whose payload travels in writes of its own has been sent from `from` on, as `check`
 * says. The target refuses it with this `done`, or does not; then the link breaks. Checks that the
 * operation ends well, and that its bytes are written again only where it was not refused. */
static void goes_once(struct bench *b, uint64_t from,
                      void (*check)(const struct bench *b, uint64_t at, bool nonce), uint32_t done)
{
    uint32_t writes;

    check(b, from, true);
    if (done != NOT_REFUSED) {
        refuse(b, 0, done);
        bench_ack(b);
        from = staged(b);
        bench_note(b, WIRE_GO, 0, 0);
        bench_steps(b, 4);
        check(b, from, false);
    }
    writes = b->fabric.payloads;
    break_link(b);
    link_again(b, from);
    CU_ASSERT_EQUAL(b->fabric.payloads, done != NOT_REFUSED ? writes : 2 * writes);
    bench_ack(b);
    check_event(b, 0);
    CU_ASSERT_FALSE(b->broken || b->quarantined);
    bench_free(b);
}

/* Guards a long put whose bytes travel in writes of their own, and that has one record. When the
 * target refuses this, the record alone is sent again, without a nonce, also on a new link, because
 * handlers may have changed what was placed. When the link breaks before a REFUSE, the bytes are
 * sent again. */
static void stored_goes_once(void)
{
    for (uint32_t refused = 0; refused < 2; refused++) {
        struct bench *b = storing_bench();
        uint64_t from = staged(b);

        put(b, 0, LONG, SUBMIT_REASSEMBLE);
        goes_once(b, from, check_stored, refused ? MIDDLE : NOT_REFUSED);
    }
}

/* Guards a put that is stored when the target's next process has no such region any more: that
 * process may have begun to handle the put, and gets a note that no more follows. */
static void stored_and_cut(void)
{
    const struct wire_bound gone = {.head = {.words = sizeof(gone) / 8, .kind = WIRE_BOUND},
                                    .status = -EKEYREJECTED,
                                    .flow = TARGET_FLOW};
    struct bench *b = storing_bench();
    uint64_t from = staged(b);
    const struct wire_packet *w;

    put(b, 0, LONG, 0);
    check_stored(b, from, false);
    break_link(b);
    b->restarts++;
    link_again(b, from);
    CU_ASSERT_TRUE_FATAL(bench_send(b, &gone, sizeof(gone)));
    bench_steps(b, 4);
    w = next_packet(b, &from);
    CU_ASSERT_PTR_NOT_NULL_FATAL(w);
    CU_ASSERT_EQUAL(w->put.op.head.flags & ~WIRE_NO_EVENT, WIRE_CUT);
    CU_ASSERT_EQUAL(w->put.op.length, 0);
    bench_ack(b);
    check_event(b, -EKEYREJECTED);
    CU_ASSERT_FALSE(b->broken || b->quarantined);
    bench_free(b);
}

/* ---- Longs ----------------------------------------------------------------------------------- */

static void send_long(struct bench *b)
{
    const struct {
        struct submit_record record;
        struct message message;
    } one = {.record = {.size = sizeof(one),
                        .kind = SUBMIT_LONG,
                        .flags = SUBMIT_NO_REPLY | SUBMIT_REASSEMBLE,
                        .reserve = event_bytes(0),
                        .length = LONG,
                        .local_offset = BENCH_SEGMENT - LONG,
                        .rid_len = sizeof(struct message)},
             .message = {.index = 5, .kind = SUBMIT_LONG}};

    bench_submit(b, &one.record);
    bench_steps(b, 4);
}

/* Checks that the record of a Long stands in the ledger from `at` on, with a nonce or without. */
static void check_long(const struct bench *b, uint64_t at, bool nonce)
{
    const struct wire_op *w = peek_record(b->engine, 1, at);

    while (w->head.kind != WIRE_PLACED && (at += w->head.words * UINT64_C(8)) < staged(b))
        w = peek_record(b->engine, 1, at);
    CU_ASSERT_EQUAL_FATAL(w->head.kind, WIRE_PLACED);
    CU_ASSERT_EQUAL(w->head.flags, WIRE_MESSAGE | WIRE_NO_REPLY | (nonce ? WIRE_NONCE : 0));
    CU_ASSERT_EQUAL(w->length, LONG);
}

/* Guards that a Long which the target has refused is sent again without its bytes, also on a new
 * link: its index may be an offload's, whose handlers may have changed the bytes. */
static void long_goes_once(void)
{
    for (uint32_t refused = 0; refused < 2; refused++) {
        struct bench *b = unbound_bench(false);
        const struct engine_key key = BENCH_KEY;
        uint64_t from;

        CU_ASSERT_EQUAL_FATAL(engine_bind(b->engine, 0, 1, 1, &key, 1), 0);
        answer_bind(b, 0, TARGET_FLOW, 0);
        from = staged(b);
        send_long(b);
        goes_once(b, from, check_long, refused ? 0 : NOT_REFUSED);
    }
}

/* ---- batches --------------------------------------------------------------------------------- */

enum { PUTS = 3 };

/* Submits puts of one word each, which are all in the ring before the engine looks. */
static void put_row(struct bench *b)
{
    for (uint32_t i = 0; i < PUTS; i++) {
        const struct {
            struct submit_record record;
            uint64_t word;
        } one = {.record = {.size = sizeof(one),
                            .kind = SUBMIT_PUT,
                            .flags = SUBMIT_INLINE,
                            .reserve = event_bytes(0),
                            .length = sizeof(one.word)}};

        bench_submit_unseen(b, &one.record);
    }
    bench_steps(b, 4);
}

/* The status of each put of a batch, as a FAIL of the target may state it. */
static const struct {
    uint32_t bytes, done;
    int32_t status;
    uint8_t errnos[PUTS];
    bool fits;
} verdicts[] = {
    {8, PUTS, -EREMOTEIO, {0, EREMOTEIO, 0}, true},
    {8, PUTS, -EREMOTEIO, {EREMOTEIO, 0, ESHUTDOWN}, true},
    {8, PUTS, -EREMOTEIO, {0, 0, 0}, true},
    {0, PUTS, -EREMOTEIO, {EREMOTEIO, EREMOTEIO, EREMOTEIO}, true}, /* one status for all */
    {8, PUTS - 1, -EREMOTEIO, {0}, false},
    {8, PUTS + 1, -EREMOTEIO, {0}, false},
    {8, 0, -EREMOTEIO, {0}, false},
    {16, PUTS, -EREMOTEIO, {0}, false},
    {8, UINT32_MAX, -EREMOTEIO, {0}, false},
    {WIRE_BATCH_PUTS + 8, WIRE_BATCH_PUTS + 8, -EREMOTEIO, {0}, false},
    {8, PUTS, 0, {0}, false},
    {8, PUTS, 1, {0}, false},
};

static void verdict(struct bench *b, size_t row, uint32_t sequence)
{
    struct {
        struct wire_flow w;
        uint8_t errnos[WIRE_BATCH_PUTS + 8];
    } fail = {.w = {.head = {.words = (uint16_t)((sizeof(fail.w) + verdicts[row].bytes) / 8),
                             .kind = WIRE_FAIL},
                    .sequence = sequence,
                    .status = verdicts[row].status,
                    .done = verdicts[row].done}};

    memcpy(fail.errnos, verdicts[row].errnos, PUTS);
    CU_ASSERT_TRUE_FATAL(bench_send(b, &fail, fail.w.head.words * 8u));
}

/* Guards that each put of a batch ends with the status that the target states, and that a verdict
 * that does not fit the batch breaks the link. */
static void outcomes_of_a_batch(void)
{
    for (size_t row = 0; row < sizeof(verdicts) / sizeof(*verdicts); row++) {
        struct bench *b = new_bench(PIECE);

        put_row(b);
        CU_ASSERT_PTR_NULL(next_packet(b, &(uint64_t){0}));
        verdict(b, row, 0);
        CU_ASSERT_EQUAL(b->broken, !verdicts[row].fits);
        if (verdicts[row].fits) {
            bench_ack(b);
            for (uint32_t i = 0; i < PUTS; i++)
                check_event(b, -verdicts[row].errnos[i]);
        }
        CU_ASSERT_FALSE(b->quarantined);
        bench_free(b);
    }
}

/* Guards that a put in packets gets no verdict of a batch. */
static void outcomes_of_packets(void)
{
    struct bench *b = new_bench(PIECE);

    put(b, 0, MIDDLE, 0);
    verdict(b, 0, 0);
    CU_ASSERT_TRUE(b->broken);
    bench_free(b);
}

/* ---- gets that are observed ------------------------------------------------------------------ */

static const struct wire_put *observed_from(const struct bench *b, uint64_t at)
{
    while (at < staged(b)) {
        const struct wire_record *head = peek_record(b->engine, 1, at);

        if (head->kind == WIRE_OBSERVED)
            return (const void *)head;
        at += head->words * UINT64_C(8);
    }
    return NULL;
}

static void get(struct bench *b)
{
    const struct submit_record record = {.size = sizeof(record),
                                         .kind = SUBMIT_GET,
                                         .flags = SUBMIT_NO_RCE,
                                         .remote = 0,
                                         .reserve = event_bytes(0),
                                         .offset = 64,
                                         .length = MIDDLE,
                                         .rid = 7};

    bench_submit(b, &record);
    bench_steps(b, 4);
}

/* Guards that a get without a remote event has a record where its target observes, and ends when
 * the record is consumed. When the link breaks before, the record is sent again, without a second
 * read. Elsewhere such a get has no record, also where a region that takes no packets claims to
 * observe. */
static void observed_gets(void)
{
    static const struct {
        uint32_t piece;
        uint16_t rights;
        bool record;
    } rows[] = {{PIECE, 3 | WIRE_BOUND_OBSERVES, true},
                {PIECE, 3 | WIRE_BOUND_OBSERVES | WIRE_BOUND_STORES, true},
                {PIECE, 3 | WIRE_BOUND_STORES, false},
                {PIECE, 3, false},
                {0, 3 | WIRE_BOUND_OBSERVES, false}};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct engine_key key = BENCH_KEY;
        struct bench *b = unbound_bench(false);
        const struct wire_put *w;
        struct event_record event;
        uint64_t from;

        CU_ASSERT_EQUAL_FATAL(engine_bind(b->engine, 0, 1, 1, &key, 1), 0);
        answer_bind_with(b, 0, TARGET_FLOW, rows[i].piece, rows[i].rights);
        from = staged(b);
        get(b);
        CU_ASSERT_EQUAL(b->fabric.payloads, 1);
        w = observed_from(b, from);
        CU_ASSERT_EQUAL_FATAL(w != NULL, rows[i].record);
        if (w) {
            CU_ASSERT_EQUAL(w->op.head.flags, WIRE_NO_EVENT);
            CU_ASSERT_EQUAL(w->op.flow, TARGET_FLOW);
            CU_ASSERT_EQUAL(w->op.length, MIDDLE);
            CU_ASSERT_EQUAL(w->op.rid, 7);
            CU_ASSERT_EQUAL(w->slot, key.slot);
            CU_ASSERT_EQUAL(w->generation, key.generation);
            CU_ASSERT_EQUAL(w->offset, 64);
            CU_ASSERT_FALSE(bench_local_event(b, &event));
            break_link(b);
            link_again(b, from);
            CU_ASSERT_PTR_NOT_NULL(observed_from(b, from));
            CU_ASSERT_EQUAL(b->fabric.payloads, 1);
            bench_ack(b);
        }
        check_event(b, 0);
        CU_ASSERT_FALSE(b->broken || b->quarantined);
        bench_free(b);
    }
}

int main(void)
{
    CU_TestInfo tests[] = {{"its target ends in the middle of a put", gone_in_the_middle},
                           {"refused when it has ended", refused_when_it_has_ended},
                           {"no packets any more in the middle", without_packets_in_the_middle},
                           {"refused ahead of what was sent", refused_ahead_of_it},
                           {"a stored put goes once", stored_goes_once},
                           {"a stored put is cut", stored_and_cut},
                           {"a Long goes once", long_goes_once},
                           {"outcomes of a batch", outcomes_of_a_batch},
                           {"outcomes of what is no batch", outcomes_of_packets},
                           {"gets that are observed", observed_gets},
                           CU_TEST_INFO_NULL};

    return suite_run("packets at their origin", tests);
}
