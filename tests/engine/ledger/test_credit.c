/* Bounds of what a peer can take of an engine: memory for its ledger, runs without an
 * acknowledgement, room in a client's ring; and what it may acknowledge or announce. One engine
 * over a fabric that only remembers; the test is the peer. One thread. */
#include <string.h>
#include "shm_ring/doorbell.h"
#include "tests/count.h"
#include "tests/suite.h"
#include "daemon/engine/engine.h"
#include "daemon/engine/ledger/ledger.h"
#include "tests/engine/bench/linked_bench.h"
#include "tests/engine/bench/record_bench.h"
#include "tests/engine/bench/peek.h"
#include "proto/session_abi.h"
#include "proto/wire_abi.h"

/* Guards that a peer gets at most as much memory for its ledger as the engine gives to one peer,
 * however much it offers. */
static void test_offers(void)
{
    static const struct {
        uint32_t bytes;
        bool switched, broken;
    } rows[] = {{0, false, true},         {16384, false, true},    {49152, false, true},
                {32768, true, false},     {65536, true, false},    {131072, false, false},
                {1u << 19, false, false}, {1u << 31, false, false}};
    struct engine_offer theirs = {.peer = 1, .incarnation = 1, .state_id = 77};
    struct bench *b;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct wire_offer offer = {.head = {.words = sizeof(offer) / 8, .kind = WIRE_OFFER},
                                   .bytes = rows[i].bytes};

        b = linked_bench();
        bench_send(b, &offer, sizeof(offer));
        CU_ASSERT_EQUAL(b->broken, rows[i].broken);
        CU_ASSERT_EQUAL((b->fabric.kinds & 1u << WIRE_SWITCH) != 0, rows[i].switched);
        bench_free(b);
    }
    b = linked_bench();
    while (engine_offer(b->engine, 1, &b->offer) == -EAGAIN)
        bench_steps(b, 1);
    theirs.ring_bytes = 131072;
    CU_ASSERT_EQUAL(engine_peer_up(b->engine, 1, &theirs), -EMSGSIZE);
    theirs.ring_bytes = 65536;
    CU_ASSERT_EQUAL(engine_peer_up(b->engine, 1, &theirs), 0);
    bench_free(b);
}

/* Guards that an ACK which takes back what was acknowledged breaks the link. */
static void test_ack_goes_back(void)
{
    for (uint64_t back = 0; back < 2; back++) {
        struct bench *b = linked_bench();
        struct wire_ack ack = {.head = {.words = sizeof(ack) / 8, .kind = WIRE_ACK}};

        ack.consumed = peek_peer(b->engine, 1).posted;
        CU_ASSERT_FATAL(ack.consumed > 0);
        bench_send(b, &ack, sizeof(ack));
        CU_ASSERT_FALSE(b->broken);
        ack.consumed -= 8 * back;
        bench_send(b, &ack, sizeof(ack));
        CU_ASSERT_EQUAL(b->broken, back > 0);
        bench_free(b);
    }
}

/* Guards that an ACK of more than was posted breaks the link, and so does the number of a run
 * beyond the window: each is tried with the last value that is allowed, and the next. */
static void test_bounds_of_credit(void)
{
    for (uint64_t past = 0; past < 2; past++) {
        struct bench *b = linked_bench();
        struct wire_ack ack = {.head = {.words = sizeof(ack) / 8, .kind = WIRE_ACK}};

        ack.consumed = peek_peer(b->engine, 1).posted + 8 * past;
        bench_send(b, &ack, sizeof(ack));
        CU_ASSERT_EQUAL(b->broken, past > 0);
        bench_free(b);
        b = linked_bench();
        still_push(&b->fabric, &(struct fabric_event){
                                   .kind = FABRIC_ARRIVED,
                                   .immediate = wire_immediate(
                                       WIRE_RUN, 1, (uint16_t)(b->run + RUN_WINDOW - 1 + past))});
        bench_steps(b, 2);
        CU_ASSERT_EQUAL(b->broken, past > 0);
        bench_free(b);
    }
}

