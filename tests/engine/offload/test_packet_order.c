/*
 * Puts to an offload's region over a fabric that does not keep the order of writes: the runs of a
 * ledger overtake one another, and each run lands in pieces, but the ledger is consumed run by run.
 * So handlers get the packets of a put in order, with the right bytes: the header handler runs
 * first, the payload handler once on each packet, and the completion handler last.
 *
 *     origin:   run 1 | run 2 | run 3 |         each with packets
 *     wire:     run 3 lands, run 1 lands, ...
 *     handlers: packets of run 1, run 2, run 3
 *
 * The handlers record each time that they run, at the start of the region, before the put's bytes:
 *
 *     region    count, then for each time: stage, offset << 16 | length     at PLACE: the bytes
 *
 * Thread: one.
 */
#include <CUnit/CUnit.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "tests/count.h"
#include "tests/engine/bench/peek.h"
#include "tests/engine/offload/assemble.h"
#include "tests/engine/offload/hand_written.h"
#include "tests/engine/world/messages/message_client.h"
#include "tests/suite.h"

enum { PACKET = 256, PLACE = 32768, LENGTH_MAX = 20000, SEEDS = 30 };

struct order {
    uint64_t count;
    struct {
        uint64_t stage, part;
    } run[PLACE / 16 - 2];
};

/* Returns handlers that record each time that they run; the payload handler places its packet, too.
 */
static struct hand_written recorder(void)
{
    const struct handler_instruction code[] = {
        ALU(CODE_MOV, 8, HANDLER_HEADER),
        op(CODE_JMP, 0, 0, 3, 0),
        ALU(CODE_MOV, 8, HANDLER_PAYLOAD),
        op(CODE_JMP, 0, 0, 1, 0),
        ALU(CODE_MOV, 8, HANDLER_COMPLETION),
        ALU_X(CODE_MOV, 6, 1),
        NUMBER(1, handler_address(HANDLER_HOST, 0)),
        LOAD(2, 1, 0),
        ALU_X(CODE_MOV, 3, 2),
        ALU(CODE_ADD, 3, 1),
        STORE(1, 0, 3),
        ALU(CODE_LSH, 2, 4),
        ALU_X(CODE_ADD, 1, 2),
        STORE(1, 8, 8),
        LOAD(2, 6, 56),
        ALU(CODE_LSH, 2, 16),
        LOAD(3, 6, 48),
        ALU_X(CODE_OR, 2, 3),
        STORE(1, 16, 2),
        ALU(CODE_MOV, 0, HANDLER_PROCESS_DATA),
        op(CODE_JMP | CODE_JEQ, 8, 0, 8, HANDLER_HEADER),
        op(CODE_JMP | CODE_JEQ, 8, 0, 6, HANDLER_COMPLETION),
        NUMBER(1, handler_address(HANDLER_HOST, 0)),
        LOAD(2, 6, 72),
        ALU_X(CODE_ADD, 1, 2),
        LOAD(2, 6, 40),
        HELPER(HELPER_COPY),
        ALU(CODE_MOV, 0, HANDLER_SUCCESS),
        EXIT,
    };
    struct hand_written h = {COUNT(code), .entry = {0, 2, 4}};

    memcpy(h.code, code, sizeof(code));
    return h;
}

static bool put(struct message_client *c, uint32_t remote, uint32_t length)
{
    const struct world_client *from = &c->world->clients[c->client];
    const struct submit_record record = {.size = sizeof(record),
                                         .kind = SUBMIT_PUT,
                                         .remote = remote,
                                         .reserve = event_bytes(0),
                                         .offset = PLACE,
                                         .length = length,
                                         .segment = from->segments[WORLD_MAIN].handle,
                                         .local_offset = from->contexts[0].offset};

    if (message_raw(c, false, &record, sizeof(record)) < 0)
        return false;
    message_submitted(c);
    return true;
}

/* Takes events until nothing moves. Returns in how many rounds a run of the ledger had landed while
 * an earlier run had not; or UINT32_MAX if the put did not end just once, and well. */
static uint32_t finish(struct world *w, struct message_client *origin,
                       struct message_client *target)
{
    uint32_t ended = 0, overtaken = 0;
    struct message_event event;
    bool moves = true;

    for (uint32_t i = 0; i < 100000 && moves; i++) {
        moves = world_round(w);
        overtaken += peek_peer(w->nodes[1].engine, 0).overtaken;
        while (message_probe(origin, MESSAGE_LOCAL, &event) == 1)
            ended += event.head.status == 0 ? 1 : 2;
        while (message_probe(target, MESSAGE_REMOTE, &event) == 1)
            continue;
    }
    return ended == 1 ? overtaken : UINT32_MAX;
}

