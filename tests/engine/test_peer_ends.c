/*
 * Contexts of the peer that end: which of the peer's notes bring an event, with which contents, and
 * where the event waits when there is no room. One engine over a fabric that only remembers; the
 * test is the peer. One thread.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "tests/suite.h"
#include "daemon/engine/engine.h"
#include "tests/engine/bench/linked_bench.h"
#include "tests/engine/bench/peek.h"
#include "tests/engine/bench/record_bench.h"
#include "proto/session_abi.h"
#include "proto/wire_abi.h"

#define EVENT (uint64_t) event_bytes(0)
/* Bytes of the events that fill the ring; the next one begins after padding. */
#define FULL (RING / EVENT * EVENT)

enum { PAGE = 4096 };

static void send_end(struct bench *b, uint8_t kind, uint32_t flow, int32_t status)
{
    const struct wire_flow note = {
        .head = {.words = sizeof(note) / 8, .kind = kind}, .flow = flow, .status = status};

    bench_send(b, &note, sizeof(note));
}

/* Returns the last event that was posted, or the one `before` events earlier. */
static struct event_record event_before(const struct bench *b, unsigned before)
{
    const uint8_t *ring = (const uint8_t *)b->session + SESSION_DATA_OFFSET + 2 * RING;
    uint64_t at = bench_events(b) - (1 + before) * EVENT;

    return *(const struct event_record *)(const void *)(ring + at % RING);
}

static struct event_record last_event(const struct bench *b)
{
    return event_before(b, 0);
}

static void fill_ring(struct bench *b)
{
    struct wire_op note = {.head = {.words = sizeof(note) / 8, .kind = WIRE_NOTE},
                           .flow = bench_inflow(b)};

    for (; note.sequence < RING / EVENT; note.sequence++)
        bench_send(b, &note, sizeof(note));
}

static void take_all(struct bench *b)
{
    atomic_store(&b->session->remote.head, bench_events(b));
    bench_steps(b, 4);
}

/* Guards which notes say that a context has ended: a CLOSE if its status says so; a GONE always.
 * The end counts once: a second note brings no event. */
static void test_notes(void)
{
    enum { NO_EVENT = 1 };
    static const struct {
        uint8_t kind;
        int32_t status;
        int event; /* status of the event, or NO_EVENT */
    } rows[] = {
        {WIRE_CLOSE, 0, NO_EVENT},
        {WIRE_CLOSE, WIRE_ENDED, 0},
        {WIRE_CLOSE, -EHOSTDOWN, -EHOSTDOWN},
        {WIRE_CLOSE, INT32_MIN, -EHOSTDOWN},
        {WIRE_CLOSE, 2, -EHOSTDOWN},
        {WIRE_GONE, WIRE_ENDED, 0},
        {WIRE_GONE, -EHOSTDOWN, -EHOSTDOWN},
        {WIRE_GONE, 0, -EHOSTDOWN},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct bench *b = linked_bench();
        uint64_t wanted = rows[i].event == NO_EVENT ? 0 : EVENT;
        uint32_t number = bench_inflow(b);

        if (rows[i].kind == WIRE_GONE) {
            bench_remote(b);
            number = 0;
        }
        send_end(b, rows[i].kind, number, rows[i].status);
        CU_ASSERT_FALSE(b->broken);
        CU_ASSERT_EQUAL_FATAL(bench_events(b), wanted);
        if (wanted > 0) {
            CU_ASSERT_EQUAL(last_event(b).kind, EVENT_PEER);
            CU_ASSERT_EQUAL(last_event(b).status, rows[i].event);
            CU_ASSERT_EQUAL(last_event(b).id_len, 0);
        }
        send_end(b, rows[i].kind, number, -EHOSTDOWN);
        CU_ASSERT_EQUAL(bench_events(b), wanted);
        bench_free(b);
    }
}

/* Guards that no end is reported while another flow of the origin is open: that flow says that the
 * origin is back. */
static void test_origin_is_back(void)
{
    struct bench *b = linked_bench();

    bench_bind(b, 6);
    send_end(b, WIRE_CLOSE, bench_inflow(b), -EHOSTDOWN);
    CU_ASSERT_EQUAL(bench_events(b), 0);
    send_end(b, WIRE_CLOSE, bench_inflow(b) + 1, -EHOSTDOWN);
    CU_ASSERT_EQUAL(bench_events(b), EVENT);
    bench_free(b);
}