/* Sends one PAD of this size. */
static void send_pad(struct bench *b, uint32_t size)
{
    static uint8_t bytes[65536];
    const struct wire_record pad = {.words = (uint16_t)(size / 8), .kind = WIRE_PAD};

    memcpy(bytes, &pad, sizeof(pad));
    CU_ASSERT_TRUE_FATAL(bench_send(b, bytes, size));
}

/* Sends PADs up to this position of the ring. */
static void fill_ring(struct bench *b, uint64_t position)
{
    while (b->position < position) {
        uint64_t left = position - b->position;

        send_pad(b, left < 512 ? (uint32_t)left : 512);
    }
}

/* Guards that a run which ends beyond the credit that the peer can know of breaks the link, and
 * that a run which ends there exactly does not. */
static void test_run_beyond_credit(void)
{
    for (uint32_t past = 0; past < 2; past++) {
        struct bench *b = linked_bench();
        struct peek_peer seen;

        fill_ring(b, b->offer.ring_bytes);
        b->position = 0; /* of the ring's first byte, again */
        seen = peek_peer(b->engine, 1);
        CU_ASSERT_FATAL(seen.acked > 0 && seen.acked < seen.consumed);
        CU_ASSERT_EQUAL(seen.consumed, b->offer.ring_bytes);
        send_pad(b, (uint32_t)seen.acked + 8 * past);
        CU_ASSERT_EQUAL(b->broken, past > 0);
        CU_ASSERT_EQUAL(peek_peer(b->engine, 1).consumed, seen.consumed + (past ? 0 : seen.acked));
        bench_free(b);
    }
}

/* Guards that a record which goes on beyond the ring's last byte breaks the link, even where the
 * peer has as much credit. */
static void test_record_over_the_end(void)
{
    const struct wire_record pad = {.words = sizeof(pad) / 8, .kind = WIRE_PAD};

    for (uint32_t past = 0; past < 2; past++) {
        struct bench *b = linked_bench();
        uint64_t last = b->offer.ring_bytes - sizeof(pad);
        struct wire_record *head;

        fill_ring(b, last);
        CU_ASSERT(peek_peer(b->engine, 1).acked > 8);
        CU_ASSERT_TRUE_FATAL(bench_send_unseen(b, &pad, sizeof(pad)));
        head = (void *)(b->ring + last);
        head->run += 8 * past;
        head->words += past;
        bench_steps(b, 2);
        CU_ASSERT_EQUAL(b->broken, past > 0);
        bench_free(b);
    }
}

/* Guards that the peer may fill the larger ring right after its SWITCH, although not all of what
 * stood in the ring before is acknowledged. */
static void test_credit_after_switch(void)
{
    const struct wire_record want = {.words = sizeof(want) / 8, .kind = WIRE_WANT},
                             leave = {.words = sizeof(leave) / 8, .kind = WIRE_SWITCH};
    struct bench *b = linked_bench();
    struct wire_offer offer = {0};
    struct peek_peer seen;

    bench_send(b, &want, sizeof(want));
    bench_steps(b, 4);
    seen = peek_peer(b->engine, 1);
    for (uint64_t at = 0; at < seen.staged && offer.head.kind != WIRE_OFFER;
         at += offer.head.words * UINT64_C(8))
        memcpy(&offer, peek_record(b->engine, 1, at), sizeof(offer));
    CU_ASSERT_EQUAL_FATAL(offer.head.kind, WIRE_OFFER);
    bench_send(b, &leave, sizeof(leave));
    b->ring = (uint8_t *)(uintptr_t)offer.address;
    b->offer.ring_bytes = offer.bytes;
    b->position = 0;
    seen = peek_peer(b->engine, 1);
    CU_ASSERT(seen.acked < seen.consumed);
    send_pad(b, offer.bytes);
    CU_ASSERT_EQUAL(peek_peer(b->engine, 1).consumed, seen.consumed + offer.bytes);
    CU_ASSERT_FALSE(b->broken);
    bench_free(b);
}