/* Whether the record has what handlers must do for one put, from entry *at on. Moves *at behind
 * that. */
static bool in_order(const struct order *order, uint64_t *at, uint32_t length)
{
    bool right = order->run[(*at)++].stage == HANDLER_HEADER;

    for (uint64_t offset = 0; offset < length; offset += PACKET, ++*at) {
        uint64_t size = length - offset < PACKET ? length - offset : PACKET;

        right &= order->run[*at].stage == HANDLER_PAYLOAD &&
                 order->run[*at].part == (offset << 16 | size);
    }
    return right && order->run[(*at)++].stage == HANDLER_COMPLETION;
}

static void check_put(struct world *w, struct message_client client[2], uint32_t remote,
                      uint32_t length, uint64_t *at, uint64_t *overtaken)
{
    const struct order *order = (const void *)w->clients[1].contexts[0].memory;
    uint32_t rounds, generation = world_link_of(w, 0, 1)->generation;

    CU_ASSERT_TRUE(put(&client[0], remote, length));
    rounds = finish(w, &client[0], &client[1]);
    CU_ASSERT_NOT_EQUAL(rounds, UINT32_MAX);
    *overtaken += rounds;
    CU_ASSERT_EQUAL(world_link_of(w, 0, 1)->generation, generation); /* nothing was sent again */
    CU_ASSERT_TRUE(in_order(order, at, length));
    CU_ASSERT_EQUAL(order->count, *at);
    CU_ASSERT_EQUAL(
        memcmp(w->clients[1].contexts[0].memory + PLACE, w->clients[0].contexts[0].memory, length),
        0);
    memset(w->clients[1].contexts[0].memory + PLACE, 0, length);
}

/* Checks some puts, one after the other, in a world with this seed. */
static void check_seed(uint64_t seed, uint64_t ordered, uint32_t rails, uint64_t *overtaken)
{
    static const uint32_t lengths[] = {LENGTH_MAX, PACKET + 1, LENGTH_MAX / 3};
    const struct world_options options = {
        .seed = seed,
        .nodes = 2,
        .limits = {.packed_max = PACKET, .ledger_start = 16384, .chunks_max = 256},
        .sim = {.ordered_write_max = ordered, .rails = rails, .delay_max_ns = 20000}};
    const struct hand_written program = recorder();
    struct message_client client[2];
    uint32_t remote;
    uint64_t at = 0;
    struct world *w;

    CU_ASSERT_EQUAL_FATAL(world_open(&options, &w), 0);
    for (uint32_t i = 0; i < 2; i++)
        world_client_open(w, i, i, 1);
    world_settle(w, 10000);
    hand_written_offload(w, 1, &program, OFFLOAD_PUTS, 0, UINT32_MAX);
    remote = hand_written_bind(w, 0, 1, &w->clients[1].contexts[0].key);
    for (uint32_t i = 0; i < 2; i++)
        message_client_open(&client[i], w, i);
    for (uint32_t i = 0; i < LENGTH_MAX; i++)
        w->clients[0].contexts[0].memory[i] = (uint8_t)(i * 7 + i / 256 + seed);
    for (size_t i = 0; i < COUNT(lengths); i++)
        check_put(w, client, remote, lengths[i], &at, overtaken);
    world_leave(w);
    CU_ASSERT_FALSE(w->failed);
    if (w->failed)
        printf("\n  seed %" PRIu64 ": %s\n", seed, w->failure);
    world_close(w);
}

/* Returns in how many rounds of all seeds a run had overtaken an earlier one. */
static uint64_t check_seeds(uint64_t ordered, uint32_t rails)
{
    uint64_t overtaken = 0;

    for (uint64_t seed = 1; seed <= SEEDS; seed++)
        check_seed(seed, ordered, rails, &overtaken);
    printf("(overtaken in %" PRIu64 " rounds) ", overtaken);
    return overtaken;
}

static void unordered(void)
{
    CU_ASSERT(check_seeds(0, 1) > SEEDS); /* else the test shows nothing */
}

static void some_rails(void)
{
    CU_ASSERT(check_seeds(UINT64_MAX, 4) > SEEDS);
}

static void ordered(void)
{
    CU_ASSERT_EQUAL(check_seeds(UINT64_MAX, 1), 0);
}

int main(void)
{
    CU_TestInfo tests[] = {
        {"writes overtake one another", unordered},
        {"several rails", some_rails},
        {"ordered writes", ordered},
        CU_TEST_INFO_NULL,
    };

    return suite_run("packet order", tests);
}
