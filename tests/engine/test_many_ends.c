/*
 * Many operations of one flow that end at the same time: their region was withdrawn. A step ends
 * some of them, later steps the others, in order and each once. One engine over a fabric that only
 * remembers; the test is the client and the peer. One thread.
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
};

/* Opens a bench with a remote whose flow is held. */
static struct bench *held_bench(void)
{
    const struct bench_shape shape = {
        .ring_bytes = BYTES, .region_bytes = 4096, .entries = ENTRIES};
    struct bench *b = bench_new(&shape);

    CU_ASSERT_PTR_NOT_NULL_FATAL(b);
    CU_ASSERT_EQUAL_FATAL(bench_link(b), 0);
    bench_remote(b);
    bench_note(b, WIRE_STOP, 0, 0);
    CU_ASSERT_TRUE_FATAL(peek_flow(b->engine, 0).held);
    return b;
}

/* Submits QUEUED puts, numbered by their ids, with these further flags. */
static void queue_puts(struct bench *b, uint16_t flags)
{
    for (uint32_t i = 0; i < QUEUED; i++) {
        const struct submit_record put = {.size = sizeof(put),
                                          .kind = SUBMIT_PUT,
                                          .flags = flags,
                                          .reserve = event_bytes(0),
                                          .length = 64,
                                          .lid = i};

        bench_submit_unseen(b, &put);
    }
    for (int i = 0; i < QUEUED; i++)
        bench_steps(b,
                    atomic_load(&b->session->submit.head) < QUEUED * sizeof(struct submit_record));
    CU_ASSERT_EQUAL_FATAL(atomic_load(&b->session->submit.head),
                          QUEUED * sizeof(struct submit_record));
}

static uint32_t ended(const struct bench *b)
{
    return (uint32_t)(atomic_load(&b->session->local.tail) / event_bytes(0));
}

/* Makes steps until all puts have ended; none may end more than `most` of them. */
static void end_in_pieces(struct bench *b, uint32_t most, int32_t status)
{
    struct event_record event;

    for (int i = 0; i < QUEUED && ended(b) < QUEUED; i++) {
        uint32_t before = ended(b);

        bench_steps(b, 1);
        CU_ASSERT(ended(b) - before <= most);
    }
    CU_ASSERT_EQUAL(ended(b), QUEUED);
    for (uint32_t i = 0; i < QUEUED; i++) {
        CU_ASSERT_TRUE_FATAL(bench_local_event(b, &event));
        CU_ASSERT(event.id == i && event.status == status);
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
    CU_ASSERT_EQUAL(ended(b), 0);
    CU_ASSERT_TRUE(bench_send_unseen(b, &records, sizeof(records)));
    /* A step looks at its peers twice. */
    end_in_pieces(b, 2 * TURN_BYTES / sizeof(struct wire_op), -EKEYREJECTED);
    bench_free(b);
}

int main(void)
{
    CU_TestInfo tests[] = {
        {"a withdrawn region", withdrawn_region},
        CU_TEST_INFO_NULL,
    };

    return suite_run("many ends", tests);
}