static void send_notes(struct bench *b, uint32_t from, uint32_t until)
{
    struct wire_op note = {.head = {.words = sizeof(note) / 8, .kind = WIRE_NOTE},
                           .flow = bench_inflow(b)};

    for (note.sequence = from; note.sequence < until; note.sequence++)
        bench_send(b, &note, sizeof(note));
}

/* Guards that operations which were refused, and come again into the spill, have a GO that follows
 * them. A REFUSE passes a GO and a STOP that wait to be staged: the origin sends again at that GO,
 * and is held by that STOP. */
static void test_refused_into_spill(void)
{
    const uint32_t event = event_bytes(0), fill = RING / event;
    struct wire_ack ack = {.head = {.words = sizeof(ack) / 8, .kind = WIRE_ACK}};
    struct bench *b = linked_bench();
    struct session_shared *shared = b->session;

    poke_config(b->engine)->spill_max = 2 * event;
    send_notes(b, 0, fill + 3);
    CU_ASSERT_EQUAL_FATAL(peek_inflow(b->engine, bench_inflow(b)).state, INFLOW_REFUSED);
    atomic_store(&shared->remote.head, event);
    bench_steps(b, 2);
    CU_ASSERT_EQUAL(peek_session(b->engine, 0).spill_bytes, event);
    send_notes(b, fill + 2, fill + 3);
    CU_ASSERT_EQUAL(peek_session(b->engine, 0).spill_bytes, 2 * event);
    ack.consumed = peek_peer(b->engine, 1).posted; /* the peer's window of runs is full */
    bench_send(b, &ack, sizeof(ack));
    b->fabric.kinds = 0;
    atomic_store(&shared->remote.head, bench_events(b));
    bench_steps(b, 2);
    CU_ASSERT_EQUAL(peek_session(b->engine, 0).spill_bytes, 0);
    CU_ASSERT((b->fabric.kinds & 1u << WIRE_GO) != 0);
    bench_free(b);
}

/* Guards that a context's row shows what its client writes about notifications, whatever that is.
 */
static void test_client_counts(void)
{
    struct bench *b = linked_bench();
    struct counters_session row;
    uint32_t from = 0;

    atomic_store(&b->session->notices.started, 3);
    atomic_store(&b->session->notices.unexpected, UINT64_MAX);
    atomic_store(&b->session->notices.matched, 5);
    CU_ASSERT_EQUAL_FATAL(engine_view_sessions(b->engine, 0, &from, &row, 1), 1);
    CU_ASSERT_EQUAL(row.requests_started, 3);
    CU_ASSERT_EQUAL(row.notices_unexpected, UINT64_MAX);
    CU_ASSERT_EQUAL(row.notices_matched, 5);
    CU_ASSERT_FALSE(b->quarantined);
    bench_free(b);
}

/* Guards that a context's row shows which call its client reports to wait in, and for how long. A
 * sleep that began before now is still under way, and is added to both times. If the client reports
 * no call, or a wrong one, an armed bell counts as a wait for an event. */
