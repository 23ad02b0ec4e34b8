/*
 * Offloads of one engine whose peer is the test: messages that wait for room, the pauses of
 * messages whose handlers say AGAIN, a peer that changes a message which comes again, the units of
 * a step, and programs that are looked at while others take their place. Each case says which rule
 * it guards. Thread: one.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include "daemon/engine/offload/program.h"
#include "daemon/handlers/image.h"
#include "daemon/handlers/run.h"
#include "tests/count.h"
#include "tests/engine/bench/linked_bench.h"
#include "tests/engine/bench/peek.h"
#include "tests/engine/offload/assemble.h"
#include "tests/suite.h"
#include "views/rows.h"

#define INDEX     5u
#define MS        100   /* a millisecond, in steps of the bench */
#define NO_CHUNKS 1000u /* more than the bench has: no chunk is left for sends */

/* ---- programs -------------------------------------------------------------------------------- */

/* Sends a message without arguments to target 0, or says AGAIN. */
#define SEND_OR_AGAIN                                                                              \
    NUMBER(1, (uint64_t)INDEX << 32), ALU(CODE_MOV, 2, 0), ALU(CODE_MOV, 3, 0),                    \
        ALU(CODE_MOV, 4, 0), ALU(CODE_MOV, 5, 0), HELPER(HELPER_MESSAGE), OR_AGAIN
#define RETURN(value) ALU(CODE_MOV, 0, value), EXIT

static uint32_t load(struct bench *b, const struct handler_instruction *code, uint32_t count,
                     const uint32_t *entries)
{
    uint64_t words[128] = {0};
    struct handler_image *image = (void *)words;
    struct image_error wrong;
    int program;

    CU_ASSERT_FATAL(image_bytes(count, 0, 0) <= sizeof(words));
    *image = (struct handler_image){.magic = HANDLER_IMAGE_MAGIC, .instructions = count};
    memcpy(image->entry, entries, sizeof(image->entry));
    memcpy(words + 5, code, count * sizeof(*code));
    CU_ASSERT_EQUAL_FATAL(image_check(words, image_bytes(count, 0, 0), &wrong), 0);
    program = engine_program_load(b->engine, 0, image, (uint32_t)image_bytes(count, 0, 0));
    CU_ASSERT_FATAL(program >= 0);
    return (uint32_t)program;
}

static uint32_t header_alone(struct bench *b, const struct handler_instruction *code,
                             uint32_t count)
{
    return load(b, code, count, (const uint32_t[HANDLER_STAGES]){0, HANDLER_NONE, HANDLER_NONE});
}

/* Loads a header handler that fails, and a completion handler that sends. */
static uint32_t fail_then_send(struct bench *b)
{
    const struct handler_instruction code[] = {RETURN(HANDLER_FAIL), SEND_OR_AGAIN,
                                               RETURN(HANDLER_SUCCESS)};

    return load(b, code, COUNT(code), (const uint32_t[HANDLER_STAGES]){0, HANDLER_NONE, 2});
}

static uint32_t sends(struct bench *b)
{
    const struct handler_instruction code[] = {SEND_OR_AGAIN, RETURN(HANDLER_DROP)};

    return header_alone(b, code, COUNT(code));
}

/* Loads a handler that replies with this many bytes of the region. */
static uint32_t replies(struct bench *b, int bytes)
{
    const struct handler_instruction code[] = {
        ALU(CODE_MOV, 1, 0),     ALU(CODE_MOV, 2, 0),  NUMBER(3, handler_address(HANDLER_HOST, 0)),
        ALU(CODE_MOV, 4, bytes), HELPER(HELPER_REPLY), OR_AGAIN,
        RETURN(HANDLER_DROP)};

    return header_alone(b, code, COUNT(code));
}

static uint32_t fails(struct bench *b)
{
    const struct handler_instruction code[] = {RETURN(HANDLER_FAIL)};

    return header_alone(b, code, COUNT(code));
}

static uint32_t drops(struct bench *b)
{
    const struct handler_instruction code[] = {RETURN(HANDLER_DROP)};

    return header_alone(b, code, COUNT(code));
}

/* Loads a handler that takes some 2000 units. */
static uint32_t works(struct bench *b)
{
    const struct handler_instruction code[] = {ALU(CODE_MOV, 3, 1000), ALU(CODE_SUB, 3, 1),
                                               op(CODE_JMP | CODE_JNE, 3, 0, -2, 0),
                                               RETURN(HANDLER_DROP)};

    return header_alone(b, code, COUNT(code));
}

