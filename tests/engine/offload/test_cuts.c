/*
 * Many puts to an offload that are cut (daemon/engine/offload/puts/cuts.h): in bounded steps,
 * client by client, and over a restart. Each case says which rule it guards. Thread: one.
 */
#include <stdlib.h>
#include <string.h>
#include "tests/engine/offload/packet_bench.h"
#include "tests/suite.h"

enum { FLOWS = 40, LOOPS = 2000, CUT_MOST = OFFLOAD_CUT_UNITS / (2 * LOOPS) + 1 };

/* The flows have inflows with consecutive numbers. */
static struct packet_record packet_of(const struct bench *b, uint32_t flow, uint32_t at)
{
    struct packet_record p = packet(b, at);

    p.w.put.op.flow += flow;
    return p;
}

static struct bench *bench_for_many(void)
{
    const struct bench_shape shape = {.ring_bytes = RING, .region_bytes = 4096, .entries = 64};
    struct bench *b = bench_new(&shape);

    CU_ASSERT_PTR_NOT_NULL_FATAL(b);
    CU_ASSERT_EQUAL_FATAL(bench_link(b), 0);
    return b;
}

/* Begins a put on each of many flows: the first packet of each arrives. */
static void begin_many_puts(struct bench *b, uint32_t handle)
{
    for (uint32_t i = 0; i < FLOWS; i++) {
        const struct packet_record p = packet_of(b, i, 0);

        bench_bind(b, ORIGIN_FLOW + i);
        send_packet(b, &p);
    }
    CU_ASSERT_FALSE_FATAL(b->broken);
    check_runs(b, handle, FLOWS, FLOWS, 0);
}

static struct bench *with_many_puts(uint32_t *handle)
{
    struct bench *b = bench_for_many();

    *handle = create_with_loops(b, &b->key, HANDLER_PROCESS_DATA, LOOPS);
    begin_many_puts(b, *handle);
    return b;
}

static uint64_t completed(const struct bench *b, uint32_t handle)
{
    return peek_offload(b->engine, handle).counters[HANDLER_COMPLETION];
}

/* Makes steps until all puts are cut, and guards that no step runs completion handlers without a
 * bound. */
static void cut_in_steps(struct bench *b, uint32_t handle)
{
    uint32_t steps = 0;

    CU_ASSERT(completed(b, handle) > 0);
    CU_ASSERT(completed(b, handle) <= CUT_MOST);
    for (uint64_t before; (before = completed(b, handle)) < FLOWS && steps < FLOWS; steps++) {
        bench_steps(b, 1);
        CU_ASSERT(completed(b, handle) > before);
        CU_ASSERT(completed(b, handle) <= before + CUT_MOST);
    }
    CU_ASSERT(steps >= FLOWS / CUT_MOST - 1);
    bench_steps(b, 1);
    check_runs(b, handle, FLOWS, FLOWS, FLOWS);
}

/* Guards the cut of many puts when their client disables or destroys the offload. */
static void many_are_cut(void)
{
    for (uint32_t destroy = 0; destroy < 2; destroy++) {
        int (*end)(struct engine *, uint32_t, uint32_t) =
            destroy ? engine_offload_destroy : engine_offload_disable;
        uint32_t handle;
        struct bench *b = with_many_puts(&handle);

        CU_ASSERT_EQUAL(end(b->engine, 0, handle), -EAGAIN);
        cut_in_steps(b, handle);
        /* An offload that was to be disabled is disabled even if the call is not repeated. */
        CU_ASSERT_EQUAL(peek_offload(b->engine, handle).state,
                        destroy ? OFFLOAD_OPEN : OFFLOAD_DISABLED);
        CU_ASSERT_EQUAL(peek_offload(b->engine, handle).ending,
                        destroy ? OFFLOAD_TO_DESTROY : OFFLOAD_STAYS);
        CU_ASSERT_EQUAL(end(b->engine, 0, handle), 0);
        CU_ASSERT_EQUAL(engine_offload_destroy(b->engine, 0, handle), destroy ? -EINVAL : 0);
        CU_ASSERT_FALSE(b->broken || b->quarantined);
        bench_free(b);
    }
}

/* Guards the cut of many puts of a node that is lost: each put has its event, the client has one
 * more event, which says that the origin has ended, and the inflows are freed. */
static void many_are_lost(void)
{
    uint32_t handle;
    struct bench *b = with_many_puts(&handle);
    uint64_t events = bench_events(b);

    engine_peer_lost(b->engine, 1);
    cut_in_steps(b, handle);
    CU_ASSERT_EQUAL(bench_events(b) - events,
                    FLOWS * event_bytes(sizeof(struct offload_word)) + event_bytes(0));
    CU_ASSERT_EQUAL(peek_census(b->engine).inflows, 0);
    CU_ASSERT_EQUAL(engine_offload_destroy(b->engine, 0, handle), 0);
    CU_ASSERT_FALSE(b->quarantined);
    bench_free(b);
}

