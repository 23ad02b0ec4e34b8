/*
 * The operations that a session counts as arrived and as left, and which sleeper a count wakes. One
 * engine; the test is its client and its peer (record_bench.h). One thread.
 */
#include <string.h>
#include "tests/suite.h"
#include "daemon/engine/engine.h"
#include "proto/session_abi.h"
#include "proto/wire_abi.h"
#include "tests/engine/bench/linked_bench.h"
#include "tests/engine/bench/peek.h"

struct put_record {
    struct wire_put put;
    uint64_t payload;
};

static struct put_record put_of(const struct bench *b, uint32_t sequence, uint8_t flags)
{
    return (struct put_record){.put = {.op = {.head = {.words = sizeof(struct put_record) / 8,
                                                       .kind = WIRE_PUT,
                                                       .flags = flags},
                                              .flow = bench_inflow(b),
                                              .sequence = sequence,
                                              .length = 8},
                                       .slot = b->key.slot,
                                       .generation = b->key.generation},
                               .payload = 7};
}

static void send_put(struct bench *b, uint32_t sequence, uint8_t flags)
{
    struct put_record put = put_of(b, sequence, flags);

    bench_send(b, &put, sizeof(put));
}

static uint64_t arrived(const struct bench *b)
{
    return atomic_load(&b->session->counts.arrived);
}

/* ---- what counts ----------------------------------------------------------------------------- */

static void test_puts_count(void)
{
    struct bench *b = linked_bench();

    send_put(b, 0, WIRE_NO_EVENT);
    CU_ASSERT_EQUAL(arrived(b), 1);
    send_put(b, 1, 0);
    CU_ASSERT_EQUAL(arrived(b), 2);
    CU_ASSERT(bench_events(b) > 0);
    CU_ASSERT_FALSE(b->broken);
    bench_free(b);
}

/* Guards that a batch counts each of its puts. */
static void test_batches_count(void)
{
    struct bench *b = linked_bench();
    struct {
        struct wire_batch batch;
        struct {
            struct wire_batch_put put;
            uint64_t payload;
        } puts[3];
    } record = {.batch = {.op = {.head = {.words = sizeof(record) / 8,
                                          .kind = WIRE_BATCH,
                                          .flags = WIRE_NO_EVENT},
                                 .flow = bench_inflow(b),
                                 .count = 3,
                                 .length = 24},
                          .slot = b->key.slot,
                          .generation = b->key.generation}};

    for (uint64_t i = 0; i < 3; i++)
        record.puts[i].put.place = (8 * i) << BATCH_LENGTH_BITS | 8;
    bench_send(b, &record, sizeof(record));
    CU_ASSERT_EQUAL(arrived(b), 3);
    CU_ASSERT_FALSE(b->broken);
    bench_free(b);
}

/* Guards that the records of a vector count once, with the last one. */
static void test_parts_do_not_count(void)
{
    struct bench *b = linked_bench();

    send_put(b, 0, WIRE_NO_EVENT | WIRE_PART);
    send_put(b, 1, WIRE_NO_EVENT | WIRE_PART);
    CU_ASSERT_EQUAL(arrived(b), 0);
    send_put(b, 2, WIRE_NO_EVENT);
    CU_ASSERT_EQUAL(arrived(b), 1);
    CU_ASSERT_FALSE(b->broken);
    bench_free(b);
}

/* Guards that a put to a place outside the region, or with a wrong key, is not counted. */
static void test_failures_do_not_count(void)
{
    struct bench *b = linked_bench();
    struct put_record put = put_of(b, 0, 0);

    put.put.offset = 4096;
    bench_send(b, &put, sizeof(put));
    put = put_of(b, 1, 0);
    put.put.generation++;
    bench_send(b, &put, sizeof(put));
    CU_ASSERT_EQUAL(arrived(b), 0);
    CU_ASSERT_FALSE(b->broken);
    bench_free(b);
}

/* Guards that a put of no bytes counts only if it has an event: without one, it may have failed at
 * its origin. */