/* ---- offloads -------------------------------------------------------------------------------- */

/* Opens a bench with remote 0 to node 1, the test, for use as a target, and with a flow from there
 * to the client. */
static struct bench *new_bench(void)
{
    const struct bench_shape shape = {.ring_bytes = RING, .region_bytes = 4096, .entries = 64};
    struct bench *b = bench_new(&shape);

    CU_ASSERT_PTR_NOT_NULL_FATAL(b);
    CU_ASSERT_EQUAL_FATAL(bench_link(b), 0);
    bench_remote(b);
    bench_bind(b, 5);
    CU_ASSERT_FALSE_FATAL(b->broken);
    return b;
}

/* Joins the program to the index of this context, with node 1 as its target where that is wanted.
 */
static uint32_t join(struct bench *b, uint32_t session, uint32_t program, uint32_t flags,
                     bool target)
{
    const uint32_t remote = 0;
    const struct engine_offload_info info = {.program = program,
                                             .index = INDEX,
                                             .flags = flags,
                                             .target_count = target,
                                             .targets = &remote,
                                             .host = {b->key.slot, b->key.generation, 0, 64}};
    int offload = engine_offload_create(b->engine, session, &info, 1);

    CU_ASSERT_FATAL(offload >= 0);
    bench_steps(b, 2);
    if (target)
        bench_bound(b, 1, 0, 3);
    CU_ASSERT_EQUAL_FATAL(peek_offload(b->engine, (uint32_t)offload).state, OFFLOAD_OPEN);
    return (uint32_t)offload;
}

static struct offload offload(const struct bench *b)
{
    return peek_offload(b->engine, (uint32_t)peek_offload_of(b->engine, 0, INDEX));
}

/* ---- messages and what they bring ------------------------------------------------------------ */

struct short_message {
    struct wire_op op;
    struct message message;
};

static struct short_message message(uint32_t flow, uint32_t sequence, uint8_t flags)
{
    return (struct short_message){
        .op = {.head = {.words = sizeof(struct short_message) / 8,
                        .kind = WIRE_NOTE,
                        .flags = WIRE_MESSAGE | flags},
               .flow = flow,
               .sequence = sequence,
               .rid_len = sizeof(struct message)},
        .message = {.index = INDEX, .kind = SUBMIT_SHORT, .token = UINT32_MAX}};
}

static void send_message(struct bench *b, uint32_t flow, uint32_t sequence, uint8_t flags)
{
    const struct short_message m = message(flow, sequence, flags);

    CU_ASSERT_TRUE_FATAL(bench_send(b, &m, sizeof(m)));
}

/* Returns how many records of this kind the engine has sent about one of node 1's flows. */
static uint32_t sent(const struct bench *b, uint8_t kind, uint32_t flow)
{
    uint64_t end = peek_peer(b->engine, 1).staged;
    uint32_t count = 0;

    for (uint64_t at = 0; at < end;) {
        const struct wire_flow *record = peek_record(b->engine, 1, at);

        count += record->head.kind == kind && record->flow == flow;
        at += record->head.words * UINT64_C(8);
    }
    return count;
}

#define EVENT_BYTES event_bytes(sizeof(struct offload_word))

/* ---- room ------------------------------------------------------------------------------------ */

/* Guards that a message ends when its event and its verdict both have room, and has neither until
 * then. */
static void one_event_for_an_answer(void)
{
    struct bench *b = new_bench();
    uint32_t handle = join(b, 0, sends(b), 0, false);
    uint32_t free;

    CU_ASSERT_EQUAL(engine_offload_disable(b->engine, 0, handle), 0);
    free = poke_memory(b->engine, 0);
    send_message(b, 0, 1, WIRE_NO_REPLY);
    bench_steps(b, 50);
    CU_ASSERT_EQUAL(bench_events(b), 0);
    CU_ASSERT_EQUAL(sent(b, WIRE_FAIL, 5), 0);
    poke_memory(b->engine, free);
    bench_steps(b, 50);
    CU_ASSERT_EQUAL(bench_events(b), EVENT_BYTES);
    CU_ASSERT_EQUAL(sent(b, WIRE_FAIL, 5), 1);
    CU_ASSERT_EQUAL(offload(b).messages, 1);
    CU_ASSERT_FALSE(b->broken || b->quarantined);
    bench_free(b);
}