/* Guards that when a daemon dies while an offload is being disabled, the next process completes
 * that, however many steps it takes. */
static void disabled_over_a_restart(void)
{
    uint32_t handle;
    struct bench *b = with_many_puts(&handle);

    CU_ASSERT_EQUAL(engine_offload_disable(b->engine, 0, handle), -EAGAIN);
    CU_ASSERT_TRUE_FATAL(bench_reopen(b));
    bench_steps(b, FLOWS);
    CU_ASSERT_EQUAL(peek_offload(b->engine, handle).state, OFFLOAD_DISABLED);
    CU_ASSERT_EQUAL(peek_offload(b->engine, handle).ending, OFFLOAD_STAYS);
    CU_ASSERT_EQUAL(engine_offload_enable(b->engine, 0, handle), 0);
    CU_ASSERT_EQUAL(peek_offload(b->engine, handle).state, OFFLOAD_OPEN);
    bench_free(b);
}

/* Guards that an offload which was being destroyed when the daemon died is destroyed, even if the
 * call is not repeated. */
static void destroyed_over_a_restart(void)
{
    uint32_t handle;
    struct bench *b = with_many_puts(&handle);

    CU_ASSERT_EQUAL(engine_offload_destroy(b->engine, 0, handle), -EAGAIN);
    CU_ASSERT_TRUE_FATAL(bench_reopen(b));
    bench_steps(b, FLOWS);
    CU_ASSERT_EQUAL(peek_offload(b->engine, handle).state, OFFLOAD_FREE);
    CU_ASSERT_EQUAL(b->offloads_closed, 1);
    CU_ASSERT_EQUAL(engine_offload_destroy(b->engine, 0, handle), -EINVAL);
    bench_free(b);
}

/* The event at a position of the client's ring. */
static const struct event_record *event_at(const struct bench *b, uint64_t position)
{
    const uint8_t *ring = (const uint8_t *)b->session + SESSION_DATA_OFFSET + 2 * RING;

    return (const struct event_record *)(const void *)(ring + position % RING);
}

/* Guards origins that ended and came back before their client had room for the event of that, and
 * are lost now: their puts are cut anyway, in later steps too, and the client gets one event that
 * they have gone. */
static void lost_when_they_were_back(void)
{
    const uint32_t event = event_bytes(0), full = RING / event;
    struct bench *b = bench_for_many();
    struct wire_op note = {.head = {.words = sizeof(note) / 8, .kind = WIRE_NOTE}};
    struct wire_flow close = {.head = {.words = sizeof(close) / 8, .kind = WIRE_CLOSE},
                              .status = -EHOSTDOWN};
    uint32_t handle =
        create_like(b, &b->key,
                    (struct engine_offload_info){.program = load(b, HANDLER_PROCESS_DATA, LOOPS),
                                                 .flags = ENGINE_OFFLOAD_QUIET});
    const struct event_record *ended = NULL;
    uint32_t ends = 0;
    uint64_t posted;

    bench_bind(b, ORIGIN_FLOW + FLOWS);
    for (note.flow = bench_inflow(b); note.sequence < full - 1; note.sequence++)
        CU_ASSERT_TRUE_FATAL(bench_send(b, &note, sizeof(note)));
    close.flow = bench_inflow(b);
    CU_ASSERT_TRUE_FATAL(bench_send(b, &close, sizeof(close))); /* fills the ring */
    poke_config(b->engine)->spill_max = 0;
    begin_many_puts(b, handle);
    posted = bench_events(b);
    CU_ASSERT_EQUAL_FATAL(posted, full * event);
    engine_peer_lost(b->engine, 1);
    CU_ASSERT(completed(b, handle) < FLOWS);
    atomic_store(&b->session->remote.head, posted);
    bench_steps(b, FLOWS);
    CU_ASSERT_EQUAL(completed(b, handle), FLOWS);
    for (uint64_t at = RING; at < bench_events(b); at += ended->size) {
        ended = event_at(b, at);
        ends += ended->kind == EVENT_PEER;
    }
    CU_ASSERT_EQUAL(ends, 1);
    CU_ASSERT(ended->kind == EVENT_PEER && ended->op == PEER_ENDED);
    CU_ASSERT_EQUAL(peek_census(b->engine).inflows, 0);
    CU_ASSERT_FALSE(b->quarantined);
    bench_free(b);
}

/* Guards that a put which is cut has its event even where ring and spill are full, because the
 * client may keep what the handlers have begun until that event; and that the event comes before
 * that of the origin's end. Only a quiet offload drops it there. */
