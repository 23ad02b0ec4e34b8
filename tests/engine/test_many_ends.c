/*
 * Many operations of one flow that end at the same time: their region was withdrawn, or their
 * target has ended. A step ends some of them, later steps the others, in order and each once. One
 * engine over a fabric that only remembers; the test is the client and the peer. One thread.
 */
#include <errno.h>
#include "daemon/engine/ops/turn.h"
#include "tests/engine/bench/linked_bench.h"
#include "tests/engine/bench/peek.h"
#include "tests/suite.h"

enum {
    ENTRIES = 4096,
    QUEUED = 4000,
    BYTES = 1 << 18, /* of each ring: room for so many submissions, and events */
    /* The most that a step ends of operations whose target is gone: those that a sweep may end, and
     * those that may have started, with one that was placed. */
    STEP_ENDS = 1024 + 66,
};

/* Opens a bench with a remote. */
static struct bench *new_bench(void)
{
    const struct bench_shape shape = {
        .ring_bytes = BYTES, .region_bytes = 4096, .entries = ENTRIES};
    struct bench *b = bench_new(&shape);

    CU_ASSERT_PTR_NOT_NULL_FATAL(b);
    CU_ASSERT_EQUAL_FATAL(bench_link(b), 0);
    bench_remote(b);
    return b;
}

/* Opens a bench with a remote whose flow is held. */
static struct bench *held_bench(void)
{
    struct bench *b = new_bench();

    bench_note(b, WIRE_STOP, 0, 0);
    CU_ASSERT_TRUE_FATAL(peek_flow(b->engine, 0).held);
    return b;
}

static void ack_unseen(struct bench *b)
{
    const struct wire_ack ack = {.head = {.words = sizeof(ack) / 8, .kind = WIRE_ACK},
                                 .consumed = peek_peer(b->engine, 1).posted};

    CU_ASSERT_TRUE(bench_send_unseen(b, &ack, sizeof(ack)));
}

static void submit_put(struct bench *b, uint64_t id)
{
    const struct submit_record put = {.size = sizeof(put),
                                      .kind = SUBMIT_PUT,
                                      .reserve = event_bytes(0),
                                      .length = 64,
                                      .lid = id};

    bench_submit_unseen(b, &put);
}

/* Submits puts up to QUEUED, numbered by their ids. */
static void queue_puts(struct bench *b, uint32_t from)
{
    const uint64_t end = QUEUED * sizeof(struct submit_record);

    for (uint32_t i = from; i < QUEUED; i++)
        submit_put(b, i);
    for (int i = 0; i < QUEUED && atomic_load(&b->session->submit.head) < end; i++)
        bench_steps(b, 1);
    CU_ASSERT_EQUAL_FATAL(atomic_load(&b->session->submit.head), end);
    CU_ASSERT_EQUAL(atomic_load(&b->session->local.tail), 0);
}

static uint32_t ended(const struct bench *b)
{
    return (uint32_t)(atomic_load(&b->session->local.tail) / event_bytes(0));
}

/* Makes steps until `count` puts have ended; none may end more than `most` of them. */
static void end_in_pieces(struct bench *b, uint32_t count, uint32_t most)
{
    for (int i = 0; i < QUEUED && ended(b) < count; i++) {
        uint32_t before = ended(b);

        bench_steps(b, 1);
        CU_ASSERT(ended(b) - before <= most);
    }
}

/* Checks that `count` puts have ended in order, the first `placed` of them well. */
static void expect_ends(struct bench *b, uint32_t count, uint32_t placed, int32_t status)
{
    struct event_record event;

    for (uint32_t i = 0; i < count; i++) {
        CU_ASSERT_TRUE_FATAL(bench_local_event(b, &event));
        CU_ASSERT(event.id == i && event.status == (i < placed ? 0 : status));
    }
    CU_ASSERT_FALSE(bench_local_event(b, &event));
    CU_ASSERT_FALSE(b->broken || b->quarantined);
}

/* Guards that an operation which fails before it stages anything still costs a part of its turn. */
static void withdrawn_region(void)
{
    const struct engine_key key = BENCH_KEY;
    struct {
        struct wire_region revoke;
        struct wire_flow go;
    } records = {.revoke = {.head = {.words = sizeof(records.revoke) / 8, .kind = WIRE_REVOKE},
                            .slot = key.slot,
                            .generation = key.generation},
                 .go = {.head = {.words = sizeof(records.go) / 8, .kind = WIRE_GO}}};
    struct bench *b = held_bench();

    queue_puts(b, 0);
    CU_ASSERT_TRUE(bench_send_unseen(b, &records, sizeof(records)));
    /* A step looks at its peers twice. */
    end_in_pieces(b, QUEUED, 2 * TURN_BYTES / sizeof(struct wire_op));
    expect_ends(b, QUEUED, 0, -EKEYREJECTED);
    bench_free(b);
}

