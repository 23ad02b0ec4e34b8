/* Operations of a peer that arrive while something else is under way: their flow, the client, or
 * the memory for their answer changes. test_records has the checks of fields. One engine; the test
 * is its peer (record_bench.h). One thread. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "tests/suite.h"
#include "daemon/engine/engine.h"
#include "tests/engine/bench/linked_bench.h"
#include "tests/engine/bench/peek.h"
#include "proto/session_abi.h"
#include "proto/wire_abi.h"

#define PEER 1u /* node of the peer */

static struct bench *bench_of(bool with_self)
{
    struct bench *b = unbound_bench(with_self);

    bench_bind(b, 5);
    for (uint32_t i = 0; i < SESSION_HANDLERS / 64; i++)
        atomic_store(&b->session->handlers[i], UINT64_MAX);
    return b;
}

struct put_record {
    struct wire_put put;
    uint8_t payload[16];
};

static struct put_record good_put(const struct bench *b)
{
    return (struct put_record){
        .put = {.op = {.head = {.words = sizeof(struct put_record) / 8, .kind = WIRE_PUT},
                       .flow = bench_inflow(b),
                       .length = 16},
                .slot = b->key.slot,
                .generation = b->key.generation},
        .payload = "0123456789abcde"};
}

struct message_record {
    struct wire_op op;
    struct message block;
    uint8_t payload[8000];
};

/* A Medium with this much payload, or a Short where `payload` is 0. */
static struct message_record message_of(uint32_t flow, uint32_t payload)
{
    struct message_record m = {
        .op = {.head = {.kind = WIRE_NOTE, .flags = WIRE_MESSAGE}, .flow = flow},
        .block = {.kind = payload > 0 ? SUBMIT_MEDIUM : SUBMIT_SHORT, .payload_len = payload}};

    m.op.rid_len = (uint16_t)(sizeof(m.block) + abi_pad8(payload));
    m.op.head.words = (uint16_t)((sizeof(m.op) + m.op.rid_len) / 8);
    return m;
}

static void send_message(struct bench *b, const struct message_record *m)
{
    bench_send(b, m, m->op.head.words * 8u);
}

/* Whether the engine has sent a note of this kind. */
static bool was_sent(const struct bench *b, uint8_t kind)
{
    return b->fabric.kinds & UINT64_C(1) << kind;
}

/* ---- whose flow it is ------------------------------------------------------------------------ */

static void flows_of_others(void)
{
    enum { ITS_OWN = 1, OF_ANOTHER_NODE = 0, PARTING = 2, FREE = 3 };
    static const struct {
        uint32_t flow;
        bool taken;
    } rows[] = {{ITS_OWN, true}, {OF_ANOTHER_NODE, false}, {PARTING, false}, {FREE, false}};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct bench *b = bench_of(true);
        struct put_record put = good_put(b);
        struct message_record request = message_of(PARTING, 0);

        bench_bind(b, 6);
        send_message(b, &request);
        bench_note(b, WIRE_CLOSE, PARTING, 0);
        CU_ASSERT_EQUAL_FATAL(peek_inflow(b->engine, OF_ANOTHER_NODE).peer, 0);
        CU_ASSERT_EQUAL_FATAL(peek_inflow(b->engine, PARTING).state, INFLOW_PARTING);
        put.put.op.flow = rows[i].flow;
        bench_send(b, &put, sizeof(put));
        CU_ASSERT_EQUAL(b->broken, !rows[i].taken);
        CU_ASSERT_EQUAL(b->segment[0] == '0', rows[i].taken);
        bench_free(b);
    }
}

/* ---- places of the payload ------------------------------------------------------------------- */