static void lost_without_room(void)
{
    const uint32_t event = event_bytes(0), full = RING / event;

    for (uint32_t quiet = 0; quiet < 2; quiet++) {
        struct bench *b = bench_for_many();
        struct wire_op note = {.head = {.words = sizeof(note) / 8, .kind = WIRE_NOTE}};
        struct packet_record p;
        const struct event_record *first;

        create_like(b, &b->key,
                    (struct engine_offload_info){.program = load(b, HANDLER_PROCESS_DATA, 0),
                                                 .flags = quiet ? ENGINE_OFFLOAD_QUIET : 0});
        bench_bind(b, ORIGIN_FLOW);
        bench_bind(b, ORIGIN_FLOW + 1);
        p = packet_of(b, 1, 0);
        send_packet(b, &p);
        for (note.flow = bench_inflow(b); note.sequence < full; note.sequence++)
            CU_ASSERT_TRUE_FATAL(bench_send(b, &note, sizeof(note)));
        poke_config(b->engine)->spill_max = 0;
        CU_ASSERT_EQUAL_FATAL(bench_events(b), full * event);
        engine_peer_lost(b->engine, 1);
        bench_steps(b, 2);
        atomic_store(&b->session->remote.head, full * event);
        bench_steps(b, 2);
        CU_ASSERT_EQUAL(bench_events(b) - RING,
                        event + (quiet ? 0 : event_bytes(sizeof(struct offload_word))));
        first = event_at(b, RING);
        CU_ASSERT_EQUAL(first->kind, quiet ? EVENT_PEER : EVENT_OFFLOAD);
        CU_ASSERT_EQUAL(first->status, quiet ? -EHOSTDOWN : -ECONNABORTED);
        CU_ASSERT_FALSE(b->quarantined);
        bench_free(b);
    }
}

/* Guards a put that was refused because its offload still binds its targets, and whose origin is
 * lost when no more puts can be cut in the same step. */
static void lost_with_a_new_offload(void)
{
    struct bench *b = bench_for_many();
    uint32_t target = 0, handle;
    struct packet_record p;
    struct engine_key own;

    bench_remote(b);
    handle = create_with_loops(b, &b->key, HANDLER_PROCESS_DATA, LOOPS);
    CU_ASSERT_EQUAL_FATAL(engine_region_open(b->engine, 0, 0, 4096, 4096, 3, &own), 0);
    create_like(b, &own,
                (struct engine_offload_info){.program = load(b, HANDLER_PROCESS_DATA, 0),
                                             .target_count = 1,
                                             .targets = &target});
    bench_bind(b, ORIGIN_FLOW + FLOWS); /* the oldest flow */
    p = packet(b, 0);
    p.w.put.slot = own.slot;
    p.w.put.generation = own.generation;
    send_packet(b, &p);
    for (uint32_t i = 0; i < FLOWS; i++) {
        p = packet_of(b, 1 + i, 0);
        bench_bind(b, ORIGIN_FLOW + i);
        send_packet(b, &p);
    }
    check_runs(b, handle, FLOWS, FLOWS, 0);
    engine_peer_lost(b->engine, 1);
    bench_steps(b, FLOWS);
    CU_ASSERT_EQUAL(completed(b, handle), FLOWS);
    CU_ASSERT_EQUAL(peek_census(b->engine).inflows, 0);
    CU_ASSERT_FALSE(b->quarantined);
    bench_free(b);
}

/* Guards that between the steps of a cut no put begins, and that the next packet of a put that has
 * begun cuts that put. */
static void packets_between_cuts(void)
{
    uint32_t handle;
    struct bench *b = with_many_puts(&handle);
    struct packet_record p = packet_of(b, 0, PART); /* the last flow is cut first, flow 0 last */

    CU_ASSERT_EQUAL(engine_offload_destroy(b->engine, 0, handle), -EAGAIN);
    send_packet(b, &p);
    CU_ASSERT(completed(b, handle) < FLOWS);
    p = packet_of(b, 0, 2 * PART);
    send_packet(b, &p);
    CU_ASSERT_EQUAL(failed(b), -ESHUTDOWN);
    p = packet_of(b, 0, 0);
    p.w.put.op.sequence++;
    send_packet(b, &p);
    bench_steps(b, FLOWS);
    check_runs(b, handle, FLOWS, FLOWS, FLOWS);
    CU_ASSERT_EQUAL(engine_offload_destroy(b->engine, 0, handle), 0);
    CU_ASSERT_FALSE(b->broken || b->quarantined);
    bench_free(b);
}

/* ---- clients take turns ---------------------------------------------------------------------- */

/* A second client, of rank 1, with one put under way to its offload. */
struct other_client {
    void *session, *segment;
    struct engine_key key;
    uint32_t handle;
};

static void *zeroed(size_t bytes)
{
    size_t whole = (bytes + 4095) / 4096 * 4096;
    void *at = aligned_alloc(4096, whole);

    CU_ASSERT_PTR_NOT_NULL_FATAL(at);
    memset(at, 0, whole);
    return at;
}