static void send_notes(struct bench *b, uint32_t count)
{
    struct wire_op note = {.head = {.words = sizeof(note) / 8, .kind = WIRE_NOTE}};

    for (; note.sequence < count; note.sequence++)
        CU_ASSERT_TRUE_FATAL(bench_send(b, &note, sizeof(note)));
}

/* Guards that a message whose events must be spilled takes the room of one event, although room was
 * reserved before its handler ran, too: what stands in the spill is that event alone. */
static void one_event_in_the_spill(void)
{
    const uint32_t fill = RING / event_bytes(0);
    struct bench *b = new_bench();

    join(b, 0, drops(b), 0, false);
    send_notes(b, fill);
    CU_ASSERT_EQUAL_FATAL(peek_session(b->engine, 0).spill_bytes, 0);
    send_message(b, 0, fill, WIRE_NO_REPLY);
    CU_ASSERT_EQUAL(offload(b).messages, 1);
    CU_ASSERT_EQUAL(peek_session(b->engine, 0).spill_bytes, EVENT_BYTES);
    atomic_store(&b->session->remote.head, bench_events(b));
    bench_steps(b, 2);
    CU_ASSERT_EQUAL(bench_events(b) - RING, EVENT_BYTES); /* at the ring's beginning */
    CU_ASSERT_EQUAL(peek_session(b->engine, 0).spill_bytes, 0);
    CU_ASSERT_FALSE(b->broken || b->quarantined);
    bench_free(b);
}

/* Guards that an error of a quiet offload takes no entry of the spill where there is no memory for
 * the STOP that goes with it: the message ends without an event, and later events are spilled and
 * come as before. */
static void an_error_without_memory(void)
{
    const uint32_t notes = (RING - EVENT_BYTES) / event_bytes(0);
    struct bench *b = new_bench();
    uint32_t free;

    join(b, 0, fails(b), ENGINE_OFFLOAD_QUIET, false);
    bench_ack(b); /* no note is left; a STOP needs a chunk of its own */
    send_message(b, 0, 1, WIRE_NO_REPLY);
    CU_ASSERT_EQUAL(bench_events(b), EVENT_BYTES);
    send_notes(b, notes);
    CU_ASSERT_EQUAL_FATAL(peek_inflow(b->engine, 0).state, INFLOW_OPEN);
    poke_chunks_keep(b->engine, 0);
    free = poke_memory(b->engine, 1);
    send_message(b, 0, 2, WIRE_NO_REPLY);
    CU_ASSERT_EQUAL(offload(b).failed, 2);
    CU_ASSERT_EQUAL(sent(b, WIRE_FAIL, 5), 2);
    poke_memory(b->engine, free);
    send_notes(b, 2);
    CU_ASSERT(peek_session(b->engine, 0).spill_bytes > 0);
    atomic_store(&b->session->remote.head, bench_events(b));
    bench_steps(b, 2);
    CU_ASSERT_EQUAL(peek_session(b->engine, 0).spill_bytes, 0);
    CU_ASSERT_FALSE(b->broken || b->quarantined);
    bench_free(b);
}

/* Guards a message that comes again with the wish for a reply, which it did not have at first: it
 * waits, because it has no flow for replies, and no other flow is used instead. */
static void a_second_flag(void)
{
    struct bench *b = new_bench();

    join(b, 0, fail_then_send(b), ENGINE_OFFLOAD_QUIET, true);
    poke_chunks_keep(b->engine, NO_CHUNKS);
    send_message(b, 0, 1, WIRE_NO_REPLY);
    bench_steps(b, 2 * MS);
    CU_ASSERT_EQUAL_FATAL(sent(b, WIRE_GO, 5), 1);
    send_message(b, 0, 1, 0);
    bench_steps(b, 50);
    CU_ASSERT_EQUAL(offload(b).messages, 0);
    CU_ASSERT_FALSE(b->quarantined);
    bench_free(b);
}

/* ---- AGAIN ----------------------------------------------------------------------------------- */

/* Guards the pauses of a message whose handler finds no room to send: it is refused, and its GO
 * comes after 1, 2, 4 ... 128 ms, once for each refusal; or as soon as a send has ended, and then
 * the pauses start over. */