/* Guards regions that must not be written although the key is right: the old contents stay. */
static void regions_not_to_be_written(void)
{
    enum { READ_ONLY, ANOTHERS, NOT_ATTACHED, ROWS };
    static const int statuses[ROWS] = {-EKEYREJECTED, -EKEYREJECTED, -EHOSTDOWN};

    for (int row = 0; row < ROWS; row++) {
        static uint8_t others_memory[4096];
        const struct engine_client_info info = {.rank = 1, .size = 2, .job = "j"};
        struct bench *b = bench_of(false);
        struct put_record put = good_put(b);
        struct engine_key key = b->key;

        CU_ASSERT_EQUAL_FATAL(engine_client_open(b->engine, &info), 1);
        CU_ASSERT_EQUAL_FATAL(
            engine_segment_open(b->engine, 1, others_memory, sizeof(others_memory)), 1);
        bench_steps(b, 2);
        if (row == READ_ONLY)
            CU_ASSERT_EQUAL_FATAL(
                engine_region_open(b->engine, 0, 0, 0, 4096, ENGINE_REMOTE_READ, &key), 0);
        if (row == ANOTHERS)
            CU_ASSERT_EQUAL_FATAL(
                engine_region_open(b->engine, 1, 1, 0, 4096, ENGINE_REMOTE_WRITE, &key), 0);
        if (row == NOT_ATTACHED) /* the segment is from an earlier process, and not mapped yet */
            poke_unmapped(b->engine, 0);
        put.put.slot = key.slot;
        put.put.generation = key.generation;
        bench_send(b, &put, sizeof(put));
        CU_ASSERT_FALSE(b->broken);
        CU_ASSERT_TRUE(was_sent(b, WIRE_FAIL));
        {
            struct wire_flow fail;

            peek_last_note(b->engine, PEER, NOTES_VERDICTS, &fail);
            CU_ASSERT_EQUAL(fail.status, statuses[row]);
        }
        CU_ASSERT_EQUAL(b->segment[0], 0);
        CU_ASSERT_EQUAL(others_memory[0], 0);
        bench_free(b);
    }
}

static bool memory_faulted(void *context, uint32_t client)
{
    return true;
}

struct batch_record {
    struct wire_batch batch;
    struct {
        struct wire_batch_put put;
        uint8_t payload[8];
    } puts[300];
};

static struct batch_record batch_of(const struct bench *b, uint32_t count)
{
    struct batch_record batch = {
        .batch = {.op = {.head = {.kind = WIRE_BATCH}, .flow = bench_inflow(b), .rid = count},
                  .slot = b->key.slot,
                  .generation = b->key.generation}};

    batch.batch.op.head.words =
        (uint16_t)((sizeof(batch.batch) + count * sizeof(batch.puts[0])) / 8);
    for (uint32_t i = 0; i < count; i++) {
        batch.puts[i].put.place = 8;
        batch.puts[i].payload[0] = 'x';
    }
    return batch;
}

/* Guards a target whose client has cut its memory short: the client is quarantined, the origin gets
 * an error, and the link stays up. */
static void memory_that_faults(void)
{
    for (int batch = 0; batch < 2; batch++) {
        struct bench *b = bench_of(false);
        struct put_record put = good_put(b);
        struct batch_record puts = batch_of(b, 2);

        b->host.faulted = memory_faulted;
        if (batch)
            bench_send(b, &puts, puts.batch.op.head.words * 8u);
        else
            bench_send(b, &put, sizeof(put));
        CU_ASSERT_FALSE(b->broken);
        CU_ASSERT_TRUE(b->quarantined);
        CU_ASSERT_TRUE(was_sent(b, WIRE_FAIL));
        CU_ASSERT_EQUAL(bench_events(b), 0);
        bench_free(b);
    }
}

/* Guards that a batch as long as the room for copies is taken, and that a longer one breaks the
 * link. */
static void batches_too_long(void)
{
    struct bench *b = bench_of(false);
    uint32_t most = peek_record_max(b->engine) / sizeof(((struct batch_record *)0)->puts[0]);

    for (uint32_t count = most; count <= most + 1; count++) {
        struct batch_record batch = batch_of(b, count);

        bench_send(b, &batch, batch.batch.op.head.words * 8u);
        CU_ASSERT_EQUAL(b->broken, count > most);
    }
    CU_ASSERT_EQUAL(b->segment[0], 'x');
    bench_free(b);
}