static void open_other(struct bench *b, struct other_client *o)
{
    const struct engine_client_info client = {.rank = 1, .size = 2, .job = BENCH_JOB};
    struct engine_offload_info info = {.program = 0};
    const struct session_sizes sizes = b->session->sizes;
    struct wire_bind bind = {.head = {.words = sizeof(bind) / 8, .kind = WIRE_BIND},
                             .flow = WIRE_NONE,
                             .origin_flow = ORIGIN_FLOW + FLOWS,
                             .origin = 1,
                             .target = 1,
                             .has_key = 1,
                             .job = BENCH_JOB};
    struct packet_record p = packet_of(b, FLOWS, 0);

    o->session = zeroed(b->session_bytes);
    o->segment = zeroed(4096);
    CU_ASSERT_EQUAL_FATAL(engine_client_open(b->engine, &client), 1);
    CU_ASSERT_EQUAL_FATAL(engine_session_open(b->engine, 1, 0, o->session, &sizes, 0), 1);
    CU_ASSERT_EQUAL_FATAL(engine_segment_open(b->engine, 1, o->segment, 4096), 1);
    CU_ASSERT_EQUAL_FATAL(engine_region_open(b->engine, 1, 1, 0, 4096, 3, &o->key), 0);
    info.program = load_for(b, 1, HANDLER_PROCESS_DATA, LOOPS);
    o->handle = create_for(b, 1, &o->key, info);
    bind.slot = p.w.put.slot = o->key.slot;
    bind.generation = p.w.put.generation = o->key.generation;
    memcpy(bind.secret, o->key.secret, sizeof(bind.secret));
    CU_ASSERT_TRUE_FATAL(bench_send(b, &bind, sizeof(bind)));
    send_packet(b, &p);
    CU_ASSERT_FALSE_FATAL(b->broken);
    check_runs(b, o->handle, 1, 1, 0);
}

static void close_other(struct other_client *o)
{
    free(o->session);
    free(o->segment);
}

/* Guards that one client's put is cut in the second step, however many puts of another client are
 * to be cut; the others follow. */
static void clients_take_turns(void)
{
    struct other_client other;
    uint64_t before;
    uint32_t handle;
    struct bench *b = with_many_puts(&handle);

    open_other(b, &other);
    CU_ASSERT_EQUAL(engine_offload_disable(b->engine, 0, handle), -EAGAIN);
    CU_ASSERT_EQUAL(engine_offload_disable(b->engine, 1, other.handle), -EAGAIN);
    bench_steps(b, 1);
    before = completed(b, handle);
    bench_steps(b, 1);
    CU_ASSERT_EQUAL(completed(b, other.handle), 1);
    CU_ASSERT_EQUAL(completed(b, handle), before);
    CU_ASSERT(before < FLOWS);
    bench_steps(b, FLOWS);
    CU_ASSERT_EQUAL(completed(b, handle), FLOWS);
    CU_ASSERT_EQUAL(peek_offload(b->engine, handle).state, OFFLOAD_DISABLED);
    CU_ASSERT_EQUAL(peek_offload(b->engine, other.handle).state, OFFLOAD_DISABLED);
    bench_free(b);
    close_other(&other);
}

/* Guards that the cut of other puts continues when the context of the client that is next closes
 * before its turn has come. */
static void closes_before_its_turn(void)
{
    struct other_client other;
    uint32_t handle;
    struct bench *b = with_many_puts(&handle);

    open_other(b, &other);
    CU_ASSERT_EQUAL(engine_offload_disable(b->engine, 0, handle), -EAGAIN);
    CU_ASSERT_EQUAL(engine_offload_disable(b->engine, 1, other.handle), -EAGAIN);
    bench_steps(b, 1);
    CU_ASSERT_EQUAL(completed(b, other.handle), 0);
    engine_session_close(b->engine, 1);
    bench_steps(b, 2 * FLOWS);
    CU_ASSERT_EQUAL(completed(b, handle), FLOWS);
    bench_free(b);
    close_other(&other);
}

int main(void)
{
    CU_TestInfo tests[] = {{"many are cut", many_are_cut},
                           {"many are lost", many_are_lost},
                           {"disabled over a restart", disabled_over_a_restart},
                           {"destroyed over a restart", destroyed_over_a_restart},
                           {"lost when they were back", lost_when_they_were_back},
                           {"lost without room", lost_without_room},
                           {"lost with a new offload", lost_with_a_new_offload},
                           {"packets between cuts", packets_between_cuts},
                           {"clients take turns", clients_take_turns},
                           {"a context closes before its turn", closes_before_its_turn},
                           CU_TEST_INFO_NULL};

    return suite_run("cuts", tests);
}