static void test_notes(void)
{
    struct bench *b = linked_bench();
    struct wire_op note = {.head = {.words = sizeof(note) / 8, .kind = WIRE_NOTE},
                           .flow = bench_inflow(b)};

    bench_send(b, &note, sizeof(note));
    CU_ASSERT_EQUAL(arrived(b), 1);
    note.sequence = 1;
    note.head.flags = WIRE_NO_EVENT;
    bench_send(b, &note, sizeof(note));
    CU_ASSERT_EQUAL(arrived(b), 1);
    note.sequence = 2;
    note.head.kind = WIRE_GOT;
    note.head.flags = 0;
    bench_send(b, &note, sizeof(note));
    CU_ASSERT_EQUAL(arrived(b), 1);
    bench_free(b);
}

/* ---- the sleeper that a count wakes ---------------------------------------------------------- */

/* Arms the bell. Returns whether this put has rung it. */
static bool rings(struct bench *b, uint32_t sequence, uint8_t flags)
{
    uint32_t before = b->woken;

    atomic_store(&b->session->event_bell.armed, 1);
    send_put(b, sequence, flags);
    atomic_store(&b->session->event_bell.armed, 0);
    return b->woken > before;
}

static void test_rings_sleepers(void)
{
    struct bench *b = linked_bench();

    CU_ASSERT_FALSE(rings(b, 0, WIRE_NO_EVENT));
    CU_ASSERT_TRUE(rings(b, 1, 0));
    atomic_store(&b->session->client.awaited, 1);
    CU_ASSERT_TRUE(rings(b, 2, WIRE_NO_EVENT));
    CU_ASSERT_TRUE(rings(b, 3, 0));
    atomic_store(&b->session->client.awaited, 0);
    CU_ASSERT_FALSE(rings(b, 4, WIRE_NO_EVENT));
    CU_ASSERT_EQUAL(arrived(b), 5);
    bench_free(b);
}

/* ---- operations that have left their flows --------------------------------------------------- */

/* Submits a put of 8 bytes. Returns the position in the ledger up to which it was posted. */
static uint64_t submit_put(struct bench *b, uint16_t flags)
{
    struct {
        struct submit_record record;
        uint64_t payload;
    } put = {.record = {.size = sizeof(put),
                        .kind = SUBMIT_PUT,
                        .flags = SUBMIT_INLINE | SUBMIT_NO_RCE | flags,
                        .remote = b->remote,
                        .reserve = event_bytes(0),
                        .length = 8}};

    bench_submit(b, &put.record);
    return peek_peer(b->engine, 1).posted;
}

/* Acknowledges records up to this position. Returns whether this has rung the client's bell. */
static bool acknowledge(struct bench *b, uint64_t position)
{
    struct wire_ack ack = {.head = {.words = sizeof(ack) / 8, .kind = WIRE_ACK},
                           .consumed = position};
    uint32_t before = b->woken;

    atomic_store(&b->session->event_bell.armed, 1);
    bench_send(b, &ack, sizeof(ack));
    atomic_store(&b->session->event_bell.armed, 0);
    return b->woken > before;
}

/* How many operations have ended, and how many have left their flows. */
static void check_ends(const struct bench *b, uint64_t ended, uint64_t left)
{
    CU_ASSERT_EQUAL(atomic_load(&b->session->ended), ended);
    CU_ASSERT_EQUAL(atomic_load(&b->session->left), left + 1);
}

static struct bench *bench_with_remote(void)
{
    struct bench *b = unbound_bench(false);

    bench_remote(b);
    engine_hasten(b->engine, true);
    CU_ASSERT_EQUAL(atomic_load(&b->session->left), 1);
    return b;
}

/* Guards that a put whose source may be used again has not left before its target has it, and that
 * a sleeper is woken when it leaves, although no event comes. */
static void test_sources_do_not_leave(void)
{
    struct bench *b = bench_with_remote();
    uint64_t first = submit_put(b, 0), second = submit_put(b, SUBMIT_LCE_SOURCE);

    check_ends(b, 0, 0);
    CU_ASSERT_TRUE(acknowledge(b, first));
    check_ends(b, 2, 1);
    CU_ASSERT_TRUE(acknowledge(b, second));
    check_ends(b, 2, 2);
    CU_ASSERT_FALSE(b->broken || b->quarantined);
    bench_free(b);
}