/* ---- events and their room ------------------------------------------------------------------- */

/* Guards that room for the event is reserved before anything is placed: a program that polls its
 * memory never sees the payload of a put that is refused, and sees it once the put is taken. */
static void refused_and_not_placed(void)
{
    for (int batch = 0; batch < 2; batch++) {
        struct bench *b = bench_of(false);
        struct wire_op op = {.head = {.words = sizeof(op) / 8, .kind = WIRE_NOTE},
                             .flow = bench_inflow(b)};
        struct put_record put = good_put(b);
        struct batch_record puts = batch_of(b, 2);
        const void *record = batch ? (const void *)&puts : &put;
        uint32_t size = batch ? puts.batch.op.head.words * 8u : (uint32_t)sizeof(put);

        for (uint32_t n = 0; n < RING / event_bytes(0); n++, op.sequence++)
            bench_send(b, &op, sizeof(op));
        bench_ack(b);
        bench_steps(b, 2);
        put.put.op.sequence = puts.batch.op.sequence = op.sequence;
        poke_config(b->engine)->spill_max = 0;
        bench_send(b, record, size);
        bench_steps(b, 4);
        CU_ASSERT_TRUE(was_sent(b, WIRE_REFUSE));
        CU_ASSERT_EQUAL(b->segment[0], 0);
        poke_config(b->engine)->spill_max = RING;
        bench_send(b, record, size);
        CU_ASSERT_FALSE(b->broken);
        CU_ASSERT_EQUAL(b->segment[0], batch ? 'x' : '0');
        bench_free(b);
    }
}

/* Guards that a put stays in the ledger, with its payload, until there is memory to note that it is
 * refused, or to hold its flow. */
static void refusals_without_memory(void)
{
    static const struct {
        uint32_t spill_max; /* 0: the put is refused; otherwise its event is spilled */
        bool nonce;
        bool first; /* there is memory for a verdict, or for the event, but not for a note */
    } rows[] = {{0, false, false}, {0, true, false},    {0, false, true},
                {0, true, true},   {RING, false, true}, {RING, true, true}};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct bench *b = bench_of(false);
        struct wire_op op = {.head = {.words = sizeof(op) / 8, .kind = WIRE_NOTE},
                             .flow = bench_inflow(b)};
        struct {
            struct wire_op op;
            struct wire_pieces pieces;
        } last = {.pieces = {.count = 1}};
        uint32_t free, chunks;

        for (uint32_t n = 0; n < RING / event_bytes(0); n++, op.sequence++)
            bench_send(b, &op, sizeof(op));
        /* The next note other than a verdict needs a chunk of its own. */
        while (peek_note_place(b->engine, PEER, NOTES_OTHERS) != 0) {
            const struct wire_region revoke = {
                .head = {.words = sizeof(revoke) / 8, .kind = WIRE_REVOKE}, .slot = 3};

            bench_send(b, &revoke, sizeof(revoke));
            bench_ack(b);
        }
        bench_ack(b);
        bench_steps(b, 2);
        poke_config(b->engine)->spill_max = rows[i].spill_max;
        poke_chunks_keep(b->engine, 0);
        chunks = rows[i].spill_max > 0 ? peek_spill_growth(b->engine, 0)
                                       : peek_verdict_growth(b->engine, PEER);
        free = poke_memory(b->engine, rows[i].first ? chunks : 0);
        last.op = op;
        if (rows[i].nonce) {
            last.op.head.words = sizeof(last) / 8;
            last.op.head.kind = WIRE_PLACED;
            last.op.head.flags = WIRE_NONCE;
            last.op.length = 64;
            still_push(&b->fabric,
                       &(struct fabric_event){.kind = FABRIC_ARRIVED,
                                              .immediate = wire_immediate(WIRE_PAYLOAD, PEER, 0)});
        }
        b->fabric.kinds = 0;
        bench_send(b, &last, last.op.head.words * 8u);
        CU_ASSERT_FALSE(b->broken);
        CU_ASSERT_FALSE(was_sent(b, WIRE_REFUSE));
        CU_ASSERT_FALSE(was_sent(b, WIRE_STOP));
        CU_ASSERT_EQUAL(peek_inflow(b->engine, 0).state, INFLOW_OPEN);
        poke_memory(b->engine, free);
        bench_steps(b, 4);
        CU_ASSERT_FALSE(b->broken);
        CU_ASSERT_EQUAL(was_sent(b, WIRE_REFUSE), rows[i].spill_max == 0);
        CU_ASSERT_EQUAL(was_sent(b, WIRE_STOP), rows[i].spill_max != 0);
        bench_free(b);
    }
}

