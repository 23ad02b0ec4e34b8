/*
 * Packets of puts to an offload's region, from a peer that is the test: which ones do not fit those
 * before them, and end the link; which are done already, and are skipped; and that nothing else
 * writes to the region. Each case says which rule it guards.
 */
#include <stdlib.h>
#include <string.h>
#include "daemon/handlers/image.h"
#include "tests/engine/bench/linked_bench.h"
#include "tests/engine/bench/peek.h"
#include "tests/engine/offload/assemble.h"
#include "tests/suite.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))

enum { SEQUENCE = 1, PLACE = 128, TOTAL = 192, PART = 64, ORIGIN_FLOW = 5 };

/* ---- the offload ----------------------------------------------------------------------------- */

#define RETURN(value)    ALU(CODE_MOV, 0, value), EXIT
#define COUNT_RUN(stage) ALU(CODE_MOV, 1, stage), ALU(CODE_MOV, 2, 1), HELPER(HELPER_COUNTER_ADD)

/* Each handler counts its runs; this is what the header handler returns. The completion handler
 * turns in a loop first, so often, for 2 units each. */
static uint32_t load(struct bench *b, uint32_t returned, uint32_t loops)
{
    const struct handler_instruction code[] = {COUNT_RUN(HANDLER_HEADER),
                                               RETURN(returned),
                                               COUNT_RUN(HANDLER_PAYLOAD),
                                               RETURN(HANDLER_SUCCESS),
                                               ALU(CODE_MOV, 3, loops + 1),
                                               ALU(CODE_SUB, 3, 1),
                                               op(CODE_JMP | CODE_JNE, 3, 0, -2, 0),
                                               COUNT_RUN(HANDLER_COMPLETION),
                                               RETURN(HANDLER_SUCCESS)};
    uint64_t words[64] = {0};
    struct handler_image *image = (void *)words;
    uint32_t bytes = (uint32_t)image_bytes(COUNT(code), 0, 0);
    struct image_error wrong;
    int program;

    *image = (struct handler_image){
        .magic = HANDLER_IMAGE_MAGIC, .instructions = COUNT(code), .entry = {0, 5, 10}};
    memcpy(words + 5, code, sizeof(code));
    CU_ASSERT_EQUAL_FATAL(image_check(words, bytes, &wrong), 0);
    program = engine_program_load(b->engine, 0, image, bytes);
    CU_ASSERT_FATAL(program >= 0);
    return (uint32_t)program;
}

/* An offload of this region of the client's: its handle. */
static uint32_t create_like(struct bench *b, const struct engine_key *key,
                            struct engine_offload_info info)
{
    int offload;

    info.takes = OFFLOAD_PUTS;
    info.host = (struct engine_range){key->slot, key->generation, 0, 4096};
    offload = engine_offload_create(b->engine, 0, &info, 1);
    CU_ASSERT_FATAL(offload >= 0);
    bench_steps(b, 2);
    return (uint32_t)offload;
}

static uint32_t create_with_loops(struct bench *b, const struct engine_key *key, uint32_t returned,
                                  uint32_t loops)
{
    return create_like(b, key, (struct engine_offload_info){.program = load(b, returned, loops)});
}

static uint32_t create(struct bench *b, const struct engine_key *key, uint32_t returned)
{
    return create_with_loops(b, key, returned, 0);
}

static struct bench *new_bench(uint32_t *handle)
{
    const struct bench_shape shape = {.ring_bytes = RING, .region_bytes = 4096, .entries = 64};
    struct bench *b = bench_new(&shape);

    CU_ASSERT_PTR_NOT_NULL_FATAL(b);
    CU_ASSERT_EQUAL_FATAL(bench_link(b), 0);
    *handle = create(b, &b->key, HANDLER_PROCESS_DATA);
    bench_bind(b, ORIGIN_FLOW);
    CU_ASSERT_FALSE_FATAL(b->broken);
    return b;
}

/* ---- records --------------------------------------------------------------------------------- */

struct packet_record {
    struct wire_packet w;
    uint8_t bytes[PART];
};

static struct packet_record packet(const struct bench *b, uint32_t at)
{
    return (struct packet_record){
        .w = {
            .put = {.op = {.head = {.words = sizeof(struct packet_record) / 8, .kind = WIRE_PACKET},
                           .flow = bench_inflow(b),
                           .sequence = SEQUENCE,
                           .length = PART},
                    .slot = b->key.slot,
                    .generation = b->key.generation,
                    .offset = PLACE},
            .total = TOTAL,
            .at = at}};
}