static void pauses_grow(void)
{
    struct bench *b = new_bench();
    uint32_t refused = 0;

    join(b, 0, sends(b), 0, true);
    poke_chunks_keep(b->engine, NO_CHUNKS);
    for (uint32_t shift = 0; shift < 10; shift++) {
        int pause = MS << (shift < 7 ? shift : 7);

        send_message(b, 0, 1, WIRE_NO_REPLY);
        CU_ASSERT_EQUAL(sent(b, WIRE_REFUSE, 5), ++refused);
        bench_steps(b, pause - 10);
        CU_ASSERT_EQUAL(sent(b, WIRE_GO, 5), shift);
        bench_steps(b, 20);
        CU_ASSERT_EQUAL(sent(b, WIRE_GO, 5), shift + 1);
    }
    poke_chunks_keep(b->engine, 0);
    send_message(b, 0, 1, WIRE_NO_REPLY);
    CU_ASSERT_EQUAL(offload(b).sends, 1);
    poke_chunks_keep(b->engine, NO_CHUNKS);
    send_message(b, 0, 2, WIRE_NO_REPLY);
    bench_ack(b); /* the send ends */
    bench_steps(b, 5);
    CU_ASSERT_EQUAL(sent(b, WIRE_GO, 5), 11);
    send_message(b, 0, 2, WIRE_NO_REPLY);
    bench_steps(b, MS + 10);
    CU_ASSERT_EQUAL(sent(b, WIRE_GO, 5), 12);
    CU_ASSERT_FALSE(b->broken || b->quarantined);
    bench_free(b);
}

/* Opens a second context of the client, at endpoint 1 << 32, with a flow of node 1 to it. */
static void *second_context(struct bench *b, uint32_t origin_flow)
{
    void *memory = aligned_alloc(4096, (b->session_bytes + 4095) / 4096 * 4096);
    struct wire_bind bind = {.head = {.words = sizeof(bind) / 8, .kind = WIRE_BIND},
                             .flow = WIRE_NONE,
                             .origin_flow = origin_flow,
                             .origin = 1,
                             .target = UINT64_C(1) << 32,
                             .job = "j"};
    const struct session_sizes sizes = {RING, RING, RING, RING, RING};

    CU_ASSERT_PTR_NOT_NULL_FATAL(memory);
    memset(memory, 0, b->session_bytes);
    CU_ASSERT_EQUAL_FATAL(engine_session_open(b->engine, 0, 1, memory, &sizes, 0), 1);
    CU_ASSERT_TRUE_FATAL(bench_send(b, &bind, sizeof(bind)));
    return memory;
}

/* Guards that the end of a pause wakes what waits in each context, and that what was woken before
 * is not woken twice. */
static void each_context_wakes_once(void)
{
    struct bench *b = new_bench();
    void *memory = second_context(b, 6);

    join(b, 0, replies(b, 0), 0, false);
    join(b, 1, replies(b, 0), 0, false);
    bench_bind(b, 7); /* inflow 2, of the first context */
    CU_ASSERT_FALSE_FATAL(b->broken);
    poke_chunks_keep(b->engine, NO_CHUNKS);
    send_message(b, 0, 1, 0);
    send_message(b, 1, 1, 0);
    CU_ASSERT_EQUAL(sent(b, WIRE_REFUSE, 6), 1);
    bench_steps(b, MS + 10);
    CU_ASSERT_EQUAL(sent(b, WIRE_GO, 5), 1);
    CU_ASSERT_EQUAL(sent(b, WIRE_GO, 6), 1);
    send_message(b, 2, 1, 0);
    CU_ASSERT_EQUAL(sent(b, WIRE_REFUSE, 7), 1);
    bench_steps(b, 2 * MS + 10);
    CU_ASSERT_EQUAL(sent(b, WIRE_GO, 7), 1);
    CU_ASSERT_EQUAL(sent(b, WIRE_GO, 5), 1);
    CU_ASSERT_EQUAL(sent(b, WIRE_GO, 6), 1);
    bench_free(b);
    free(memory);
}

/* ---- replies without arguments --------------------------------------------------------------- */

/* Sends the request with this sequence. Returns whether its handlers have run. */
static bool asked(struct bench *b, uint32_t sequence)
{
    uint64_t before = offload(b).messages;

    send_message(b, 0, sequence, 0);
    return offload(b).messages > before;
}