/* ---- replies --------------------------------------------------------------------------------- */

/* The client sends a request, which has no reply yet. */
static void request_something(struct bench *b)
{
    struct {
        struct submit_record record;
        struct message block;
    } request = {.record = {.size = sizeof(request),
                            .kind = SUBMIT_SHORT,
                            .reserve = event_bytes(0),
                            .rid_len = sizeof(request.block)},
                 .block = {.kind = SUBMIT_SHORT}};

    bench_remote(b);
    poke_reply_ring(b->engine, 0, 1u << 20); /* the reply ring is large enough for any request */
    bench_submit(b, &request.record);
    CU_ASSERT_FALSE_FATAL(b->quarantined);
    CU_ASSERT_EQUAL_FATAL(peek_flow(b->engine, 0).replies_expected, 1);
}

/* Guards that a reply which is too long for its requester gives its space back, and that a reply
 * whose payload cannot be named breaks the link. */
static void replies_that_do_not_fit(void)
{
    enum { FITS, TOO_LONG, NO_SUCH_PAYLOAD, NOT_THERE_YET, ROWS };

    for (int row = 0; row < ROWS; row++) {
        struct bench *b = bench_of(false);
        struct message_record reply = message_of(0, row == TOO_LONG ? 6000 : 0);

        request_something(b);
        reply.op.head.flags |= WIRE_REPLY;
        reply.block.token = 0;
        if (row >= NO_SUCH_PAYLOAD) {
            reply.op.head.kind = WIRE_PLACED;
            reply.op.head.flags |= WIRE_NONCE;
            reply.op.nonce = row == NO_SUCH_PAYLOAD ? NONCE_WINDOW : 3;
            reply.op.length = 64;
            reply.op.head.words += sizeof(struct wire_pieces) / 8;
            reply.payload[0] = 1; /* the reply names its payload: one piece */
            reply.block.kind = SUBMIT_LONG;
        }
        send_message(b, &reply);
        CU_ASSERT_EQUAL(b->broken, row == NO_SUCH_PAYLOAD);
        CU_ASSERT_EQUAL(was_sent(b, WIRE_FAIL), row == TOO_LONG);
        CU_ASSERT_EQUAL(peek_session(b->engine, 0).replied, row == FITS);
        CU_ASSERT_EQUAL(peek_session(b->engine, 0).reply_dropped, row == TOO_LONG);
        bench_free(b);
    }
}

/* Guards that a Long reply goes to the origin of its request only, by a remote of the client that
 * leads there. */
static void ways_of_a_long_reply(void)
{
    enum { TO_ITSELF, TO_ANOTHER_RANK, TO_THE_REQUESTER, NOWHERE, ROWS };

    for (uint32_t row = 0; row < ROWS; row++) {
        struct bench *b = bench_of(true); /* remote 0 leads to itself */
        struct message_record request = message_of(bench_inflow(b), 0);
        struct {
            struct submit_record record;
            struct message block;
        } answer = {.record = {.size = sizeof(answer),
                               .kind = SUBMIT_LONG,
                               .remote = row,
                               .reserve = event_bytes(0),
                               .length = 64,
                               .rid = bench_inflow(b),
                               .rid_len = sizeof(answer.block)},
                    .block = {.kind = SUBMIT_LONG}};

        send_message(b, &request);
        for (uint32_t peer = 2; peer > 0; peer--) { /* the request has arrived from endpoint 1 */
            const struct engine_key key = BENCH_KEY;

            CU_ASSERT_EQUAL_FATAL(engine_bind(b->engine, 0, PEER, peer, &key, 1), 0);
            bench_bound(b, 3 - peer, 0, 3);
        }
        memcpy(b->answer, &answer, sizeof(answer));
        atomic_store(&b->session->reply_submit.tail, sizeof(answer));
        bench_steps(b, 4);
        CU_ASSERT_EQUAL(b->quarantined, row != TO_THE_REQUESTER);
        CU_ASSERT_EQUAL(was_sent(b, WIRE_PLACED), row == TO_THE_REQUESTER);
        bench_free(b);
    }
}

