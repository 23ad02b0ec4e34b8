/*
 * Batches of small puts to an offload's region, from a peer that is the test: which batches do not
 * fit, how each put ends, and what happens when a batch comes again. Each case says which rule it
 * guards. Thread: one.
 */
#include <stdlib.h>
#include <string.h>
#include "tests/engine/offload/packet_bench.h"
#include "tests/suite.h"

enum { PUTS_MOST = WIRE_BATCH_PUTS + 1, WORD = 8 };

struct batch_record {
    struct wire_batch w;
    struct {
        struct wire_batch_put put;
        uint8_t bytes[WORD];
    } puts[PUTS_MOST];
};

/* Puts of one word each, at consecutive offsets of the region. */
static struct batch_record batch(const struct bench *b, uint32_t sequence, uint32_t count)
{
    struct batch_record r = {
        .w = {.op = {.head = {.words = (uint16_t)(5 + 3 * count), .kind = WIRE_BATCH},
                     .flow = bench_inflow(b),
                     .sequence = sequence,
                     .count = count,
                     .length = count * WORD},
              .slot = b->key.slot,
              .generation = b->key.generation}};

    for (uint32_t i = 0; i < count; i++)
        r.puts[i].put = (struct wire_batch_put){
            .rid = i, .place = (uint64_t)i * WORD << BATCH_LENGTH_BITS | WORD};
    return r;
}

static void send_batch(struct bench *b, const struct batch_record *r)
{
    CU_ASSERT_TRUE_FATAL(bench_send(b, r, r->w.op.head.words * 8u));
}

/* Takes the errno of each put from the only FAIL that the engine has sent. Returns the status of
 * that FAIL. */
static int32_t outcomes(const struct bench *b, uint8_t *errnos, uint32_t count)
{
    uint64_t end = peek_peer(b->engine, 1).staged;
    int32_t status = 0;

    CU_ASSERT_EQUAL(sent(b, WIRE_FAIL), 1);
    memset(errnos, 0, count);
    for (uint64_t at = 0; at < end;) {
        const struct wire_flow *w = peek_record(b->engine, 1, at);

        at += w->head.words * UINT64_C(8);
        if (w->head.kind != WIRE_FAIL)
            continue;
        status = w->status;
        CU_ASSERT_EQUAL(w->done, count);
        CU_ASSERT_EQUAL_FATAL(w->head.words * 8u, sizeof(*w) + abi_pad8(count));
        memcpy(errnos, w + 1, count);
    }
    return status;
}

/* Guards how many puts a batch to an offload's region may have, and how long they may be. */
static void batches_that_do_not_fit(void)
{
    static const struct {
        uint32_t puts, length;
        bool fits;
    } rows[] = {{1, WORD, true},
                {WIRE_BATCH_PUTS, WORD, true},
                {WIRE_BATCH_PUTS + 1, WORD, false},
                {1, 0, false},
                {2, WORD + 1, false}};

    for (size_t i = 0; i < COUNT(rows); i++) {
        uint32_t handle, runs = rows[i].fits ? rows[i].puts : 0;
        struct bench *b = new_bench(&handle);
        struct batch_record r = batch(b, SEQUENCE, rows[i].puts);

        r.puts[rows[i].puts - 1].put.place = rows[i].length;
        send_batch(b, &r);
        CU_ASSERT_EQUAL(b->broken, !rows[i].fits);
        check_runs(b, handle, runs, runs, runs);
        CU_ASSERT_EQUAL(sent(b, WIRE_FAIL), 0);
        bench_free(b);
    }
}