/* Guards that the puts of a batch are counted one by one: the batch fails at its origin, and stays
 * behind a put whose source may be used again. */
static void test_batches_leave(void)
{
    enum { PUTS = 3 };
    struct bench *b = bench_with_remote();
    struct {
        struct submit_record record;
        uint64_t payload;
    } put = {.record = {.size = sizeof(put),
                        .kind = SUBMIT_PUT,
                        .flags = SUBMIT_INLINE | SUBMIT_NO_RCE,
                        .remote = b->remote,
                        .reserve = event_bytes(0),
                        .length = 8}};

    (void)submit_put(b, SUBMIT_LCE_SOURCE);
    bench_note(b, WIRE_STOP, 0, 0);
    for (int i = 0; i < PUTS; i++)
        bench_submit_unseen(b, &put.record);
    bench_steps(b, 2);
    poke_remote_state(b->engine, b->remote, REMOTE_REVOKED);
    bench_note(b, WIRE_GO, 0, 0);
    check_ends(b, 1 + PUTS, 0);
    bench_ack(b);
    check_ends(b, 1 + PUTS, 1 + PUTS);
    CU_ASSERT_FALSE(b->broken || b->quarantined);
    bench_free(b);
}

/* Guards that an unordered put, which ends first, leaves after the put before it. */
static void test_unordered_put_leaves(void)
{
    struct bench *b = bench_with_remote();

    b->fabric.holds = true;
    bench_submit(b, &(struct submit_record){.size = sizeof(struct submit_record),
                                            .kind = SUBMIT_PUT,
                                            .flags = SUBMIT_NO_RCE,
                                            .remote = b->remote,
                                            .reserve = event_bytes(0),
                                            .length = 4096});
    (void)submit_put(b, SUBMIT_UNORDERED);
    bench_ack(b);
    check_ends(b, 1, 0);
    still_release(&b->fabric);
    bench_steps(b, 2);
    check_ends(b, 2, 2);
    bench_free(b);
}

/* Guards that the next process counts the operations that have ended and not left. */
static void test_left_after_takeover(void)
{
    struct bench *b = bench_with_remote();
    uint64_t first = submit_put(b, 0);

    (void)submit_put(b, SUBMIT_LCE_SOURCE);
    CU_ASSERT_TRUE(acknowledge(b, first));
    atomic_store(&b->session->left, 99);
    CU_ASSERT_TRUE_FATAL(bench_reopen(b));
    check_ends(b, 2, 1);
    bench_steps(b, 2);
    check_ends(b, 2, 1);
    bench_free(b);
}

/* ---- a hostile client ------------------------------------------------------------------------ */

/* Guards that a client which writes over its counts disturbs its own view alone, until the next
 * count. */
static void test_hostile_counts(void)
{
    struct bench *b = linked_bench();

    send_put(b, 0, WIRE_NO_EVENT);
    memset(&b->session->counts, 0xff, sizeof(b->session->counts));
    memset(&b->session->client, 0xff, sizeof(b->session->client));
    send_put(b, 1, WIRE_NO_EVENT);
    CU_ASSERT_EQUAL(arrived(b), 2);
    CU_ASSERT_EQUAL(atomic_load(&b->session->counts.ended), 0);
    CU_ASSERT_EQUAL(atomic_load(&b->session->counts.failed), 0);
    CU_ASSERT_FALSE(b->broken);
    bench_free(b);
}

int main(void)
{
    CU_TestInfo tests[] = {
        {"puts count", test_puts_count},
        {"each put of a batch counts", test_batches_count},
        {"parts of vectors do not count", test_parts_do_not_count},
        {"failures do not count", test_failures_do_not_count},
        {"puts of no bytes", test_notes},
        {"a sleeper for counts is woken", test_rings_sleepers},
        {"sources that may be used again do not leave", test_sources_do_not_leave},
        {"puts of a batch leave one by one", test_batches_leave},
        {"an unordered put leaves after the put before it", test_unordered_put_leaves},
        {"a takeover counts what has left", test_left_after_takeover},
        {"a client that writes its own counts", test_hostile_counts},
        CU_TEST_INFO_NULL,
    };

    return suite_run("counts", tests);
}