static void test_client_waits(void)
{
    static const struct {
        uint32_t call, armed;
        uint64_t since, now;
        uint64_t shown, waited, asleep;
    } rows[] = {
        {SESSION_WAITS_NOT, DOORBELL_AWAKE, 0, 1000, SESSION_WAITS_NOT, 50, 20},
        {SESSION_WAITS_NOT, DOORBELL_FD, 0, 1000, SESSION_WAITS_EVENT, 50, 20},
        {SESSION_WAITS_FLUSH, DOORBELL_AWAKE, 0, 1000, SESSION_WAITS_FLUSH, 50, 20},
        {SESSION_WAITS_EVENT, DOORBELL_FUTEX, 990, 1000, SESSION_WAITS_EVENT, 60, 30},
        {SESSION_WAITS_EXCHANGE, DOORBELL_FUTEX, 999, 1000, SESSION_WAITS_EXCHANGE, 51, 21},
        {SESSION_WAITS_BARRIER, DOORBELL_FUTEX, 1000, 1000, SESSION_WAITS_BARRIER, 50, 20},
        {SESSION_WAITS_BARRIER, DOORBELL_FUTEX, UINT64_MAX, 1000, SESSION_WAITS_BARRIER, 50, 20},
        {SESSION_WAIT_KINDS, DOORBELL_AWAKE, 0, 1000, SESSION_WAITS_NOT, 50, 20},
        {UINT32_MAX, DOORBELL_FUTEX, 0, 1000, SESSION_WAITS_EVENT, 50, 20},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct bench *b = linked_bench();
        struct session_waits *waits = &b->session->waits;
        struct counters_session row;
        uint32_t from = 0;

        atomic_store(&b->session->event_bell.armed, rows[i].armed);
        atomic_store(&waits->call, rows[i].call);
        atomic_store(&waits->waited_ns, 50);
        atomic_store(&waits->asleep_ns, 20);
        atomic_store(&waits->asleep_since, rows[i].since);
        CU_ASSERT_EQUAL_FATAL(engine_view_sessions(b->engine, rows[i].now, &from, &row, 1), 1);
        CU_ASSERT_EQUAL(row.waits, rows[i].shown);
        CU_ASSERT_EQUAL(row.waited_ns, rows[i].waited);
        CU_ASSERT_EQUAL(row.asleep_ns, rows[i].asleep);
        CU_ASSERT_FALSE(b->quarantined);
        bench_free(b);
    }
}

/* Guards that a client with many notes waiting has its events refused, not spilled, because a spill
 * would add one more note, STOP. An ACK waits for a REFUSE, so the origin gets no credit back
 * meanwhile. */
static void test_notes_of_one(void)
{
    for (uint32_t many = 0; many < 2; many++) {
        const uint32_t fill = RING / event_bytes(0);
        struct bench *b = linked_bench();

        send_notes(b, 0, fill);
        CU_ASSERT_EQUAL(peek_inflow(b->engine, bench_inflow(b)).state, INFLOW_OPEN);
        poke_notes(b->engine, 0, many);
        send_notes(b, fill, fill + 1);
        CU_ASSERT_EQUAL(peek_inflow(b->engine, bench_inflow(b)).state,
                        many ? INFLOW_REFUSED : INFLOW_STOPPED);
        bench_free(b);
    }
}

static void ask_for_answers(struct bench *b, int n)
{
    const struct wire_region revoke = {
        .head = {.words = sizeof(revoke) / 8, .kind = WIRE_REVOKE}, .slot = 3, .generation = 9};

    while (n-- > 0)
        bench_send(b, &revoke, sizeof(revoke));
}

/* Guards that RUN_WINDOW runs at most are not acknowledged, counted over both rings: the receiver
 * has a bit for each. Runs in the ring that was left count until they are acknowledged. */
static void test_window_over_two_rings(void)
{
    const struct wire_offer offer = {.head = {.words = sizeof(offer) / 8, .kind = WIRE_OFFER},
                                     .bytes = 32768};
    struct bench *b = linked_bench();

    ask_for_answers(b, 40);
    bench_send(b, &offer, sizeof(offer));
    CU_ASSERT((b->fabric.kinds & 1u << WIRE_SWITCH) != 0);
    ask_for_answers(b, 60);
    CU_ASSERT_FALSE(b->broken);
    CU_ASSERT(b->fabric.runs > 40 && b->fabric.runs <= RUN_WINDOW);
    bench_free(b);
}

/* Opens a bench with as many runs under way as may leave without an ACK, and with nothing that the
 * engine has to acknowledge. */
static struct bench *bench_out_of_runs(void)
{
    struct bench *b = linked_bench();

    ask_for_answers(b, 60);
    CU_ASSERT_FALSE_FATAL(b->broken);
    poke_runs_acknowledged(b->engine, 1);
    b->fabric.kinds = 0;
    return b;
}