/* Guards that a put which is longer than a packet breaks the link. */
static void puts_longer_than_a_packet(void)
{
    uint32_t handle;
    struct bench *b = new_bench(&handle);
    uint32_t most = b->config.packed_max & ~(WIRE_PACKET_UNIT - 1);

    for (uint32_t more = 0; more < 2; more++) {
        static uint64_t words[1024];
        uint32_t bytes = most + 8 * more;
        struct batch_record r = batch(b, SEQUENCE + more, 1);

        CU_ASSERT_FATAL(56 + bytes <= sizeof(words));
        r.puts[0].put.place = bytes;
        r.w.op.head.words = (uint16_t)(7 + bytes / 8);
        memcpy(words, &r, 56);
        CU_ASSERT_TRUE_FATAL(bench_send(b, words, 56 + bytes));
        CU_ASSERT_EQUAL(b->broken, more == 1);
    }
    check_runs(b, handle, 1, 1, 1);
    bench_free(b);
}

/* Guards that puts of a batch which do not end well do not end the others, and that one FAIL says
 * how each ended. */
static void outcomes_of_a_batch(void)
{
    uint8_t errnos[11];
    uint32_t handle;
    struct bench *b = new_bench(&handle);
    struct batch_record r = batch(b, SEQUENCE, COUNT(errnos));

    r.puts[4].put.place = (uint64_t)(4096 - WORD + 1) << BATCH_LENGTH_BITS | WORD;
    r.puts[10].put.place |= UINT64_MAX << BATCH_LENGTH_BITS;
    send_batch(b, &r);
    CU_ASSERT_EQUAL(outcomes(b, errnos, COUNT(errnos)), -ERANGE);
    for (uint32_t i = 0; i < COUNT(errnos); i++)
        CU_ASSERT_EQUAL(errnos[i], i == 4 || i == 10 ? ERANGE : 0);
    check_runs(b, handle, 9, 9, 9);
    CU_ASSERT_FALSE(b->broken);
    bench_free(b);
}

/* A batch of ten puts is refused in its middle, because handlers that go through so many loops have
 * used up their client's turn. Returns how many puts are done. */
static uint64_t refused_batch_of(struct bench *b, uint32_t loops, uint32_t *handle,
                                 struct batch_record *r)
{
    uint64_t done;

    CU_ASSERT_EQUAL_FATAL(engine_offload_destroy(b->engine, 0, *handle), 0);
    *handle = create_with_loops(b, &b->key, HANDLER_PROCESS_DATA, loops);
    *r = batch(b, SEQUENCE, 10);
    poke_other_work(b->engine);
    send_batch(b, r);
    done = peek_offload(b->engine, *handle).counters[HANDLER_COMPLETION];
    CU_ASSERT_EQUAL_FATAL(sent(b, WIRE_REFUSE), 1);
    CU_ASSERT_FATAL(done > 0 && done < 10);
    return done;
}

static uint64_t refused_batch(struct bench *b, uint32_t *handle, struct batch_record *r)
{
    return refused_batch_of(b, 3000, handle, r);
}

static void await_go(struct bench *b)
{
    for (int i = 0; i < 1000 && sent(b, WIRE_GO) == 0; i++)
        bench_steps(b, 100);
    CU_ASSERT_EQUAL_FATAL(sent(b, WIRE_GO), 1);
}

/* Guards that puts which are done are not done again when a refused batch comes again, on the same
 * link, over a new one, or to another process. */
static void batch_again(void)
{
    for (uint32_t row = 0; row < 3; row++) {
        struct batch_record r;
        uint32_t handle;
        struct bench *b = new_bench(&handle);

        (void)refused_batch(b, &handle, &r);
        await_go(b);
        if (row == 1) {
            const struct wire_record unknown = {.words = 1, .kind = 0xff};

            CU_ASSERT_TRUE_FATAL(bench_send(b, &unknown, sizeof(unknown)));
            CU_ASSERT_TRUE_FATAL(b->broken);
        } else if (row == 2) {
            CU_ASSERT_TRUE_FATAL(bench_reopen(b));
        }
        if (row > 0) {
            b->position = peek_peer(b->engine, 1).staged;
            CU_ASSERT_EQUAL_FATAL(bench_link(b), 0);
        }
        bench_steps(b, 10000);
        send_batch(b, &r);
        bench_steps(b, 10);
        check_runs(b, handle, 10, 10, 10);
        /* With a new link the ledger's earlier records are gone. */
        CU_ASSERT(row > 0 || sent(b, WIRE_FAIL) == 0);
        CU_ASSERT_FALSE(b->broken || b->quarantined);
        bench_free(b);
    }
}