static void send_packet(struct bench *b, const struct packet_record *p)
{
    CU_ASSERT_TRUE_FATAL(bench_send(b, p, p->w.put.op.head.words * 8u));
}

static void send_at(struct bench *b, uint32_t at)
{
    const struct packet_record p = packet(b, at);

    send_packet(b, &p);
}

/* The status of the first FAIL that has been sent to us; 0: none has. */
static int32_t failed(const struct bench *b)
{
    uint64_t end = peek_peer(b->engine, 1).staged;

    for (uint64_t at = 0; at < end;) {
        const struct wire_flow *record = peek_record(b->engine, 1, at);

        if (record->head.kind == WIRE_FAIL)
            return record->status;
        at += record->head.words * UINT64_C(8);
    }
    return 0;
}

/* Records of this kind that have been sent to us. */
static uint32_t sent(const struct bench *b, uint8_t kind)
{
    uint64_t end = peek_peer(b->engine, 1).staged;
    uint32_t count = 0;

    for (uint64_t at = 0; at < end;) {
        const struct wire_flow *record = peek_record(b->engine, 1, at);

        count += record->head.kind == kind;
        at += record->head.words * UINT64_C(8);
    }
    return count;
}

static void check_runs(const struct bench *b, uint32_t handle, uint64_t header, uint64_t payload,
                       uint64_t completion)
{
    const struct offload o = peek_offload(b->engine, handle);

    CU_ASSERT_EQUAL(o.counters[HANDLER_HEADER], header);
    CU_ASSERT_EQUAL(o.counters[HANDLER_PAYLOAD], payload);
    CU_ASSERT_EQUAL(o.counters[HANDLER_COMPLETION], completion);
}

/* ---- records that do not fit ---------------------------------------------------------------- */

/* A packet behind the first one, and whether it may come. */
static const struct {
    uint32_t at, total, place, length;
    bool fits;
} second[] = {
    {64, TOTAL, PLACE, PART, true},       {0, TOTAL, PLACE, PART, true}, /* done already */
    {32, TOTAL, PLACE, PART, true},                                      /* half of it */
    {128, TOTAL, PLACE, PART, false},                                    /* one is missing */
    {64, TOTAL + 64, PLACE, PART, false}, {64, TOTAL, PLACE + 64, PART, false},
    {64, TOTAL, PLACE, 0, false},         {160, TOTAL, PLACE, PART, false},
    {256, TOTAL, PLACE, 0, false},
};

static void packets_that_do_not_fit(void)
{
    for (size_t i = 0; i < COUNT(second); i++) {
        struct packet_record p;
        uint32_t handle;
        struct bench *b = new_bench(&handle);

        send_at(b, 0);
        check_runs(b, handle, 1, 1, 0);
        p = packet(b, second[i].at);
        p.w.total = second[i].total;
        p.w.put.offset = second[i].place;
        p.w.put.op.length = second[i].length;
        p.w.put.op.head.words = (uint16_t)((sizeof(p.w) + second[i].length) / 8);
        send_packet(b, &p);
        CU_ASSERT_EQUAL(b->broken, !second[i].fits);
        check_runs(b, handle, 1, second[i].fits && second[i].at > 0 ? 2 : 1, 0);
        CU_ASSERT_FALSE(b->quarantined);
        bench_free(b);
    }
}

/* A packet behind the first one names another region, or the put's own in an earlier life: it is
 * written nowhere. */
static void packets_of_another_region(void)
{
    for (uint32_t earlier = 0; earlier < 2; earlier++) {
        uint32_t handle;
        struct bench *b = new_bench(&handle);
        struct engine_key other, own;
        struct packet_record p;

        CU_ASSERT_EQUAL_FATAL(engine_region_open(b->engine, 0, 0, 4096, 4096, 3, &own), 0);
        CU_ASSERT_EQUAL_FATAL(
            engine_region_open(b->engine, 0, 0, 8192, 4096, ENGINE_REMOTE_READ, &other), 0);
        create(b, &own, HANDLER_PROCEED);
        memset(b->segment + 4096, 0x5a, 8192);
        p = packet(b, 0);
        p.w.put.slot = own.slot;
        p.w.put.generation = own.generation;
        send_packet(b, &p);
        CU_ASSERT_EQUAL(b->segment[4096 + PLACE], 0);
        CU_ASSERT_FALSE_FATAL(b->broken);
        p.w.at = PART;
        p.w.put.slot = earlier ? own.slot : other.slot;
        p.w.put.generation = earlier ? own.generation - 1 : other.generation;
        send_packet(b, &p);
        CU_ASSERT_TRUE(b->broken);
        CU_ASSERT_EQUAL(b->segment[4096 + PLACE + PART], 0x5a);
        CU_ASSERT_EQUAL(b->segment[8192 + PLACE + PART], 0x5a);
        bench_free(b);
    }
}