/* Guards the runs that are kept for ACKs: when only they are left, an ACK leaves only if it covers
 * much, however long it is due. Two peers that spent these runs on less would wait for each other.
 */
static void test_runs_kept_for_acks(void)
{
    struct bench *b = bench_out_of_runs();
    uint32_t runs = b->fabric.runs;

    for (uint32_t i = 1; i < RUN_WINDOW; i++) {
        bench_note(b, WIRE_GO, 7, 0);
        bench_steps(b, 110); /* longer than any ACK waits */
        CU_ASSERT_EQUAL(b->fabric.runs, runs + i / (RUN_WINDOW / 4));
    }
    CU_ASSERT((b->fabric.kinds & 1u << WIRE_ACK) != 0);
    CU_ASSERT_FALSE(b->broken);
    bench_free(b);
}

/* Guards that a nudge takes none of the runs that are kept for ACKs. */
static void test_nudge_without_runs(void)
{
    for (int runs_free = 1; runs_free >= 0; runs_free--) {
        struct bench *b = linked_bench();
        struct engine *e = b->engine;
        uint64_t deadline = UINT64_MAX;

        while (!runs_free && ledger_runs_free(e, 1))
            ask_for_answers(b, 1);
        CU_ASSERT_EQUAL_FATAL(peek_peer(e, 1).posted, peek_peer(e, 1).staged);
        poke_outstanding(e, 1, RUN_WINDOW + 1); /* a payload is under way */
        CU_ASSERT_FALSE(ledger_nudge(e, 1, &deadline));
        CU_ASSERT_EQUAL(deadline < UINT64_MAX, runs_free);
        poke_outstanding(e, 1, 0);
        bench_free(b);
    }
}

/* Guards that where runs are cut, records that wait for the peer's ACK leave a run free for an ACK
 * of ours. */
static void test_ack_behind_cut_runs(void)
{
    struct wire_region revokes[120];
    struct wire_ack ack = {.head = {.words = sizeof(ack) / 8, .kind = WIRE_ACK}};
    struct bench *b = bench_out_of_runs();
    struct peek_peer before = peek_peer(b->engine, 1), now;

    for (size_t i = 0; i < sizeof(revokes) / sizeof(revokes[0]); i++)
        revokes[i] = (struct wire_region){
            .head = {.words = sizeof(revokes[0]) / 8, .kind = WIRE_REVOKE}, .slot = 3};
    poke_ordered(b->engine, 64);
    bench_send(b, revokes, sizeof(revokes));
    for (uint32_t i = 0; i < RUN_WINDOW / 4; i++)
        bench_note(b, WIRE_GO, 7, 0);
    CU_ASSERT((b->fabric.kinds & 1u << WIRE_ACK) != 0);
    now = peek_peer(b->engine, 1);
    CU_ASSERT((uint16_t)(now.runs - before.runs) < RUN_WINDOW / 4);
    for (int i = 0; i < 120 && now.posted < now.staged; i++) {
        ack.consumed = now.posted;
        bench_send(b, &ack, sizeof(ack));
        now = peek_peer(b->engine, 1);
    }
    CU_ASSERT_EQUAL(now.notes_waiting, 0);
    CU_ASSERT_EQUAL(now.posted, now.staged);
    CU_ASSERT_FALSE(b->broken);
    bench_free(b);
}

/* A note or a put arrives, and the client answers in some later step, or not at all. */
struct ride {
    bool hasten;
    uint32_t answered; /* the step that takes the answer; the first consumes the record; 0: none */
    uint32_t acked;    /* the step in which the ACK leaves */
    bool put;          /* of 4096 bytes, so that its record takes over a quarter of the ring */
};