/* Begins a bind of the origin by our client. */
static void begin_bind(struct bench *b)
{
    const struct engine_key key = BENCH_KEY;

    CU_ASSERT_EQUAL_FATAL(engine_bind(b->engine, 0, 1, 1, &key, 1), 0);
    bench_steps(b, 2);
}

/* The answer to the first bind where the origin's node has no such context. */
static void refuse_bind(struct bench *b)
{
    const struct wire_bound refused = {.head = {.words = sizeof(refused) / 8, .kind = WIRE_BOUND},
                                       .remote = 0,
                                       .status = -EHOSTUNREACH,
                                       .flow = WIRE_NONE};

    bench_send(b, &refused, sizeof(refused));
}

/* Guards that a bind of the origin which is still under way does not hide the origin's end: the
 * bind may fail. */
static void test_bind_under_way(void)
{
    struct bench *b = linked_bench();

    begin_bind(b);
    send_end(b, WIRE_CLOSE, bench_inflow(b), -EHOSTDOWN);
    refuse_bind(b);
    CU_ASSERT_EQUAL_FATAL(bench_events(b), EVENT);
    CU_ASSERT_EQUAL(last_event(b).kind, EVENT_PEER);
    CU_ASSERT_EQUAL(last_event(b).status, -EHOSTDOWN);
    bench_free(b);
}

/* Guards that an event that finds the ring full goes into the spill, whatever spill_max is.
 * Without memory for the spill, the event waits, also over a restart, until the client makes room.
 */
static void test_no_room(void)
{
    for (int row = 0; row < 3; row++) {
        struct bench *b = linked_bench();
        uint32_t inflow = bench_inflow(b), free = 0;

        fill_ring(b);
        CU_ASSERT_EQUAL_FATAL(bench_events(b), FULL);
        poke_config(b->engine)->spill_max = 0;
        if (row > 0)
            free = poke_memory(b->engine, 0);
        send_end(b, WIRE_CLOSE, inflow, -EHOSTDOWN);
        CU_ASSERT_EQUAL(peek_session(b->engine, 0).spill_bytes, row == 0 ? EVENT : 0);
        CU_ASSERT_EQUAL(peek_inflow(b->engine, inflow).state,
                        row == 0 ? INFLOW_FREE : INFLOW_PARTING);
        bench_steps(b, 4);
        CU_ASSERT_EQUAL(bench_events(b), FULL);
        if (row > 0)
            (void)poke_memory(b->engine, free);
        if (row == 2)
            CU_ASSERT_TRUE_FATAL(bench_reopen(b));
        take_all(b);
        CU_ASSERT_EQUAL_FATAL(bench_events(b), RING + EVENT);
        CU_ASSERT_EQUAL(last_event(b).status, -EHOSTDOWN);
        CU_ASSERT_EQUAL(peek_inflow(b->engine, inflow).state, INFLOW_FREE);
        take_all(b);
        CU_ASSERT_EQUAL(bench_events(b), RING + EVENT);
        CU_ASSERT_FALSE(b->quarantined);
        bench_free(b);
    }
}

/* Guards that the end of a context that the client has bound waits for room, too, and that
 * unbinding drops the event that waits. */
static void test_no_room_for_bound(void)
{
    for (int unbinds = 0; unbinds < 2; unbinds++) {
        struct bench *b = linked_bench();
        uint32_t free;

        bench_remote(b);
        fill_ring(b);
        free = poke_memory(b->engine, 0);
        send_end(b, WIRE_GONE, 0, WIRE_ENDED);
        if (unbinds)
            CU_ASSERT_EQUAL(engine_unbind(b->engine, 0, 0), 0);
        bench_steps(b, 4);
        (void)poke_memory(b->engine, free);
        take_all(b);
        CU_ASSERT_EQUAL(bench_events(b), unbinds ? FULL : RING + EVENT);
        CU_ASSERT_EQUAL(peek_session(b->engine, 0).ends_due, 0);
        bench_free(b);
    }
}

/* Checks that the last event says that the origin, as which the test binds, is back. */
static void expect_back(const struct bench *b)
{
    CU_ASSERT_EQUAL(last_event(b).kind, EVENT_PEER);
    CU_ASSERT_EQUAL(last_event(b).op, PEER_BACK);
    CU_ASSERT_EQUAL(last_event(b).status, 0);
    CU_ASSERT_EQUAL(last_event(b).id_len, 0);
    CU_ASSERT_EQUAL(last_event(b).peer, 1);
}

