/*
 * A link that begins again, and one whose payload takes long: what is sent first, and what does not
 * break the link. One engine; the test is its peer (record_bench.h). One thread.
 */
#include <errno.h>
#include "daemon/engine/peer/keepalive.h"
#include "proto/session_abi.h"
#include "proto/wire_abi.h"
#include "tests/engine/bench/linked_bench.h"
#include "tests/engine/bench/peek.h"
#include "tests/suite.h"

#define PEER 1u /* node of the peer */

/* A put from the client's segment, whose payload travels on its own. */
static struct submit_record long_put(void)
{
    return (struct submit_record){.size = sizeof(struct submit_record),
                                  .kind = SUBMIT_PUT,
                                  .reserve = event_bytes(0),
                                  .length = 4096};
}

/* Guards that a sign of life leaves ahead of payloads that wait for the link and may be long: the
 * peer excuses no silence before one has arrived. That sign is an ACK of what was consumed before.
 */
static void test_sign_of_life_first(void)
{
    for (int again = 0; again < 2; again++) {
        struct bench *b = unbound_bench(false);
        const struct submit_record put = long_put();
        const struct wire_ack *ack;
        uint64_t staged;

        if (again)
            bench_bind(b, 5);
        poke_config(b->engine)->packed_max = 64;
        bench_remote(b);
        bench_ack(b);
        b->position = peek_peer(b->engine, PEER).posted;
        staged = peek_peer(b->engine, PEER).staged;
        engine_peer_down(b->engine, PEER);
        bench_submit(b, &put);
        b->fabric.runs = b->fabric.payloads = 0;
        CU_ASSERT_EQUAL_FATAL(bench_link(b), 0);
        bench_steps(b, 4);
        CU_ASSERT_FATAL(b->fabric.payloads > 0);
        CU_ASSERT_EQUAL(b->fabric.runs_first, 1);
        ack = peek_record(b->engine, PEER, staged);
        CU_ASSERT_EQUAL(ack->head.kind, WIRE_ACK);
        CU_ASSERT_EQUAL(ack->consumed, peek_peer(b->engine, PEER).consumed);
        CU_ASSERT_FALSE(b->broken);
        bench_free(b);
    }
}

/* Guards that a peer's ring may be smaller than ours, as long as our longest record fits into it,
 * and that its staging memory comes back when the link ends. */
static void test_smaller_rings(void)
{
    static const struct {
        uint32_t ring_bytes, packed_max;
        int status;
    } rows[] = {
        {4096, 256, 0},        {4096, 257, -EMSGSIZE}, {8192, 2304, 0},  {8192, 2305, -EMSGSIZE},
        {2048, 16, -EMSGSIZE}, {6144, 16, -EMSGSIZE},  {65536, 4096, 0}, {131072, 16, -EMSGSIZE},
    };
    enum { LINKS = 100 }; /* more than there is memory for */

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct bench *b = bench_new(
            &(struct bench_shape){.ring_bytes = RING, .region_bytes = 4096, .with_self = false});

        CU_ASSERT_PTR_NOT_NULL_FATAL(b);
        poke_config(b->engine)->packed_max = rows[i].packed_max;
        b->config.ledger_start = rows[i].ring_bytes; /* the test's side */
        CU_ASSERT_EQUAL(bench_link(b), rows[i].status);
        for (int link = 0; link < LINKS && rows[i].status == 0; link++) {
            engine_peer_down(b->engine, PEER);
            CU_ASSERT_EQUAL_FATAL(bench_link(b), 0);
        }
        bench_free(b);
    }
}

/* Guards that records go round a ring that is smaller than ours. */
static void test_round_a_small_ring(void)
{
    struct bench *b = bench_new(&(struct bench_shape){.ring_bytes = RING, .region_bytes = 4096});
    const struct submit_record put = {.size = sizeof(struct submit_record),
                                      .kind = SUBMIT_PUT,
                                      .reserve = event_bytes(0),
                                      .length = 4096};
    struct event_record event;

    CU_ASSERT_PTR_NOT_NULL_FATAL(b);
    poke_config(b->engine)->packed_max = 256;
    b->config.ledger_start = 4096;
    CU_ASSERT_EQUAL_FATAL(bench_link(b), 0);
    bench_remote(b);
    for (int i = 0; i < 300; i++) {
        bench_submit(b, &put);
        bench_ack(b);
        CU_ASSERT_TRUE_FATAL(bench_local_event(b, &event));
        CU_ASSERT_EQUAL(event.status, 0);
    }
    CU_ASSERT(peek_peer(b->engine, PEER).posted > 4096);
    CU_ASSERT_FALSE(b->broken);
    bench_free(b);
}

static struct counters_peer counters_of(const struct bench *b)
{
    struct counters_peer row;
    uint32_t from = PEER;

    CU_ASSERT_EQUAL_FATAL(engine_view_peers(b->engine, &from, &row, 1), 1);
    return row;
}