/* Sends a note, or a put, which is longer. */
static void send_answered(struct bench *b, bool put, uint32_t number)
{
    const struct wire_op op = {.head = {.words = sizeof(op) / 8, .kind = WIRE_NOTE},
                               .flow = bench_inflow(b),
                               .sequence = number};
    struct {
        struct wire_put put;
        uint8_t bytes[4096];
    } record = {.put = {.op = op, .slot = b->key.slot, .generation = b->key.generation}};

    record.put.op.head.words = sizeof(record) / 8;
    record.put.op.head.kind = WIRE_PUT;
    record.put.op.length = sizeof(record.bytes);
    CU_ASSERT_TRUE_FATAL(put ? bench_send_unseen(b, &record, sizeof(record))
                             : bench_send_unseen(b, &op, sizeof(op)));
}

static void check_ride(struct bench *b, const struct ride *ride, uint32_t number)
{
    const struct submit_record answer = {
        .size = sizeof(answer), .kind = SUBMIT_PUT, .reserve = event_bytes(0)};
    uint32_t acked = 0;

    engine_hasten(b->engine, ride->hasten);
    b->fabric.kinds = 0;
    send_answered(b, ride->put, number);
    for (uint32_t step = 1; step <= 4; step++) {
        uint32_t runs = b->fabric.runs;

        if (step == ride->answered)
            bench_submit_unseen(b, &answer);
        bench_steps(b, 1);
        CU_ASSERT_EQUAL(b->fabric.runs - runs, step == ride->answered || step == ride->acked);
        if (acked == 0 && b->fabric.kinds & 1u << WIRE_ACK)
            acked = step;
    }
    CU_ASSERT_EQUAL(acked, ride->acked);
}

/* Guards when an ACK waits for the next step, to ride with the records sent then: where the ACK
 * before it rode, or would have ridden if it had waited. An ACK never waits where the thread will
 * sleep soon. */
static void test_rides(void)
{
    static const struct ride rides[] = {
        {false, 0, 1, false}, {false, 0, 1, false}, {false, 2, 1, false}, {false, 2, 2, false},
        {false, 2, 2, true},  {false, 2, 2, false}, {false, 0, 2, false}, {false, 3, 1, false},
        {false, 2, 1, false}, {true, 2, 1, false},  {false, 2, 2, false}, {true, 0, 1, true},
        {false, 0, 1, false},
    };
    struct bench *b = linked_bench();

    bench_remote(b);
    bench_steps(b, 110); /* longer than any ACK waits */
    for (uint32_t i = 0; i < sizeof(rides) / sizeof(rides[0]); i++)
        check_ride(b, &rides[i], i);
    CU_ASSERT_FALSE(b->broken);
    bench_free(b);
}

/* The peer acknowledges all that has been posted, and the client submits a put in the same step if
 * `put`. Returns whether an ACK leaves. */
static bool ack_answered(struct bench *b, bool put)
{
    const struct submit_record note = {
        .size = sizeof(note), .kind = SUBMIT_PUT, .reserve = event_bytes(0)};
    struct wire_ack ack = {.head = {.words = sizeof(ack) / 8, .kind = WIRE_ACK},
                           .consumed = peek_peer(b->engine, 1).posted};

    b->fabric.kinds = 0;
    bench_send_unseen(b, &ack, sizeof(ack));
    if (put)
        bench_submit_unseen(b, &note);
    bench_steps(b, 1);
    return (b->fabric.kinds & 1u << WIRE_ACK) != 0;
}

/* Checks that the engine sends one ACK for every `every` ACKs of the peer. */
static void check_acks(struct bench *b, bool put, uint32_t every)
{
    for (uint32_t i = 1; i < RUN_WINDOW && !ack_answered(b, put); i++)
        continue; /* the first ACK may leave earlier, because runs from before count too */
    for (uint32_t i = 1; i <= RUN_WINDOW; i++)
        CU_ASSERT_EQUAL(ack_answered(b, put), i % every == 0);
}

/* Guards that an ACK of nothing but ACKs waits until it gives enough runs back: an eighth of the
 * window where it rides, a quarter where it leaves alone. */
static void test_acks_of_acks(void)
{
    struct bench *b = linked_bench();

    bench_remote(b);
    bench_steps(b, 110); /* longer than any ACK waits */
    check_acks(b, true, RUN_WINDOW / 8);
    check_acks(b, false, RUN_WINDOW / 4);
    CU_ASSERT_FALSE(b->broken);
    bench_free(b);
}