/* Guards against a peer that sends requests and acknowledges no reply: when replies have filled a
 * flow, or the client has no queue memory left, a request is refused before its handler runs. The
 * handler runs once, after the GO that comes when replies have left. */
static void replies_that_nobody_takes(void)
{
    enum { LONG = 450 }; /* number of replies; each takes two entries */

    for (uint32_t row = 0; row < 2; row++) {
        struct bench *b = new_bench();
        uint32_t sequence = 0, runs = 0;

        if (row == 0) {
            uint32_t handle = join(b, 0, replies(b, 64), ENGINE_OFFLOAD_QUIET, false);

            while (sequence < LONG)
                CU_ASSERT_TRUE_FATAL(asked(b, ++sequence));
            CU_ASSERT_EQUAL_FATAL(engine_offload_destroy(b->engine, 0, handle), 0);
            bench_steps(b, 10);
        }
        join(b, 0, drops(b), ENGINE_OFFLOAD_QUIET, false);
        poke_chunks_keep(b->engine, row == 0 ? 0 : NO_CHUNKS);
        while (runs < 200 && asked(b, ++sequence))
            runs++;
        CU_ASSERT_EQUAL(runs, row == 0 ? 1024 - 2 * LONG - 1 : 0);
        poke_chunks_keep(b->engine, 0);
        for (uint32_t i = 0; i < 4; i++) {
            bench_ack(b);
            bench_steps(b, MS);
        }
        CU_ASSERT_TRUE(asked(b, sequence));
        CU_ASSERT_EQUAL(offload(b).failed + offload(b).faults, 0);
        CU_ASSERT_FALSE(b->broken || b->quarantined);
        bench_free(b);
    }
}

/* Guards that a request which no handler takes fails, although an earlier owner of its inflow had
 * an answer from a handler to the request with this sequence. */
static void an_inflow_used_again(void)
{
    struct short_message m = message(0, 1, 0);
    struct bench *b = new_bench();

    join(b, 0, replies(b, 0), 0, false);
    send_message(b, 0, 1, 0);
    CU_ASSERT_EQUAL(offload(b).messages, 1);
    bench_note(b, WIRE_CLOSE, 0, 0);
    bench_ack(b);
    bench_steps(b, 50);
    CU_ASSERT_EQUAL_FATAL(peek_census(b->engine).inflows, 0);
    bench_bind(b, 6); /* inflow 0 */
    m.message.index = INDEX + 1;
    CU_ASSERT_TRUE_FATAL(bench_send(b, &m, sizeof(m)));
    CU_ASSERT_EQUAL(sent(b, WIRE_FAIL, 6), 1);
    CU_ASSERT_FALSE(b->broken || b->quarantined);
    bench_free(b);
}

/* ---- in line for a turn ---------------------------------------------------------------------- */

/* Guards a message that waits for a turn when the last offload is destroyed or disabled: its origin
 * gets its GO anyway, and a verdict that says how the message has ended. */
static void waits_without_an_offload(void)
{
    for (uint32_t destroy = 0; destroy < 2; destroy++) {
        struct bench *b = new_bench();
        uint32_t handle = join(b, 0, works(b), 0, false);

        poke_other_work(b->engine);
        poke_handler_debt(b->engine, 0, 1 << 24);
        send_message(b, 0, 1, WIRE_NO_REPLY);
        CU_ASSERT_EQUAL_FATAL(sent(b, WIRE_REFUSE, 5), 1);
        CU_ASSERT_EQUAL(destroy ? engine_offload_destroy(b->engine, 0, handle)
                                : engine_offload_disable(b->engine, 0, handle),
                        0);
        for (int i = 0; i < 100 && sent(b, WIRE_GO, 5) == 0; i++)
            bench_steps(b, MS);
        CU_ASSERT_EQUAL(sent(b, WIRE_GO, 5), 1);
        send_message(b, 0, 1, WIRE_NO_REPLY);
        CU_ASSERT_EQUAL(sent(b, WIRE_FAIL, 5), 1);
        CU_ASSERT_FALSE(b->broken || b->quarantined);
        bench_free(b);
    }
}

/* ---- records of the other kind --------------------------------------------------------------- */