/* Shakes hands as a daemon that has lost its state. */
static void link_stranger(struct bench *b)
{
    struct engine_offer theirs = {
        .peer = PEER, .state_id = 0xbad, .ring_bytes = b->config.ledger_start};

    for (int i = 0; i < 8 && engine_offer(b->engine, PEER, &b->offer) == -EAGAIN; i++)
        bench_steps(b, 1);
    CU_ASSERT_EQUAL_FATAL(engine_peer_up(b->engine, PEER, &theirs), 0);
}

/* Guards that the bytes through the ledgers only grow: where a link breaks before its records are
 * consumed, and where the peer has lost its state. The positions go back in both cases. */
static void test_bytes_only_grow(void)
{
    for (int stranger = 0; stranger < 2; stranger++) {
        struct bench *b = linked_bench();
        const struct submit_record put = {.size = sizeof(struct submit_record),
                                          .kind = SUBMIT_PUT,
                                          .reserve = event_bytes(0),
                                          .length = 64};
        struct counters_peer before, after;

        bench_remote(b);
        bench_ack(b);
        b->position = peek_peer(b->engine, PEER).posted;
        bench_submit(b, &put);
        before = counters_of(b);
        CU_ASSERT(before.bytes_out >= before.tx_sent && before.tx_sent > b->position);
        CU_ASSERT(before.bytes_in >= before.rx_consumed && before.rx_consumed > 0);
        engine_peer_down(b->engine, PEER);
        if (stranger)
            link_stranger(b);
        else
            CU_ASSERT_EQUAL_FATAL(bench_link(b), 0);
        after = counters_of(b);
        CU_ASSERT(after.tx_sent < before.tx_sent);
        CU_ASSERT_EQUAL(after.rx_consumed, stranger ? 0 : before.rx_consumed);
        CU_ASSERT_EQUAL(after.bytes_out, before.bytes_out);
        CU_ASSERT_EQUAL(after.bytes_in, before.bytes_in);
        bench_steps(b, 4);
        after = counters_of(b);
        CU_ASSERT(after.bytes_out > before.bytes_out);
        bench_free(b);
    }
}

static void send_piece(struct bench *b, uint16_t nonce)
{
    still_push(&b->fabric,
               &(struct fabric_event){.kind = FABRIC_ARRIVED,
                                      .peer = PEER,
                                      .immediate = wire_immediate(WIRE_PAYLOAD, PEER, nonce)});
    bench_steps(b, 2);
}

/* The engine is asked for a sign of life, and an interval passes. */
static void pass(struct bench *b)
{
    uint64_t bytes = 0;

    (void)engine_beat(b->engine, PEER, &bytes);
    b->now += b->config.keepalive_ns;
    bench_steps(b, 2);
}

/* Guards a payload whose pieces arrive one in each interval, after the record that ends it: while
 * they arrive, the link stays up. When they stop before the last piece, the link breaks, although
 * the peer lives. */
static void test_pieces_in_time(void)
{
    enum { PIECES = 20, NONCE = 3 };
    const struct wire_void last = {
        .head = {.words = sizeof(last) / 8, .kind = WIRE_VOID, .flags = WIRE_NONCE},
        .nonce = NONCE,
        .pieces = PIECES};

    for (uint32_t pieces = PIECES / 2; pieces <= PIECES; pieces += PIECES / 2) {
        struct bench *b = unbound_bench(false);
        struct wire_ack ack = {.head = {.words = sizeof(ack) / 8, .kind = WIRE_ACK}};
        uint64_t consumed;

        CU_ASSERT_TRUE_FATAL(bench_send(b, &last, sizeof(last)));
        consumed = peek_peer(b->engine, PEER).consumed;
        for (uint32_t i = 0; i < pieces; i++) {
            pass(b);
            CU_ASSERT_FALSE(b->broken);
            send_piece(b, NONCE);
        }
        CU_ASSERT_EQUAL(peek_peer(b->engine, PEER).consumed,
                        pieces == PIECES ? consumed + sizeof(last) : consumed);
        ack.consumed = peek_peer(b->engine, PEER).posted;
        for (uint32_t i = 0; i < KEEPALIVE_SILENT; i++) {
            CU_ASSERT_FALSE(b->broken);
            bench_send(b, &ack, sizeof(ack));
            pass(b);
        }
        CU_ASSERT_EQUAL(b->broken, pieces < PIECES);
        bench_free(b);
    }
}

int main(void)
{
    CU_TestInfo tests[] = {{"smaller rings", test_smaller_rings},
                           {"round a small ring", test_round_a_small_ring},
                           {"the sign of life goes first", test_sign_of_life_first},
                           {"bytes only grow", test_bytes_only_grow},
                           {"pieces in time", test_pieces_in_time},
                           CU_TEST_INFO_NULL};

    return suite_run("begins", tests);
}