/* Guards the bound of pieces that are announced for one nonce, which are counted in 16 bits: one
 * more breaks the link. */
static void pieces_without_end(void)
{
    enum { AT_A_TIME = 1024 };
    struct bench *b = linked_bench();
    const struct fabric_event piece = {.kind = FABRIC_ARRIVED,
                                       .immediate = wire_immediate(WIRE_PAYLOAD, PEER, 3)};

    for (uint32_t n = 0; n < WIRE_PIECES_MAX; n++) {
        still_push(&b->fabric, &piece);
        if (n % AT_A_TIME == 0)
            bench_steps(b, AT_A_TIME / 32);
    }
    bench_steps(b, AT_A_TIME / 32);
    CU_ASSERT_FALSE(b->broken);
    still_push(&b->fabric, &piece);
    bench_steps(b, 2);
    CU_ASSERT_TRUE(b->broken);
    bench_free(b);
}

/* ---- notes ----------------------------------------------------------------------------------- */

/* Guards that notes about a flow that has gone do nothing, and that the offer of a second ring
 * while the first is not taken breaks the link. */
static void notes_out_of_time(void)
{
    static const uint8_t kinds[] = {WIRE_FAIL, WIRE_REFUSE, WIRE_STOP, WIRE_GO, WIRE_GONE};
    const struct {
        struct wire_offer first, second;
    } offers = {
        {.head = {.words = sizeof(struct wire_offer) / 8, .kind = WIRE_OFFER}, .bytes = 32768},
        {.head = {.words = sizeof(struct wire_offer) / 8, .kind = WIRE_OFFER}, .bytes = 65536}};
    struct bench *b;

    for (size_t i = 0; i < sizeof(kinds); i++) {
        b = bench_of(false);
        bench_remote(b);
        CU_ASSERT_EQUAL_FATAL(engine_unbind(b->engine, 0, 0), 0);
        bench_steps(b, 2);
        bench_ack(b);
        bench_steps(b, 2);
        CU_ASSERT_EQUAL_FATAL(peek_flow(b->engine, 0).state, FLOW_FREE);
        CU_ASSERT_EQUAL_FATAL(peek_flow(b->engine, 0).peer, PEER);
        bench_note(b, kinds[i], 0, 0);
        CU_ASSERT_FALSE(b->broken);
        CU_ASSERT_EQUAL(peek_flow(b->engine, 0).state, FLOW_FREE);
        CU_ASSERT_FALSE(peek_flow(b->engine, 0).held);
        bench_free(b);
    }
    b = bench_of(false);
    bench_send(b, &offers, sizeof(offers));
    CU_ASSERT_TRUE(b->broken);
    bench_free(b);
}

int main(void)
{
    CU_TestInfo tests[] = {{"flows of others", flows_of_others},
                           {"regions not to be written", regions_not_to_be_written},
                           {"memory that faults", memory_that_faults},
                           {"batches too long", batches_too_long},
                           {"pieces without end", pieces_without_end},
                           {"refused and not placed", refused_and_not_placed},
                           {"refusals without memory", refusals_without_memory},
                           {"replies that do not fit", replies_that_do_not_fit},
                           {"ways of a Long reply", ways_of_a_long_reply},
                           {"notes out of time", notes_out_of_time},
                           CU_TEST_INFO_NULL};

    return suite_run("arrivals", tests);
}