/* Guards that a packet with the sequence of a message that waits breaks the link. */
static void a_packet_of_a_message(void)
{
    const struct wire_packet p = {
        .put = {.op = {.head = {.words = sizeof(p) / 8, .kind = WIRE_PACKET}, .sequence = 1}}};
    struct bench *b = new_bench();

    join(b, 0, sends(b), 0, true);
    poke_chunks_keep(b->engine, NO_CHUNKS);
    send_message(b, 0, 1, WIRE_NO_REPLY);
    CU_ASSERT_EQUAL_FATAL(sent(b, WIRE_REFUSE, 5), 1);
    CU_ASSERT_TRUE_FATAL(bench_send(b, &p, sizeof(p)));
    CU_ASSERT_TRUE(b->broken);
    CU_ASSERT_EQUAL(sent(b, WIRE_REFUSE, 5), 1);
    CU_ASSERT_EQUAL(bench_events(b), 0);
    bench_free(b);
}

/* ---- units and time -------------------------------------------------------------------------- */

/* Guards handlers against a machine that stops a thread now and then: a run gets its time up to
 * three times more, if the runs before it were in time. A handler that is always slow gets its time
 * once more, and ends by a fault. */
static void pauses_of_the_machine(void)
{
    static const struct {
        uint32_t between; /* runs in time, between two slow runs */
        uint32_t state;
    } rows[] = {{0, OFFLOAD_DISABLED},
                {OFFLOAD_IN_TIME - 1, OFFLOAD_DISABLED},
                {OFFLOAD_IN_TIME, OFFLOAD_OPEN}};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct bench *b = new_bench();
        uint32_t sequence = 1;

        join(b, 0, works(b), ENGINE_OFFLOAD_QUIET, false);
        bench_clock(b);
        b->clock_tick = 20000; /* 8 looks at the clock take 3 times 50 us */
        send_message(b, 0, sequence++, WIRE_NO_REPLY);
        CU_ASSERT_EQUAL(offload(b).state, OFFLOAD_OPEN);
        b->clock_tick = 0;
        for (uint32_t n = 0; n < rows[i].between; n++)
            send_message(b, 0, sequence++, WIRE_NO_REPLY);
        b->clock_tick = 20000;
        send_message(b, 0, sequence, WIRE_NO_REPLY);
        CU_ASSERT_EQUAL(offload(b).messages, sequence);
        CU_ASSERT_EQUAL(offload(b).state, rows[i].state);
        CU_ASSERT_EQUAL(offload(b).fault, rows[i].state == OFFLOAD_OPEN ? 0 : RUN_OUT_OF_TIME);
        CU_ASSERT_FALSE(b->broken);
        bench_free(b);
    }
}

/* Guards that a peer whose messages have taken a step's units waits for the next step. */
static void units_of_a_step(void)
{
    enum { MESSAGES = 20 };
    struct short_message run[MESSAGES];
    struct bench *b = new_bench();
    uint64_t before;

    join(b, 0, works(b), ENGINE_OFFLOAD_QUIET, false);
    for (uint32_t i = 0; i < MESSAGES; i++)
        run[i] = message(0, i + 1, WIRE_NO_REPLY);
    CU_ASSERT_TRUE_FATAL(bench_send_unseen(b, run, sizeof(run)));
    while (offload(b).messages < MESSAGES) {
        before = offload(b).units;
        bench_steps(b, 1);
        CU_ASSERT_FATAL(offload(b).units > before);
        CU_ASSERT(offload(b).units - before <= OFFLOAD_STEP_UNITS + b->config.handler_units);
    }
    bench_free(b);
}

/* Guards the barrier between two clients that use one entry one after the other: the first offload
 * of the later client makes the next run change clients. */
static void clients_of_one_entry(void)
{
    struct bench *b = new_bench();
    uint32_t handle = join(b, 0, drops(b), ENGINE_OFFLOAD_QUIET, false);

    CU_ASSERT_EQUAL(peek_last_client(b->engine), UINT32_MAX);
    send_message(b, 0, 1, WIRE_NO_REPLY);
    CU_ASSERT_EQUAL(peek_last_client(b->engine), 0);
    CU_ASSERT_EQUAL_FATAL(engine_offload_destroy(b->engine, 0, handle), 0);
    join(b, 0, drops(b), ENGINE_OFFLOAD_QUIET, false);
    CU_ASSERT_EQUAL(peek_last_client(b->engine), UINT32_MAX);
    send_message(b, 0, 2, WIRE_NO_REPLY);
    CU_ASSERT_EQUAL(peek_last_client(b->engine), 0);
    bench_free(b);
}