/* Sends a record, and makes a step at the same time as before. Returns whether an ACK leaves. */
static bool record_is_acked(struct bench *b, const void *record, uint32_t size)
{
    uint64_t deadline;

    b->fabric.kinds = 0;
    CU_ASSERT_TRUE_FATAL(bench_send_unseen(b, record, size));
    engine_step(b->engine, b->now, 64, &deadline);
    return (b->fabric.kinds & 1u << WIRE_ACK) != 0;
}

static bool block_is_acked(struct bench *b, uint8_t flags)
{
    const struct wire_vector block = {
        .op = {.head = {.words = sizeof(block) / 8, .kind = WIRE_VECTOR, .flags = flags},
               .flow = bench_inflow(b)},
        .slot = b->key.slot,
        .generation = b->key.generation};

    return record_is_acked(b, &block, sizeof(block));
}

/* Guards that the blocks of a vector are acknowledged together with the last one, or when they take
 * half of the window: a client waits only for the last one. Notes are acknowledged when they take a
 * quarter. */
static void test_acks_of_blocks(void)
{
    const uint8_t part = WIRE_NO_EVENT | WIRE_PART;
    const struct wire_flow go = {.head = {.words = sizeof(go) / 8, .kind = WIRE_GO}, .flow = 7};
    struct bench *b = linked_bench();
    uint32_t parts = 0, notes = 0;

    engine_hasten(b->engine, true); /* no ACK waits for a ride */
    bench_steps(b, 110);            /* longer than any ACK waits */
    CU_ASSERT_TRUE(block_is_acked(b, WIRE_NO_EVENT));
    CU_ASSERT_FALSE(block_is_acked(b, part));
    CU_ASSERT_TRUE(block_is_acked(b, WIRE_NO_EVENT));
    CU_ASSERT_TRUE(block_is_acked(b, part | WIRE_SOON));
    while (parts < RUN_WINDOW && !block_is_acked(b, part))
        parts++;
    CU_ASSERT_EQUAL(parts, RUN_WINDOW / 2 - 1);
    while (notes < RUN_WINDOW && !record_is_acked(b, &go, sizeof(go)))
        notes++;
    CU_ASSERT_EQUAL(notes, RUN_WINDOW / 4 - 1);
    CU_ASSERT_FALSE(block_is_acked(b, part));
    bench_steps(b, 110);
    CU_ASSERT((b->fabric.kinds & 1u << WIRE_ACK) != 0);
    CU_ASSERT_FALSE(b->broken);
    (void)block_is_acked(b, WIRE_NO_EVENT | WIRE_SOON); /* only a part asks */
    bench_steps(b, 1);
    CU_ASSERT_TRUE(b->broken);
    bench_free(b);
}

/* Guards that an ACK waits for the records that the engine has left to its next look at the peer,
 * and only for those of one look: of five looks at a run, which take four records each, the second,
 * the fourth and the last one acknowledge. */
static void test_acks_of_long_runs(void)
{
    struct wire_op notes[17];
    struct bench *b = linked_bench();
    uint64_t deadline;
    uint32_t runs;

    for (uint32_t i = 0; i < COUNT(notes); i++)
        notes[i] = (struct wire_op){.head = {.words = sizeof(notes[0]) / 8, .kind = WIRE_NOTE},
                                    .flow = bench_inflow(b),
                                    .sequence = i};
    engine_hasten(b->engine, true); /* no ACK waits for a ride */
    bench_steps(b, 110);            /* longer than any ACK waits */
    CU_ASSERT_TRUE_FATAL(bench_send_unseen(b, notes, sizeof(notes)));
    runs = b->fabric.runs;
    for (int step = 0; step < 6; step++)
        engine_step(b->engine, b->now, 4, &deadline);
    CU_ASSERT_EQUAL(b->fabric.runs - runs, 3);
    CU_ASSERT_FALSE(b->broken);
    bench_free(b);
}