static void bind_origin(struct bench *b, uint32_t remote)
{
    begin_bind(b);
    bench_bound(b, remote, 0, 3);
}

/* Guards that a bind by a context whose end was reported brings an event, once for each flow; no
 * other bind does. */
static void test_comes_back(void)
{
    enum { UNBINDS, ENDS, ENDS_THEN_BOUND };

    for (int row = UNBINDS; row <= ENDS_THEN_BOUND; row++) {
        struct bench *b = linked_bench();
        uint64_t posted = row == UNBINDS ? 0 : EVENT;

        send_end(b, WIRE_CLOSE, bench_inflow(b), row == UNBINDS ? 0 : -EHOSTDOWN);
        CU_ASSERT_EQUAL_FATAL(bench_events(b), posted);
        if (row == ENDS_THEN_BOUND) {
            bind_origin(b, 0);
            posted += EVENT;
        }
        bench_bind(b, 7);
        CU_ASSERT_FALSE(b->broken);
        if (row != UNBINDS) {
            posted += EVENT;
            CU_ASSERT_EQUAL_FATAL(bench_events(b), posted);
            expect_back(b);
        }
        bench_bind(b, 7); /* a bind of another key by the same flow */
        CU_ASSERT_EQUAL(bench_events(b), posted);
        bench_free(b);
    }
}

/* Guards that a bind of a context whose end was reported brings the event, too: the client may not
 * have read the end yet. It comes once for each flow, and not for a context that has not ended, nor
 * for a bind that its node has refused. */
static void test_is_bound_again(void)
{
    enum { NEW, ENDED_AS_ORIGIN, ENDED_AS_TARGET, ENDED_AND_REFUSED };

    for (int row = NEW; row <= ENDED_AND_REFUSED; row++) {
        struct bench *b = linked_bench();
        uint64_t posted = row == NEW ? 0 : EVENT;
        uint32_t remote = row == ENDED_AS_TARGET;

        if (row == ENDED_AS_TARGET) {
            bench_remote(b);
            send_end(b, WIRE_GONE, 0, -EHOSTDOWN);
        } else if (row != NEW) {
            send_end(b, WIRE_CLOSE, bench_inflow(b), -EHOSTDOWN);
        }
        CU_ASSERT_EQUAL_FATAL(bench_events(b), posted);
        begin_bind(b);
        if (row == ENDED_AND_REFUSED)
            refuse_bind(b);
        else
            bench_bound(b, remote, 0, 3);
        CU_ASSERT_FALSE(b->broken);
        if (row == ENDED_AS_ORIGIN || row == ENDED_AS_TARGET) {
            posted += EVENT;
            CU_ASSERT_EQUAL_FATAL(bench_events(b), posted);
            expect_back(b);
            bind_origin(b, remote + 1);
        }
        CU_ASSERT_EQUAL(bench_events(b), posted);
        bench_free(b);
    }
}

/* Guards that the event after a bind waits for room behind the event of the end, and that a restart
 * loses neither. Where the context ends again, or is unbound, meanwhile, the event is dropped. */
static void test_is_bound_again_without_room(void)
{
    enum { EARLY, WAITS, RESTARTS, ENDS, UNBINDS }; /* EARLY: memory is freed before the answer */

    for (int row = EARLY; row <= UNBINDS; row++) {
        struct bench *b = linked_bench();
        uint32_t free;

        fill_ring(b);
        free = poke_memory(b->engine, 0);
        send_end(b, WIRE_CLOSE, bench_inflow(b), -EHOSTDOWN);
        begin_bind(b);
        if (row == EARLY)
            (void)poke_memory(b->engine, free);
        bench_bound(b, 0, 0, 3);
        CU_ASSERT_EQUAL(bench_events(b), FULL);
        if (row == ENDS)
            send_end(b, WIRE_GONE, 0, WIRE_ENDED);
        if (row == UNBINDS)
            CU_ASSERT_EQUAL(engine_unbind(b->engine, 0, 0), 0);
        bench_steps(b, 4);
        if (row != EARLY)
            (void)poke_memory(b->engine, free);
        if (row == RESTARTS)
            CU_ASSERT_TRUE_FATAL(bench_reopen(b));
        take_all(b);
        CU_ASSERT_EQUAL(bench_events(b), RING + EVENT * (row == UNBINDS ? 1 : 2));
        CU_ASSERT_EQUAL(peek_session(b->engine, 0).ends_due, 0);
        if (row <= RESTARTS) {
            expect_back(b);
            CU_ASSERT_EQUAL(event_before(b, 1).status, -EHOSTDOWN);
        } else {
            CU_ASSERT_EQUAL(last_event(b).op, PEER_ENDED);
        }
        CU_ASSERT_FALSE(b->quarantined);
        bench_free(b);
    }
}