/* Guards that a batch which comes again with fewer puts than are done breaks the link. The batch
 * has some puts, because an empty one is wrong by itself; and its first put has the place of the
 * put that was refused, because another place would not fit what the inflow holds. */
static void batch_again_shorter(void)
{
    struct batch_record r;
    uint32_t handle;
    struct bench *b = new_bench(&handle);
    uint64_t done = refused_batch_of(b, 1000, &handle, &r);
    struct batch_record less = batch(b, SEQUENCE, (uint32_t)done - 1);

    CU_ASSERT_FATAL(done > 1);
    less.puts[0].put.place = r.puts[done].put.place;
    await_go(b);
    send_batch(b, &less);
    CU_ASSERT_TRUE(b->broken);
    check_runs(b, handle, done, done, done);
    bench_free(b);
}

/* Guards a batch that comes again when its offload has gone, and in one row when its region takes
 * no packets any more: the puts that were done end well, and the origin gets the errors of the
 * others. */
static void batch_without_an_offload(void)
{
    for (uint32_t let = 0; let < 2; let++) {
        uint8_t errnos[10];
        struct batch_record r;
        uint32_t handle;
        struct bench *b = new_bench(&handle);
        uint64_t done = refused_batch(b, &handle, &r);
        int error = let ? EOPNOTSUPP : ESHUTDOWN;

        CU_ASSERT_EQUAL(engine_offload_destroy(b->engine, 0, handle), 0);
        await_go(b);
        if (let)
            let_go(b);
        send_batch(b, &r);
        CU_ASSERT_EQUAL(outcomes(b, errnos, 10), -ESHUTDOWN);
        for (uint32_t i = 0; i < 10; i++)
            CU_ASSERT_EQUAL(errnos[i], i < done ? 0 : i == done ? ESHUTDOWN : error);
        CU_ASSERT_FALSE(b->broken || b->quarantined);
        bench_free(b);
    }
}

/* Guards an origin that has failed in the middle of a batch, and says so by a note: its next batch
 * begins with its first put. */
static void batch_is_left(void)
{
    struct batch_record r;
    uint32_t handle;
    struct bench *b = new_bench(&handle);
    uint64_t done = refused_batch(b, &handle, &r);
    const struct wire_op note = {
        .head = {.words = sizeof(note) / 8, .kind = WIRE_NOTE, .flags = WIRE_NO_EVENT},
        .flow = bench_inflow(b),
        .sequence = SEQUENCE};

    await_go(b);
    CU_ASSERT_TRUE_FATAL(bench_send(b, &note, sizeof(note)));
    bench_steps(b, 10000);
    r.w.op.count = 1;
    r.w.op.head.words = 5 + 3;
    send_batch(b, &r);
    check_runs(b, handle, done + 1, done + 1, done + 1);
    CU_ASSERT_EQUAL(sent(b, WIRE_FAIL), 0);
    CU_ASSERT_FALSE(b->broken || b->quarantined);
    bench_free(b);
}

int main(void)
{
    CU_TestInfo tests[] = {{"batches that do not fit", batches_that_do_not_fit},
                           {"puts longer than a packet", puts_longer_than_a_packet},
                           {"outcomes of a batch", outcomes_of_a_batch},
                           {"a batch comes again", batch_again},
                           {"a batch comes again, shorter", batch_again_shorter},
                           {"a batch without an offload", batch_without_an_offload},
                           {"a batch is left", batch_is_left},
                           CU_TEST_INFO_NULL};

    return suite_run("batch records", tests);
}