/* Guards that a step does not look at a peer whose ACK only waits for its time, and that the caller
 * is given that time. */
static void test_rests(void)
{
    struct bench *b = linked_bench();
    uint64_t deadline;

    bench_remote(b);
    bench_steps(b, 110);
    bench_note(b, WIRE_STOP, 0, 0);
    CU_ASSERT_EQUAL(peek_active(b->engine), 0);
    b->fabric.kinds = 0;
    engine_step(b->engine, b->now, 64, &deadline);
    CU_ASSERT(deadline > b->now && deadline <= b->now + 1000000);
    engine_step(b->engine, deadline - 1, 64, &(uint64_t){0});
    CU_ASSERT_EQUAL(b->fabric.kinds & 1u << WIRE_ACK, 0);
    engine_step(b->engine, deadline, 64, &(uint64_t){0});
    CU_ASSERT((b->fabric.kinds & 1u << WIRE_ACK) != 0);
    CU_ASSERT_FALSE(b->broken);
    bench_free(b);
}

/* Guards that a senseless announcement ends the link and does nothing else: kind, node and number
 * are random. */
static void test_announcements(void)
{
    struct bench *b = linked_bench();
    int breaks = 0;

    for (int i = 0; i < 20000; i++) {
        uint64_t random = bench_random(b);

        /* Every second one has a valid form. */
        still_push(&b->fabric, &(struct fabric_event){
                                   .kind = FABRIC_ARRIVED,
                                   .immediate = i % 2 ? wire_immediate((uint32_t)(random >> 32) % 4,
                                                                       1, (uint16_t)random)
                                                      : (uint32_t)random});
        bench_steps(b, 1);
        if (b->broken) {
            engine_peer_lost(b->engine, 1);
            CU_ASSERT_EQUAL_FATAL(bench_link(b), 0);
            breaks++;
        }
    }
    CU_ASSERT(breaks > 0);
    bench_free(b);
}

/* Guards that, with a fabric that knows the writer of each record, a peer that writes in another's
 * name loses its link, and the other peer's ledger is not touched. */
static void test_other_names(void)
{
    for (uint32_t named = 0; named < 2; named++) {
        struct bench *b = linked_bench();

        still_push(&b->fabric,
                   &(struct fabric_event){.kind = FABRIC_ARRIVED,
                                          .peer = 1,
                                          .immediate = wire_immediate(WIRE_PAYLOAD, named, 3)});
        bench_steps(b, 1);
        CU_ASSERT_EQUAL(b->broken, named != 1);
        CU_ASSERT_EQUAL(peek_payloads(b->engine, named, 3), named == 1);
        bench_free(b);
    }
}

int main(void)
{
    CU_TestInfo tests[] = {
        {"offers", test_offers},
        {"bounds of credit", test_bounds_of_credit},
        {"a run beyond the credit", test_run_beyond_credit},
        {"a record over the ring's end", test_record_over_the_end},
        {"credit after a SWITCH", test_credit_after_switch},
        {"an ACK goes back", test_ack_goes_back},
        {"refused, then spilled", test_refused_into_spill},
        {"counts of a client", test_client_counts},
        {"how a client waits", test_client_waits},
        {"notes of one client", test_notes_of_one},
        {"window over two rings", test_window_over_two_rings},
        {"runs kept for ACKs", test_runs_kept_for_acks},
        {"a nudge without runs", test_nudge_without_runs},
        {"an ACK behind cut runs", test_ack_behind_cut_runs},
        {"rides", test_rides},
        {"ACKs of ACKs", test_acks_of_acks},
        {"ACKs of blocks of a vector", test_acks_of_blocks},
        {"ACKs of long runs", test_acks_of_long_runs},
        {"a peer whose acknowledgement waits rests", test_rests},
        {"announcements", test_announcements},
        {"announcements in another name", test_other_names},
        CU_TEST_INFO_NULL,
    };

    return suite_run("credit", tests);
}