/* Binds a context of our own node that has the rank and number of node 1's. */
static void bind_here(struct bench *b, struct session_shared *memory)
{
    const struct engine_client_info info = {.rank = 1, .size = 2, .job = BENCH_JOB};
    const struct session_sizes rings = {RING, RING, RING, RING, RING};
    int client = engine_client_open(b->engine, &info);

    CU_ASSERT_FATAL(client >= 0);
    CU_ASSERT_EQUAL_FATAL(engine_session_open(b->engine, (uint32_t)client, 0, memory, &rings, 0),
                          1);
    b->remote = WIRE_NONE;
    CU_ASSERT_EQUAL_FATAL(engine_bind(b->engine, 0, 0, 1, NULL, 2), 0);
    bench_steps(b, 8);
    CU_ASSERT_NOT_EQUAL_FATAL(b->remote, WIRE_NONE);
}

/* Guards that the end of a context does not hide a later one with its number, on another node, that
 * the client has bound by then: the end of a bound context is shown in front of PEER_BACK, also
 * where both wait for room, or where PEER_BACK already waits; that of an origin is not shown. */
static void test_is_elsewhere(void)
{
    enum { ORIGIN, BOUND, NO_ROOM, TWICE };
    static const struct session_sizes rings = {RING, RING, RING, RING, RING};
    const uint64_t events[] = {0, 2 * EVENT, RING + 2 * EVENT, RING + 3 * EVENT};

    for (int row = ORIGIN; row <= TWICE; row++) {
        struct bench *b = unbound_bench(true);
        size_t bytes = (session_bytes(&rings) + PAGE - 1) / PAGE * PAGE;
        struct session_shared *memory = aligned_alloc(PAGE, bytes);
        uint32_t remote = b->remote + 1, chunks = 0;

        CU_ASSERT_PTR_NOT_NULL_FATAL(memory);
        memset(memory, 0, bytes);
        bench_bind(b, 5);
        if (row != ORIGIN)
            bind_origin(b, remote);
        bind_here(b, memory);
        CU_ASSERT_EQUAL_FATAL(bench_events(b), 0);
        if (row >= NO_ROOM)
            fill_ring(b);
        if (row == NO_ROOM)
            chunks = poke_memory(b->engine, 0);
        poke_config(b->engine)->spill_max = 0; /* has room for ends only */
        if (row == ORIGIN)
            send_end(b, WIRE_CLOSE, bench_inflow(b), -EHOSTDOWN);
        else
            send_end(b, WIRE_GONE, peek_flow_of(b->engine, remote), -EHOSTDOWN);
        CU_ASSERT_EQUAL(peek_session(b->engine, 0).ends_due, row == NO_ROOM ? 2 : row == TWICE);
        if (row == NO_ROOM)
            (void)poke_memory(b->engine, chunks);
        if (row == TWICE) {
            bind_origin(b, remote + 2);
            send_end(b, WIRE_GONE, peek_flow_of(b->engine, remote + 2), -EHOSTDOWN);
            CU_ASSERT_EQUAL(peek_session(b->engine, 0).ends_due, 1);
        }
        if (row >= NO_ROOM)
            take_all(b);
        CU_ASSERT_EQUAL(bench_events(b), events[row]);
        if (row != ORIGIN) {
            expect_back(b);
            CU_ASSERT_EQUAL(event_before(b, 1).op, PEER_ENDED);
        }
        CU_ASSERT_EQUAL(peek_session(b->engine, 0).ends_due, 0);
        CU_ASSERT_FALSE(b->broken || b->quarantined);
        bench_free(b);
        free(memory);
    }
}

/* Bytes of events that the client has been shown when the answer to a bind leaves. */
static struct {
    bool answered;
    uint64_t shown;
} answer;

static void watch_answer(void *context)
{
    const struct bench *b = context;

    if (!answer.answered && b->fabric.kinds & UINT64_C(1) << WIRE_BOUND) {
        answer.answered = true;
        answer.shown = bench_events(b);
    }
}

/* Guards that PEER_BACK is shown before the answer to the origin's bind leaves. The client may
 * learn of that answer by another way, and then waits for the origin. */