/* Guards the end of a target's context, also where the daemon dies between two steps that end
 * operations, and that a put which is submitted meanwhile ends after them. */
static void ended_target(void)
{
    for (uint32_t restarts = 0; restarts < 2; restarts++) {
        struct bench *b = held_bench();
        const struct wire_flow gone = {.head = {.words = sizeof(gone) / 8, .kind = WIRE_GONE},
                                       .status = -EHOSTDOWN};

        queue_puts(b, 0);
        CU_ASSERT_TRUE(bench_send_unseen(b, &gone, sizeof(gone)));
        end_in_pieces(b, 1, STEP_ENDS);
        CU_ASSERT(ended(b) > 0 && ended(b) < QUEUED);
        submit_put(b, QUEUED);
        if (restarts)
            CU_ASSERT_TRUE_FATAL(bench_reopen(b));
        end_in_pieces(b, QUEUED + 1, STEP_ENDS);
        expect_ends(b, QUEUED + 1, 0, -EHOSTDOWN);
        CU_ASSERT_EQUAL(peek_flow(b->engine, 0).staged, QUEUED + 1);
        bench_free(b);
    }
}

/* Guards that operations behind one whose record the target may still answer wait for that answer,
 * and do not all end with it. */
static void ended_target_with_record(void)
{
    struct bench *b = new_bench();

    submit_put(b, 0);
    bench_steps(b, 4);
    CU_ASSERT_EQUAL_FATAL(peek_flow(b->engine, 0).staged, 1);
    bench_note(b, WIRE_STOP, 0, 0);
    queue_puts(b, 1);
    bench_note(b, WIRE_GONE, 0, 0);
    bench_steps(b, 8);
    CU_ASSERT_EQUAL(ended(b), 0);
    CU_ASSERT(peek_flow(b->engine, 0).staged < QUEUED / 2);
    ack_unseen(b);
    end_in_pieces(b, QUEUED, STEP_ENDS);
    expect_ends(b, QUEUED, 1, -EHOSTDOWN);
    bench_free(b);
}

/* Submits `puts` puts that end when they are staged, and one that fails when it is submitted; then
 * makes the link anew to a peer that has consumed nothing, and one step, in which the peer holds
 * the flow. Returns how many of the puts this step has staged again. */
static uint32_t staged_again(struct bench *b, uint32_t puts)
{
    struct {
        struct submit_record record;
        uint8_t payload[184];
    } put = {.record = {.size = sizeof(put),
                        .kind = SUBMIT_PUT,
                        .flags = SUBMIT_INLINE | SUBMIT_LCE_SOURCE,
                        .reserve = event_bytes(0),
                        .length = sizeof(put.payload)}};
    const struct wire_flow stop = {.head = {.words = sizeof(stop) / 8, .kind = WIRE_STOP}};
    uint64_t all;

    for (; put.record.lid < puts; put.record.lid++)
        bench_submit_unseen(b, &put.record);
    put.record.offset = 1 << 20; /* behind the region's end */
    bench_submit_unseen(b, &put.record);
    for (int i = 0; i < QUEUED && ended(b) < puts + 1; i++)
        bench_steps(b, 1);
    CU_ASSERT_EQUAL_FATAL(ended(b), puts + 1);
    all = peek_flow(b->engine, 0).staged;
    b->position = 0;
    CU_ASSERT_EQUAL_FATAL(bench_link(b), 0);
    CU_ASSERT_TRUE(bench_send_unseen(b, &stop, sizeof(stop)));
    bench_steps(b, 1);
    CU_ASSERT_TRUE(peek_flow(b->engine, 0).held);
    return (uint32_t)(peek_flow(b->engine, 0).staged * (puts + 1) / all);
}

/* Guards that an operation which has ended stays in its flow until it is staged again, where the
 * step that follows a new link stages only the operations before it. The number of these depends on
 * the bounds of a step, so the test looks for it. */
static void ended_before_staged(void)
{
    uint32_t found = 0;

    for (uint32_t puts = 32; puts < 192; puts++) {
        struct bench *b = new_bench();

        if (staged_again(b, puts) == puts) {
            found++;
            ack_unseen(b);
            bench_steps(b, 2);
            CU_ASSERT_EQUAL(peek_flow_ahead(b->engine), NONE);
            bench_note(b, WIRE_GO, 0, 0);
            expect_ends(b, puts + 1, puts, -ERANGE);
        }
        bench_free(b);
    }
    CU_ASSERT(found > 0);
}

int main(void)
{
    CU_TestInfo tests[] = {
        {"a withdrawn region", withdrawn_region},
        {"an ended target", ended_target},
        {"an ended target that has a record", ended_target_with_record},
        {"ended before it is staged again", ended_before_staged},
        CU_TEST_INFO_NULL,
    };

    return suite_run("many ends", tests);
}