/* The bytes of a cut are placed nowhere, also where the header handler has let its put proceed:
 * the origin could not read them, or has named another region. */
static void bytes_of_a_cut(void)
{
    uint32_t handle;
    struct bench *b = new_bench(&handle);
    struct engine_key other, own;
    struct packet_record p;

    CU_ASSERT_EQUAL_FATAL(engine_region_open(b->engine, 0, 0, 4096, 4096, 3, &own), 0);
    CU_ASSERT_EQUAL_FATAL(engine_region_open(b->engine, 0, 0, 8192, 4096, 3, &other), 0);
    create(b, &own, HANDLER_PROCEED);
    create(b, &other, HANDLER_PROCEED);
    memset(b->segment + 4096, 0x5a, 8192);
    p = packet(b, 0);
    p.w.put.slot = own.slot;
    p.w.put.generation = own.generation;
    send_packet(b, &p);
    CU_ASSERT_EQUAL(b->segment[4096 + PLACE], 0);
    p.w.at = PART;
    p.w.put.slot = other.slot;
    p.w.put.generation = other.generation;
    p.w.put.op.head.flags |= WIRE_CUT;
    send_packet(b, &p);
    CU_ASSERT_EQUAL(b->segment[4096 + PLACE + PART], 0x5a);
    CU_ASSERT_EQUAL(b->segment[8192 + PLACE + PART], 0x5a);
    CU_ASSERT_FALSE(b->broken);
    bench_free(b);
}

/* A region that takes packets no more gets none, also of a put whose header handler has let it
 * proceed. */
static void packets_of_a_plain_region(void)
{
    uint32_t handle, gone;
    struct bench *b = new_bench(&handle);
    struct engine_key own;
    struct packet_record p = packet(b, 0);

    CU_ASSERT_EQUAL_FATAL(engine_region_open(b->engine, 0, 0, 4096, 4096, 3, &own), 0);
    gone = create(b, &own, HANDLER_PROCEED);
    memset(b->segment + 4096, 0x5a, 4096);
    p.w.put.slot = own.slot;
    p.w.put.generation = own.generation;
    send_packet(b, &p);
    CU_ASSERT_EQUAL(engine_offload_destroy(b->engine, 0, gone), 0);
    for (p.w.at = PART; p.w.at < TOTAL; p.w.at += PART)
        send_packet(b, &p);
    CU_ASSERT_EQUAL(failed(b), -EKEYREJECTED);
    CU_ASSERT_EQUAL(b->segment[4096 + PLACE + PART], 0x5a);
    CU_ASSERT_FALSE(b->broken);
    bench_free(b);
}

/* A key of an offload's region leads to the context of the offload alone: puts to another one would
 * run its handlers. A peer that may not read the region gets no address of it. */