/* ---- views ----------------------------------------------------------------------------------- */

/* Loads a handler that accesses memory where no window is. */
static uint32_t faults(struct bench *b)
{
    const struct handler_instruction code[] = {ALU(CODE_MOV, 1, 0), LOAD(2, 1, 40),
                                               RETURN(HANDLER_DROP)};

    return header_alone(b, code, COUNT(code));
}

/* Guards that a row of the view shows one offload's messages, units and last fault, and that the
 * engine's sums still count the messages, runs and units of an offload that has gone. */
static void rows_and_sums(void)
{
    struct bench *b = new_bench();
    uint32_t handle = join(b, 0, works(b), 0, false), from = 0;
    struct view_offload rows[4];
    struct engine_offloads_view sums;
    struct counters_session session;

    for (uint32_t i = 1; i <= 3; i++)
        send_message(b, 0, i, WIRE_NO_REPLY);
    CU_ASSERT_EQUAL_FATAL(engine_view_offloads(b->engine, &from, rows, 4), 1);
    CU_ASSERT(rows[0].offload == handle && rows[0].client == 0 && rows[0].session == 0);
    CU_ASSERT(rows[0].index == INDEX && rows[0].state == OFFLOAD_OPEN && rows[0].messages == 3);
    CU_ASSERT(rows[0].units == 3 * rows[0].units_max && rows[0].units_p50 == rows[0].units_max);
    CU_ASSERT(rows[0].units_max > 2000 && rows[0].units_p99 == rows[0].units_max);
    CU_ASSERT_PTR_NULL(rows[0].fault);
    CU_ASSERT_EQUAL(engine_view_offload(b->engine, 0, handle, rows), 0);
    CU_ASSERT_EQUAL(engine_view_offload(b->engine, 1, handle, rows), -ENOENT);
    CU_ASSERT_EQUAL(engine_view_offload(b->engine, 0, handle + OFFLOADS_MAX, rows), -ENOENT);
    from = 0;
    CU_ASSERT_EQUAL_FATAL(engine_view_sessions(b->engine, 0, &from, &session, 1), 1);
    CU_ASSERT_EQUAL(session.handler_units, rows[0].units);

    CU_ASSERT_EQUAL(engine_offload_destroy(b->engine, 0, handle), 0);
    handle = join(b, 0, faults(b), 0, false);
    send_message(b, 0, 4, WIRE_NO_REPLY);
    CU_ASSERT_EQUAL_FATAL(engine_view_offload(b->engine, 0, handle, rows), 0);
    CU_ASSERT(rows[0].state == OFFLOAD_DISABLED && rows[0].faults == 1 && rows[0].failed == 1);
    CU_ASSERT_STRING_EQUAL(rows[0].fault, run_fault_text(RUN_BAD_ADDRESS));
    CU_ASSERT(rows[0].fault_handler == 1 && rows[0].fault_place == 1);
    CU_ASSERT_EQUAL(rows[0].fault_address, 40);
    CU_ASSERT(rows[0].units_max < 2000);
    engine_view_offload_sums(b->engine, &sums);
    CU_ASSERT(sums.offloads == 1 && sums.disabled == 1 && sums.messages == 4 && sums.runs == 4);
    CU_ASSERT(sums.faults == 1 && sums.failed == 1 && sums.units > 3 * 2000);
    bench_free(b);
}

/* Guards that messages which handlers have sent, and the target has not taken, are shown as queued.
 */
static void sends_that_wait(void)
{
    struct bench *b = new_bench();
    uint32_t handle = join(b, 0, sends(b), 0, true);
    struct view_offload row;

    send_message(b, 0, 1, WIRE_NO_REPLY);
    CU_ASSERT_EQUAL_FATAL(engine_view_offload(b->engine, 0, handle, &row), 0);
    CU_ASSERT(row.sends == 1 && row.queued > 0 && row.held == 0);
    bench_ack(b);
    CU_ASSERT_EQUAL_FATAL(engine_view_offload(b->engine, 0, handle, &row), 0);
    CU_ASSERT(row.sends == 1 && row.queued == 0 && row.sends_failed == 0);
    bench_free(b);
}

/* ---- packets --------------------------------------------------------------------------------- */

/* Guards that a handler never gets a packet longer than packed-max, even from a peer whose
 * packed-max is larger. */