static void test_back_before_bound(void)
{
    struct bench *b = linked_bench();

    send_end(b, WIRE_CLOSE, bench_inflow(b), -EHOSTDOWN);
    CU_ASSERT_EQUAL_FATAL(bench_events(b), EVENT);
    b->fabric.kinds = 0;
    b->fabric.watch_context = b;
    b->fabric.watch = watch_answer;
    answer.answered = false;
    bench_bind(b, 7);
    CU_ASSERT_TRUE_FATAL(answer.answered);
    CU_ASSERT_EQUAL(answer.shown, 2 * EVENT);
    expect_back(b);
    bench_free(b);
}

/* Guards that a process which takes over shows the events that the one before it had posted, and
 * not shown, before its first step: the session's counts already include them. */
static void test_not_shown(void)
{
    struct bench *b = linked_bench();

    send_end(b, WIRE_CLOSE, bench_inflow(b), -EHOSTDOWN);
    CU_ASSERT_EQUAL_FATAL(bench_events(b), EVENT);
    atomic_store(&b->session->remote.tail, 0);
    CU_ASSERT_TRUE_FATAL(bench_reopen(b));
    CU_ASSERT_EQUAL(bench_events(b), EVENT);
    bench_free(b);
}

static unsigned open_inflows(const struct bench *b)
{
    unsigned count = 0;

    for (uint32_t i = 0; i < 4; i++)
        count += peek_inflow(b->engine, i).state == INFLOW_OPEN;
    return count;
}

/* Guards that the event PEER_BACK waits while the spill is full, or while the event of the origin's
 * end still waits, and that a restart loses neither event. PEER_BACK comes after the end's event.
 * Where the origin leaves again meanwhile, no PEER_BACK comes. */
static void test_comes_back_without_room(void)
{
    enum { SPILLS = 1, RESTARTS = 2, LEAVES = 4, EARLY = 8, ROWS = 16 };

    for (int row = 0; row < ROWS; row++) {
        struct bench *b = linked_bench();
        uint32_t free = 0;

        fill_ring(b);
        poke_config(b->engine)->spill_max = (uint32_t)(2 * EVENT - 1);
        if (!(row & SPILLS))
            free = poke_memory(b->engine, 0);
        send_end(b, WIRE_CLOSE, bench_inflow(b), -EHOSTDOWN);
        CU_ASSERT_EQUAL(peek_session(b->engine, 0).spill_bytes, row & SPILLS ? EVENT : 0);
        if (!(row & SPILLS) && row & EARLY) /* memory is freed before the bind */
            (void)poke_memory(b->engine, free);
        bench_bind(b, 7);
        CU_ASSERT_EQUAL(bench_events(b), FULL);
        if (!(row & SPILLS) && !(row & EARLY))
            (void)poke_memory(b->engine, free);
        if (row & LEAVES)
            for (uint32_t i = 0; i < 4; i++)
                if (peek_inflow(b->engine, i).state == INFLOW_OPEN)
                    send_end(b, WIRE_CLOSE, i, 0);
        if (row & RESTARTS)
            CU_ASSERT_TRUE_FATAL(bench_reopen(b));
        take_all(b);
        CU_ASSERT_EQUAL(bench_events(b), RING + EVENT * (row & LEAVES ? 1 : 2));
        CU_ASSERT_EQUAL(open_inflows(b), row & LEAVES ? 0 : 1);
        if (!(row & LEAVES)) {
            expect_back(b);
            CU_ASSERT_EQUAL(event_before(b, 1).op, PEER_ENDED);
            CU_ASSERT_EQUAL(event_before(b, 1).status, -EHOSTDOWN);
        }
        CU_ASSERT_FALSE(b->quarantined);
        bench_free(b);
    }
}

int main(void)
{
    CU_TestInfo tests[] = {
        {"notes", test_notes},
        {"the origin is back", test_origin_is_back},
        {"a bind is under way", test_bind_under_way},
        {"no room", test_no_room},
        {"no room, of a bound peer", test_no_room_for_bound},
        {"comes back", test_comes_back},
        {"is bound again", test_is_bound_again},
        {"is bound again, no room", test_is_bound_again_without_room},
        {"a later context is elsewhere", test_is_elsewhere},
        {"an event that was not shown", test_not_shown},
        {"comes back, before its bind is answered", test_back_before_bound},
        {"comes back, no room", test_comes_back_without_room},
        CU_TEST_INFO_NULL,
    };

    return suite_run("peer ends", tests);
}