static void keys_of_the_own_context(void)
{
    static const struct {
        uint64_t target;
        uint32_t rights;
        int32_t status;
    } rows[] = {{0, ENGINE_REMOTE_WRITE, 0},
                {0, ENGINE_REMOTE_WRITE | ENGINE_REMOTE_READ, 0},
                {UINT64_C(1) << 32, ENGINE_REMOTE_WRITE, -EKEYREJECTED}};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct session_sizes sizes = {RING, RING, RING, RING, RING};
        uint32_t handle;
        struct bench *b = new_bench(&handle);
        void *memory = aligned_alloc(4096, (b->session_bytes + 4095) / 4096 * 4096);
        struct engine_key key;
        struct wire_bound answer;
        struct wire_bind bind = {.head = {.words = sizeof(bind) / 8, .kind = WIRE_BIND},
                                 .flow = WIRE_NONE,
                                 .origin_flow = ORIGIN_FLOW + 1,
                                 .origin = 3,
                                 .target = rows[i].target,
                                 .has_key = 1,
                                 .job = "j"};

        CU_ASSERT_PTR_NOT_NULL_FATAL(memory);
        memset(memory, 0, b->session_bytes);
        CU_ASSERT_EQUAL_FATAL(engine_session_open(b->engine, 0, 1, memory, &sizes, 0), 1);
        CU_ASSERT_EQUAL_FATAL(engine_region_open(b->engine, 0, 0, 4096, 4096, rows[i].rights, &key),
                              0);
        create(b, &key, HANDLER_PROCESS_DATA);
        bind.slot = key.slot;
        bind.generation = key.generation;
        memcpy(bind.secret, key.secret, sizeof(bind.secret));
        CU_ASSERT_TRUE_FATAL(bench_send(b, &bind, sizeof(bind)));
        peek_last_note(b->engine, 1, NOTES_OTHERS, &answer);
        CU_ASSERT_EQUAL_FATAL(answer.head.kind, WIRE_BOUND);
        CU_ASSERT_EQUAL(answer.status, rows[i].status);
        CU_ASSERT_EQUAL(answer.packet > 0, rows[i].status == 0);
        CU_ASSERT_EQUAL(answer.address != 0, (rows[i].rights & ENGINE_REMOTE_READ) != 0);
        CU_ASSERT_FALSE(b->broken);
        bench_free(b);
        free(memory);
    }
}

/* A message with the sequence of a put that is under way. */
static void message_of_a_put(void)
{
    uint32_t handle;
    struct bench *b = new_bench(&handle);
    const struct {
        struct wire_op op;
        struct message message;
    } m = {.op = {.head = {.words = sizeof(m) / 8,
                           .kind = WIRE_NOTE,
                           .flags = WIRE_MESSAGE | WIRE_NO_REPLY},
                  .flow = bench_inflow(b),
                  .sequence = SEQUENCE,
                  .rid_len = sizeof(m.message)},
           .message = {.kind = SUBMIT_SHORT, .token = UINT32_MAX}};

    send_at(b, 0);
    CU_ASSERT_TRUE_FATAL(bench_send(b, &m, sizeof(m)));
    CU_ASSERT_TRUE(b->broken);
    CU_ASSERT_EQUAL(bench_events(b), 0);
    check_runs(b, handle, 1, 1, 0);
    bench_free(b);
}

/* The first packet of a put begins it. */
static void begins_in_the_middle(void)
{
    uint32_t handle;
    struct bench *b = new_bench(&handle);

    send_at(b, PART);
    CU_ASSERT_TRUE(b->broken);
    check_runs(b, handle, 0, 0, 0);
    bench_free(b);
}

/* A packet that is done is skipped, and the others run once. */
static void comes_twice(void)
{
    uint32_t handle;
    struct bench *b = new_bench(&handle);

    for (uint32_t at = 0; at < TOTAL; at += PART) {
        if (at > 0)
            send_at(b, at - PART);
        send_at(b, at);
    }
    CU_ASSERT_EQUAL(peek_offload(b->engine, handle).messages, 1);
    CU_ASSERT_EQUAL(peek_offload(b->engine, handle).bytes, TOTAL);
    check_runs(b, handle, 1, 3, 1);
    CU_ASSERT_FALSE(b->broken);
    bench_free(b);
}

/* ---- cut ------------------------------------------------------------------------------------- */

/* The origin has failed: an empty packet ends the put, and one of an unknown put is nothing. */
static void cut_by_its_origin(void)
{
    uint32_t handle;
    struct bench *b = new_bench(&handle);
    struct packet_record p = packet(b, PART);

    p.w.put.op.head.flags = WIRE_CUT;
    p.w.put.op.length = 0;
    p.w.put.op.head.words = sizeof(p.w) / 8;
    send_packet(b, &p);
    check_runs(b, handle, 0, 0, 0);
    send_at(b, 0);
    send_packet(b, &p);
    check_runs(b, handle, 1, 1, 1);
    CU_ASSERT_EQUAL(failed(b), 0);
    CU_ASSERT_EQUAL(bench_events(b), event_bytes(sizeof(struct offload_word)));
    CU_ASSERT_EQUAL(peek_offload(b->engine, handle).dropped, TOTAL - PART);
    CU_ASSERT_FALSE(b->broken);
    bench_free(b);
}