static void a_long_packet(void)
{
    struct {
        struct short_message m;
        uint8_t payload[8192];
    } record = {0};
    struct bench *b = new_bench();

    join(b, 0, works(b), 0, false);
    for (uint32_t i = 0; i < 2; i++) {
        uint32_t length = b->config.packed_max + 8 * i;

        record.m = message(0, i + 1, WIRE_NO_REPLY);
        record.m.message.kind = SUBMIT_MEDIUM;
        record.m.message.payload_len = length;
        record.m.op.rid_len = (uint16_t)(sizeof(record.m.message) + length);
        record.m.op.head.words = (uint16_t)((sizeof(record.m) + length) / 8);
        CU_ASSERT_TRUE_FATAL(bench_send(b, &record, (uint32_t)sizeof(record.m) + length));
        CU_ASSERT_EQUAL(offload(b).failed, i);
        CU_ASSERT_EQUAL(sent(b, WIRE_FAIL, 5), i);
    }
    CU_ASSERT_EQUAL(offload(b).messages, 2);
    CU_ASSERT_FALSE(b->broken || b->quarantined);
    bench_free(b);
}

/* ---- programs that are looked at ------------------------------------------------------------- */

enum { IMAGE_BYTES = 28000, LOOKS = 100 };

struct look {
    struct engine *engine;
    _Atomic uint32_t handle;
    _Atomic bool done;
    uint32_t torn, whole;
};

/* Reads the program that is loaded just now, again and again; all bytes of each program are equal.
 */
static void *look(void *argument)
{
    struct look *l = argument;
    uint8_t *copy = malloc(HANDLER_IMAGE_MAX);

    while (copy && !atomic_load(&l->done)) {
        uint32_t owner;
        int bytes =
            engine_view_image(l->engine, atomic_load(&l->handle), copy, HANDLER_IMAGE_MAX, &owner);

        if (bytes <= 0)
            continue;
        l->whole += memcmp(copy, copy + 1, (size_t)bytes - 1) == 0;
        l->torn += memcmp(copy, copy + 1, (size_t)bytes - 1) != 0;
        if (l->whole + l->torn == LOOKS)
            atomic_store(&l->done, true);
    }
    free(copy);
    return NULL;
}

/* Guards that an image that is shown belongs to one program, even if this was unloaded meanwhile
 * and another program has its room. */
static void an_image_is_shown_whole(void)
{
    struct bench *b = unbound_bench(false);
    struct look l = {.engine = b->engine};
    bool lost = false;
    uint8_t *image = malloc(IMAGE_BYTES);
    pthread_t thread;

    CU_ASSERT_PTR_NOT_NULL_FATAL(image);
    CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, look, &l), 0);
    for (uint8_t salt = 1; !atomic_load(&l.done); salt++) {
        int handle;

        memset(image, salt, IMAGE_BYTES);
        handle = engine_program_load(b->engine, 0, (const void *)image, IMAGE_BYTES);
        atomic_store(&l.handle, (uint32_t)handle);
        lost |= engine_program_unload(b->engine, 0, (uint32_t)handle) <= 0;
    }
    pthread_join(thread, NULL);
    CU_ASSERT_EQUAL(l.torn, 0);
    CU_ASSERT_FALSE(lost);
    free(image);
    bench_free(b);
}

int main(void)
{
    CU_TestInfo tests[] = {
        {"one event for an answer", one_event_for_an_answer},
        {"one event in the spill", one_event_in_the_spill},
        {"an error without memory", an_error_without_memory},
        {"a second flag", a_second_flag},
        {"pauses grow", pauses_grow},
        {"each context wakes, once", each_context_wakes_once},
        {"replies that nobody takes", replies_that_nobody_takes},
        {"an inflow that is used again", an_inflow_used_again},
        {"a message waits without an offload", waits_without_an_offload},
        {"a packet of a message", a_packet_of_a_message},
        {"units of a step", units_of_a_step},
        {"pauses of the machine", pauses_of_the_machine},
        {"clients of one entry", clients_of_one_entry},
        {"rows and sums", rows_and_sums},
        {"sends that wait", sends_that_wait},
        {"a long packet", a_long_packet},
        {"an image is shown whole", an_image_is_shown_whole},
        CU_TEST_INFO_NULL,
    };

    return suite_run("offload records", tests);
}