/* The origin has gone on to its next operation: the put before it is cut. */
static void cut_by_the_next(void)
{
    uint32_t handle;
    struct bench *b = new_bench(&handle);
    struct packet_record p = packet(b, 0);

    send_at(b, 0);
    p.w.put.op.sequence++;
    send_packet(b, &p);
    check_runs(b, handle, 2, 2, 1);
    CU_ASSERT_EQUAL(peek_offload(b->engine, handle).messages, 1);
    CU_ASSERT_FALSE(b->broken);
    bench_free(b);
}

/* ---- many are cut ---------------------------------------------------------------------------- */

enum { FLOWS = 40, LOOPS = 2000, CUT_MOST = OFFLOAD_CUT_UNITS / (2 * LOOPS) + 1 };

/* The inflow of each flow is the next one. */
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

/* A put of each of many flows is under way, at its first packet. */
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

/* Step by step: no step runs completion handlers without a bound. */
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

/* Many puts to an offload that its client disables or destroys. */
static void many_are_cut(void)
{
    for (uint32_t destroy = 0; destroy < 2; destroy++) {
        int (*end)(struct engine *, uint32_t, uint32_t) =
            destroy ? engine_offload_destroy : engine_offload_disable;
        uint32_t handle;
        struct bench *b = with_many_puts(&handle);

        CU_ASSERT_EQUAL(end(b->engine, 0, handle), -EAGAIN);
        cut_in_steps(b, handle);
        /* What is to be disabled is so without the call that comes again. */
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

/* Many puts of a node that is lost. Each has its event, and one that its origin has ended; its
 * inflow goes. */
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

/* An offload is disabled while the daemon dies: the next one ends that, whatever it takes. */
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

/* The event at a position of the client's ring. */
static const struct event_record *event_at(const struct bench *b, uint64_t position)
{
    const uint8_t *ring = (const uint8_t *)b->session + SESSION_DATA_OFFSET + 2 * RING;

    return (const struct event_record *)(const void *)(ring + position % RING);
}

/* Origins that were there again, which their client has not heard yet, are lost: their puts are cut
 * all the same, in later steps too, and the client hears once that they have gone. */
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

/* A put that was refused because its offload still binds its targets, and whose origin is lost when
 * no more puts are cut in this step. */
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
    bench_bind(b, ORIGIN_FLOW + FLOWS); /* the oldest */
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

/* Between these steps no put begins, and the next packet of one that has begun cuts it. */
static void packets_between_cuts(void)
{
    uint32_t handle;
    struct bench *b = with_many_puts(&handle);
    struct packet_record p = packet_of(b, 0, PART); /* the last flow is cut first */

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

/* ---- in line for a turn ---------------------------------------------------------------------- */

/* The offload of a put that stands in line is disabled or destroyed: its origin may go on all the
 * same, and hears how the put has ended. */
static void waits_without_an_offload(void)
{
    for (uint32_t row = 0; row < 4; row++) {
        uint32_t begun = row % 2, handle;
        struct bench *b = new_bench(&handle);

        if (begun)
            send_at(b, 0);
        poke_other_work(b->engine);
        poke_handler_debt(b->engine, 0, 1 << 24);
        send_at(b, begun * PART);
        CU_ASSERT_EQUAL_FATAL(sent(b, WIRE_REFUSE), 1);
        CU_ASSERT_EQUAL(row < 2 ? engine_offload_destroy(b->engine, 0, handle)
                                : engine_offload_disable(b->engine, 0, handle),
                        0);
        check_runs(b, handle, begun, begun, begun);
        for (int i = 0; i < 100 && sent(b, WIRE_GO) == 0; i++)
            bench_steps(b, 100);
        CU_ASSERT_EQUAL(sent(b, WIRE_GO), 1);
        for (uint32_t at = begun * PART; at < TOTAL; at += PART)
            send_at(b, at);
        CU_ASSERT_EQUAL(failed(b), -ESHUTDOWN);
        check_runs(b, handle, begun, begun, begun);
        CU_ASSERT_FALSE(b->broken || b->quarantined);
        bench_free(b);
    }
}

/* ---- other operations that may not write ---------------------------------------------------- */

/* An ordinary put of a word, 1. */
static void send_put(struct bench *b, uint32_t sequence)
{
    const struct {
        struct wire_put w;
        uint64_t word;
    } put = {.w = {.op = {.head = {.words = sizeof(put) / 8, .kind = WIRE_PUT},
                          .flow = bench_inflow(b),
                          .sequence = sequence,
                          .length = 8},
                   .slot = b->key.slot,
                   .generation = b->key.generation},
             .word = 1};

    CU_ASSERT_TRUE_FATAL(bench_send(b, &put, sizeof(put)));
}

/* Lets go of the region, which nobody else has bound. */
static void let_go(struct bench *b)
{
    const struct wire_region revoked = {
        .head = {.words = sizeof(revoked) / 8, .kind = WIRE_REVOKED},
        .slot = b->key.slot,
        .generation = b->key.generation};

    CU_ASSERT_TRUE_FATAL(bench_send(b, &revoked, sizeof(revoked)));
}

static void other_records(void)
{
    uint32_t handle;
    struct bench *b = new_bench(&handle);

    send_put(b, SEQUENCE);
    CU_ASSERT_EQUAL(failed(b), -EOPNOTSUPP);
    let_go(b);
    send_put(b, SEQUENCE + 1);
    CU_ASSERT_EQUAL(sent(b, WIRE_FAIL), 2);
    CU_ASSERT_EQUAL(b->segment[0], 0);
    CU_ASSERT_FALSE(b->broken);
    bench_free(b);
}

/* The offload has gone: ordinary puts may write when all origins that had to send packets have let
 * go of the region. */
static void after_the_offload(void)
{
    uint32_t handle;
    struct bench *b = new_bench(&handle);

    CU_ASSERT_EQUAL(engine_offload_destroy(b->engine, 0, handle), 0);
    send_put(b, SEQUENCE);
    CU_ASSERT_EQUAL(failed(b), -EOPNOTSUPP);
    CU_ASSERT_EQUAL(b->segment[0], 0);
    let_go(b);
    send_put(b, SEQUENCE + 1);
    CU_ASSERT_EQUAL(sent(b, WIRE_FAIL), 1);
    CU_ASSERT_EQUAL(b->segment[0], 1);
    CU_ASSERT_FALSE(b->broken);
    bench_free(b);
}

/* A put of one packet that its target can't take: the origin hears why. */
static void refused_packets(void)
{
    static const struct {
        uint32_t slot, generation;
        uint64_t place;
        int status;
    } rows[] = {{1, 0, 0, -EKEYREJECTED},
                {0, 1, 0, -EKEYREJECTED},
                {100000, 0, 0, -EKEYREJECTED},
                {0, 0, 4096 - PART + 1, -ERANGE},
                {0, 0, UINT64_MAX, -ERANGE}};

    for (size_t i = 0; i < COUNT(rows); i++) {
        uint32_t handle;
        struct bench *b = new_bench(&handle);
        struct packet_record p = packet(b, 0);

        p.w.total = PART;
        p.w.put.slot += rows[i].slot;
        p.w.put.generation += rows[i].generation;
        p.w.put.offset = rows[i].place;
        send_packet(b, &p);
        CU_ASSERT_EQUAL(failed(b), rows[i].status);
        check_runs(b, handle, 0, 0, 0);
        CU_ASSERT_FALSE(b->broken);
        bench_free(b);
    }
}

int main(void)
{
    CU_TestInfo tests[] = {{"packets that do not fit", packets_that_do_not_fit},
                           {"packets of another region", packets_of_another_region},
                           {"bytes of a cut", bytes_of_a_cut},
                           {"packets of a plain region", packets_of_a_plain_region},
                           {"keys of the own context", keys_of_the_own_context},
                           {"a message of a put", message_of_a_put},
                           {"a put begins in the middle", begins_in_the_middle},
                           {"packets come twice", comes_twice},
                           {"cut by its origin", cut_by_its_origin},
                           {"cut by the next operation", cut_by_the_next},
                           {"many are cut", many_are_cut},
                           {"many are lost", many_are_lost},
                           {"disabled over a restart", disabled_over_a_restart},
                           {"lost when they were back", lost_when_they_were_back},
                           {"lost with a new offload", lost_with_a_new_offload},
                           {"packets between cuts", packets_between_cuts},
                           {"a put waits without an offload", waits_without_an_offload},
                           {"other records", other_records},
                           {"after the offload", after_the_offload},
                           {"packets that are refused", refused_packets},
                           CU_TEST_INFO_NULL};

    return suite_run("region records", tests);
}
