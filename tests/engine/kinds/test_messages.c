/*
 * Active messages in the simulated world: every kind by every protocol, messages that must fail,
 * submissions that no honest library makes, and random runs in all directions, in which every
 * message must end.
 *
 *     test_messages                                the cases, and 300 random runs
 *     test_messages --seeds N [--first S]          random runs alone
 *     test_messages --seed S [--trace]             one of them again
 *
 * Thread: one.
 */
#include <CUnit/CUnit.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "tests/count.h"
#include "tests/suite.h"
#include "tests/engine/world/messages/message_flood.h"
#include "tests/engine/world/messages/message_run.h"
#include "proto/wire_abi.h"

#define RUNS         300u
#define SEED_SECONDS 30u

static struct flood flood;
static struct world *world;

static bool open_world(const struct world_options *options, uint32_t clients)
{
    struct world_options o = *options;

    o.nodes = 2;
    if (o.segment_bytes == 0)
        o.segment_bytes = 4 * FLOOD_CLIENTS * FLOOD_SLOTS * 4096;
    CU_ASSERT_EQUAL_FATAL(world_open(&o, &world), 0);
    for (uint32_t i = 0; i < clients; i++)
        world_client_open(world, i % 2, i, 1);
    world_settle(world, 10000);
    flood_open(&flood, world, clients, o.seed);
    return !world->failed;
}

static void close_world(void)
{
    CU_ASSERT_FALSE(world->failed);
    if (world->failed)
        printf("\n  %s\n", world->failure);
    world_close(world);
}

/* Makes rounds until nothing moves; events stay where they are. */
static void settle(void)
{
    world_settle(world, 20000);
}

/* Takes the next event of a client's ring. Returns false if there is none. */
static bool event_of(uint32_t client, enum message_ring ring, struct message_event *out)
{
    return message_probe(&flood.client[client], ring, out) == 1;
}

static struct message_send short_to(uint32_t from, uint32_t to)
{
    return (struct message_send){
        .kind = SUBMIT_SHORT, .index = 3, .remote = flood.pairs[from][to].remote, .lid = 77};
}

/* ---- messages that arrive ------------------------------------------------------------------- */

static const struct way {
    uint64_t ordered_write_max;
    uint32_t protocol;
} ways[] = {{UINT64_MAX, ENGINE_PROTOCOL_ORDERED},    {4096, ENGINE_PROTOCOL_AUTO},
            {UINT64_MAX, ENGINE_PROTOCOL_REASSEMBLE}, {UINT64_MAX, ENGINE_PROTOCOL_CHAIN},
            {0, ENGINE_PROTOCOL_REASSEMBLE},          {0, ENGINE_PROTOCOL_CHAIN}};

/* Guards requests of each kind with each protocol, and replies of all kinds to them: the payload is
 * there when the event is seen. */
static void test_kinds_and_protocols(void)
{
    static const uint16_t flags[] = {0,
                                     SUBMIT_NO_REPLY,
                                     SUBMIT_ORDERED,
                                     SUBMIT_REASSEMBLE | SUBMIT_NO_LCE,
                                     SUBMIT_CHAIN,
                                     SUBMIT_CHAIN | SUBMIT_NO_REPLY | SUBMIT_LCE_SOURCE,
                                     SUBMIT_FENCE,
                                     SUBMIT_UNORDERED};
    static const uint32_t lengths[] = {0, 1, 300, 1024, 4000};

    for (size_t w = 0; w < COUNT(ways); w++)
        for (uint64_t seed = 0; seed < 3; seed++) {
            const struct world_options o = {.seed = seed,
                                            .protocol = ways[w].protocol,
                                            .sim = {.ordered_write_max = ways[w].ordered_write_max,
                                                    .refuse_per_mille = seed * 50}};

            open_world(&o, 3);
            for (size_t i = 0; i < COUNT(flags); i++)
                for (uint8_t kind = SUBMIT_SHORT; kind <= SUBMIT_LONG; kind++)
                    for (size_t n = 0; n < COUNT(lengths) && !world->failed; n++) {
                        if (kind == SUBMIT_MEDIUM && lengths[n] > 1024)
                            continue;
                        CU_ASSERT(flood_send(&flood, 0, 1 + (uint32_t)n % 2, kind, flags[i],
                                             kind == SUBMIT_SHORT ? 0 : lengths[n]) <
                                  FLOOD_MESSAGES);
                        if (n % 2)
                            flood_finish(&flood);
                    }
            flood_finish(&flood);
            CU_ASSERT_EQUAL(flood.failed, 0);
            close_world();
        }
}

/* Guards the words of a block that the daemons set themselves, and do not take from the sender. */
static void test_block_at_the_target(void)
{
    struct message_send s;
    struct message_event e;

    open_world(&(struct world_options){.seed = 1}, 2);
    s = short_to(0, 1);
    CU_ASSERT_EQUAL(message_request(&flood.client[0], &s), 0);
    settle();
    CU_ASSERT_TRUE_FATAL(event_of(1, MESSAGE_REMOTE, &e));
    CU_ASSERT_EQUAL(e.head.kind, EVENT_REQUEST);
    CU_ASSERT_EQUAL(e.message.slot, 0);
    CU_ASSERT_EQUAL(e.message.offset, 0);
    CU_ASSERT_NOT_EQUAL(e.message.token, WIRE_NONE);
    CU_ASSERT_TRUE(event_of(0, MESSAGE_LOCAL, &e));
    CU_ASSERT_EQUAL(e.head.id, 77);
    close_world();
}

/* ---- messages that fail, and give their event space back ------------------------------------ */

static void expect_end(uint32_t client, int status)
{
    struct message_event e;

    settle();
    CU_ASSERT_TRUE_FATAL(event_of(client, MESSAGE_LOCAL, &e));
    CU_ASSERT_EQUAL(e.head.status, status);
    if (e.head.status != status)
        printf("\n  status %d, not %d\n", e.head.status, status);
}

static void test_no_handler(void)
{
    struct message_send s;
    struct message_event e;

    open_world(&(struct world_options){.seed = 1}, 2);
    message_handlers(&flood.client[1], false);
    s = short_to(0, 1);
    message_request(&flood.client[0], &s);
    expect_end(0, -ENOSYS);
    CU_ASSERT_FALSE(event_of(1, MESSAGE_REMOTE, &e));
    CU_ASSERT_EQUAL(message_reply_held(&flood.client[0]), 0);

    message_handlers(&flood.client[1], true);
    message_handlers(&flood.client[0], false);
    message_request(&flood.client[0], &s);
    expect_end(0, 0);
    CU_ASSERT_TRUE_FATAL(event_of(1, MESSAGE_REMOTE, &e));
    s.token = e.message.token;
    CU_ASSERT_EQUAL(message_reply(&flood.client[1], &s), 0);
    expect_end(1, -ENOSYS);
    CU_ASSERT_FALSE(event_of(0, MESSAGE_REPLY, &e));
    CU_ASSERT_EQUAL(message_reply_held(&flood.client[0]), 0);
    close_world();
}

/* Guards that a ring takes records of up to a quarter of its size. */
static void test_too_long_for_the_ring(void)
{
    static const uint8_t payload[4096];
    struct message_send s;
    struct message_event e;

    open_world(&(struct world_options){.seed = 1,
                                       .submit_bytes = 32768,
                                       .answer_bytes = 32768,
                                       .reply_bytes = 32768,
                                       .limits = {.packed_max = 4096, .ledger_start = 16384}},
               2);
    s = short_to(0, 1);
    s.kind = SUBMIT_MEDIUM;
    s.payload = payload;
    s.length = 3000;
    CU_ASSERT_EQUAL(message_request(&flood.client[0], &s), 0);
    expect_end(0, -EMSGSIZE);
    s.length = 1900;
    CU_ASSERT_EQUAL(message_request(&flood.client[0], &s), 0);
    expect_end(0, 0);
    CU_ASSERT_TRUE_FATAL(event_of(1, MESSAGE_REMOTE, &e));
    s.token = e.message.token;
    s.length = 4096;
    CU_ASSERT_EQUAL(message_reply(&flood.client[1], &s), 0);
    expect_end(1, 0);
    CU_ASSERT_TRUE(event_of(0, MESSAGE_REPLY, &e));
    CU_ASSERT_TRUE(message_at_rest(&flood.client[0]));
    close_world();
}

/* Guards that a request that wants a reply is not delivered where the target has as many pairs as
 * it may, so that none is left for the replies. */
static void test_no_flow_for_replies(void)
{
    struct message_send s;
    struct message_event e;

    open_world(&(struct world_options){.seed = 1, .limits = {.flows_max = 2}}, 2);
    s = short_to(0, 1);
    message_request(&flood.client[0], &s);
    expect_end(0, -EDQUOT);
    CU_ASSERT_FALSE(event_of(1, MESSAGE_REMOTE, &e));
    CU_ASSERT_TRUE(message_at_rest(&flood.client[0]));
    s.flags = SUBMIT_NO_REPLY;
    message_request(&flood.client[0], &s);
    expect_end(0, 0);
    CU_ASSERT_TRUE(event_of(1, MESSAGE_REMOTE, &e));
    CU_ASSERT_EQUAL(e.message.token, WIRE_NONE);
    close_world();
}

/* Guards that the withdrawal of a region ends the Longs to it, requests and replies alike, and that
 * no event space is lost. */
static void test_withdrawal(void)
{
    for (uint64_t seed = 0; seed < 200; seed++) {
        struct message_event e;
        int request;

        open_world(&(struct world_options){.seed = seed, .protocol = (uint32_t)seed % 4}, 2);
        for (int i = 0; i < 4; i++)
            flood_send(&flood, 0, 1, SUBMIT_LONG, 0, i ? 3000 : 200);
        for (uint64_t i = 0; i < seed / 2; i++)
            flood_turn(&flood);
        for (uint32_t i = 0; i < flood.count; i++)
            flood.messages[i].shaken = true;
        request = world_withdraw(world, (uint32_t)seed % 2, 0);
        CU_ASSERT_EQUAL(world_await(world, request), 0);
        for (int i = 0; i < 200; i++) {
            flood_turn(&flood);
            for (uint32_t k = 0; k < flood.count; k++)
                flood.messages[k].shaken = true;
        }
        settle();
        while (event_of(1, MESSAGE_REMOTE, &e))
            CU_FAIL("a request is left over");
        flood_finish(&flood);
        close_world();
    }
}

/* Guards a Long reply to a region that has gone: its end says so, and the requester gets its event
 * space back. */
static void test_reply_fails_at_its_start(void)
{
    struct message_send s;
    struct message_event e;
    int request;

    open_world(&(struct world_options){.seed = 2}, 2);
    s = short_to(0, 1);
    message_request(&flood.client[0], &s);
    expect_end(0, 0);
    CU_ASSERT_TRUE_FATAL(event_of(1, MESSAGE_REMOTE, &e));
    request = world_withdraw(world, 0, 0);
    CU_ASSERT_EQUAL(world_await(world, request), 0);
    CU_ASSERT_NOT_EQUAL(message_reply_held(&flood.client[0]), 0);
    s = (struct message_send){.kind = SUBMIT_LONG,
                              .remote = flood.pairs[1][0].remote,
                              .token = e.message.token,
                              .length = 2000,
                              .lid = 5};
    CU_ASSERT_EQUAL(message_reply(&flood.client[1], &s), 0);
    expect_end(1, -EKEYREJECTED);
    CU_ASSERT_FALSE(event_of(0, MESSAGE_REPLY, &e));
    CU_ASSERT_EQUAL(message_reply_held(&flood.client[0]), 0);
    close_world();
}

/* Guards a Long reply whose remote is freed while it waits: its payload still goes to the right
 * region, although another bind takes the remote's place at once. */
static void test_reply_over_an_unbound_remote(void)
{
    struct message_send s;
    struct message_event e;
    const uint8_t *landed;

    open_world(&(struct world_options){.seed = 3, .limits = {.remotes_max = 5}}, 2);
    memset(world->clients[1].contexts[0].memory, 0x5a, 3000);
    s = short_to(0, 1);
    message_request(&flood.client[0], &s);
    expect_end(0, 0);
    CU_ASSERT_TRUE_FATAL(event_of(1, MESSAGE_REMOTE, &e));
    s = (struct message_send){.kind = SUBMIT_LONG,
                              .flags = SUBMIT_CHAIN,
                              .remote = flood.pairs[1][0].remote,
                              .token = e.message.token,
                              .length = 3000,
                              .offset = 8192};
    world_link_cut(world, 0, 1);
    CU_ASSERT_EQUAL(message_reply(&flood.client[1], &s), 0);
    for (int i = 0; i < 50; i++)
        world_round(world);
    CU_ASSERT_EQUAL(world_unbind(world, 1, 0, flood.pairs[1][0].remote), 0);
    for (int i = 0; i < 5; i++)
        world_bind(world, 1, 0, 1, 0, &world->clients[1].contexts[0].key);
    world_link_restore(world, 0, 1);
    expect_end(1, 0);
    CU_ASSERT_TRUE(event_of(0, MESSAGE_REPLY, &e));
    landed = world->clients[0].contexts[0].memory + 8192;
    for (int i = 0; i < 3000; i++)
        if (landed[i] != 0x5a) {
            CU_FAIL("the payload went somewhere else");
            break;
        }
    close_world();
}

/* Guards that a reply to a requester that has gone ends with an error, and without quarantine. */
static void test_reply_to_nobody(void)
{
    struct message_send s;
    struct message_event e;
    uint32_t tokens[2];

    open_world(&(struct world_options){.seed = 4}, 2);
    s = short_to(0, 1);
    for (int i = 0; i < 2; i++) {
        message_request(&flood.client[0], &s);
        settle();
        CU_ASSERT_TRUE_FATAL(event_of(1, MESSAGE_REMOTE, &e));
        tokens[i] = e.message.token;
    }
    flood_dies(&flood, 0);
    settle();
    for (int i = 0; i < 2; i++) {
        s.token = tokens[i];
        CU_ASSERT_EQUAL(message_reply(&flood.client[1], &s), 0);
        expect_end(1, -EHOSTDOWN);
    }
    CU_ASSERT_FALSE(world->clients[1].quarantined);
    CU_ASSERT_TRUE(message_at_rest(&flood.client[1]));
    close_world();
}

/* Guards that a requester has all its event space back when the replier has gone. */
static void test_nobody_replies(void)
{
    struct message_send s;

    open_world(&(struct world_options){.seed = 5}, 2);
    s = short_to(0, 1);
    for (int i = 0; i < 3; i++)
        message_request(&flood.client[0], &s);
    for (int i = 0; i < 3; i++)
        expect_end(0, 0);
    CU_ASSERT_NOT_EQUAL(message_reply_held(&flood.client[0]), 0);
    flood_dies(&flood, 1);
    settle();
    CU_ASSERT_EQUAL(message_reply_held(&flood.client[0]), 0);
    message_request(&flood.client[0], &s);
    expect_end(0, -EHOSTDOWN);
    CU_ASSERT_TRUE(message_at_rest(&flood.client[0]));
    close_world();
}

/* ---- submissions of a dishonest library ----------------------------------------------------- */

static void expect_quarantine(uint32_t client, const char *reason)
{
    const struct world_client *c = &world->clients[client];

    for (int i = 0; i < 200; i++)
        world_round(world);
    CU_ASSERT_TRUE(c->quarantined);
    if (!c->quarantined || !strstr(c->reason, reason))
        printf("\n  quarantine: %s, not %s\n", c->quarantined ? c->reason : "none", reason);
    CU_ASSERT_TRUE(c->quarantined && strstr(c->reason, reason) != NULL);
}

/* Guards the checks of a submission: in each row, a field of the record or of its block has a
 * senseless value. */
static void test_wrong_submissions(void)
{
    enum { BLOCK = sizeof(struct submit_record) };
    static const struct {
        uint8_t kind;
        uint32_t offset, bytes;
        uint64_t value;
        const char *reason;
    } rows[] = {
        {SUBMIT_SHORT, BLOCK + 0, 2, 256, "makes no sense"},
        {SUBMIT_SHORT, BLOCK + 0, 2, 65535, "makes no sense"},
        {SUBMIT_SHORT, BLOCK + 2, 1, SUBMIT_MEDIUM, "makes no sense"},
        {SUBMIT_SHORT, BLOCK + 2, 1, 0, "makes no sense"},
        {SUBMIT_SHORT, BLOCK + 2, 1, 255, "makes no sense"},
        {SUBMIT_SHORT, BLOCK + 3, 1, 1, "makes no sense"},
        {SUBMIT_SHORT, BLOCK + 3, 1, 17, "makes no sense"},
        {SUBMIT_SHORT, BLOCK + 3, 1, 255, "makes no sense"},
        {SUBMIT_SHORT, BLOCK + 24, 4, 1, "makes no sense"},
        {SUBMIT_SHORT, BLOCK + 24, 4, UINT32_MAX, "makes no sense"},
        {SUBMIT_MEDIUM, BLOCK + 24, 4, 9, "makes no sense"},
        {SUBMIT_MEDIUM, BLOCK + 24, 4, 1025, "makes no sense"},
        {SUBMIT_MEDIUM, BLOCK + 24, 4, UINT32_MAX, "makes no sense"},
        {SUBMIT_LONG, BLOCK + 24, 4, 8, "makes no sense"},
        {SUBMIT_SHORT, 24, 8, 1, "makes no sense"},            /* length */
        {SUBMIT_MEDIUM, 24, 8, 8, "makes no sense"},           /* length */
        {SUBMIT_SHORT, 40, 8, 1, "makes no sense"},            /* rid */
        {SUBMIT_SHORT, 6, 2, SUBMIT_NO_RCE, "makes no sense"}, /* flags */
        {SUBMIT_SHORT, 6, 2, 1 << 8, "out of range"},          /* flags */
        {SUBMIT_SHORT, 6, 2, SUBMIT_INLINE, "out of range"},   /* flags */
        {SUBMIT_SHORT, 50, 2, 0, "out of range"},              /* rid_len */
        {SUBMIT_SHORT, 50, 2, 24, "out of range"},             /* rid_len */
        {SUBMIT_SHORT, 50, 2, 65528, "out of range"},          /* rid_len */
        {SUBMIT_SHORT, 8, 4, 9, "remote handle"},              /* remote */
        {SUBMIT_SHORT, 8, 4, UINT32_MAX, "remote handle"},     /* remote */
        {SUBMIT_SHORT, 12, 4, 40, "local events"},             /* reserve */
        {SUBMIT_LONG, 52, 4, 99, "outside"},                   /* segment */
        {SUBMIT_LONG, 56, 8, UINT64_MAX, "outside"},           /* local offset */
        {7, 0, 0, 0, "out of range"},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        _Alignas(8) uint8_t record[512] = {0};
        struct message_send s;
        uint32_t size;

        open_world(&(struct world_options){.seed = i}, 2);
        world->clients[0].hostile = true;
        s = short_to(0, 1);
        s.kind = rows[i].kind;
        s.payload = "eight by";
        s.length = rows[i].kind == SUBMIT_SHORT ? 0 : 8;
        size = message_build(&flood.client[0], &s, false, record);
        memcpy(record + rows[i].offset, &rows[i].value, rows[i].bytes);
        CU_ASSERT_EQUAL(message_raw(&flood.client[0], false, record, size), 0);
        expect_quarantine(0, rows[i].reason);
        if (!world->clients[0].quarantined)
            printf("  row %zu\n", i);
        close_world();
    }
}

enum wrong_answer {
    ANSWER_UNASKED,
    ANSWER_TWICE,
    ANSWER_FOREIGN,
    ANSWER_WILD,
    ANSWER_NO_MESSAGE,
    ANSWER_NOT_OWED,
    ANSWER_ELSEWHERE,
    ANSWERS
};

static void test_wrong_answers(void)
{
    for (int wrong = 0; wrong < ANSWERS; wrong++) {
        _Alignas(8) uint8_t record[512] = {0};
        struct message_client *c;
        struct message_send s;
        struct message_event e;
        uint32_t size;

        open_world(&(struct world_options){.seed = 9}, 4);
        c = &flood.client[1];
        world->clients[1].hostile = true;
        s = short_to(0, wrong == ANSWER_FOREIGN ? 3 : 1); /* clients 1 and 3: the same daemon */
        if (wrong == ANSWER_NOT_OWED)
            s.flags = SUBMIT_NO_REPLY;
        if (wrong != ANSWER_UNASKED) {
            message_request(&flood.client[0], &s);
            settle();
            CU_ASSERT_TRUE_FATAL(event_of(wrong == ANSWER_FOREIGN ? 3 : 1, MESSAGE_REMOTE, &e));
            s.token = e.message.token;
        }
        if (wrong == ANSWER_NOT_OWED)
            s.token = 0;
        if (wrong == ANSWER_WILD)
            s.token = UINT64_C(1) << 32 | s.token;
        if (wrong == ANSWER_TWICE)
            message_reply(c, &s);
        if (wrong == ANSWER_ELSEWHERE) {
            s.kind = SUBMIT_LONG;
            s.remote = flood.pairs[1][2].remote;
        }
        size = message_build(c, &s, true, record);
        if (wrong == ANSWER_NO_MESSAGE)
            record[4] = SUBMIT_PUT;
        CU_ASSERT_EQUAL(message_raw(c, true, record, size), 0);
        expect_quarantine(1, wrong == ANSWER_ELSEWHERE    ? "remote handle"
                             : wrong == ANSWER_NO_MESSAGE ? "out of range"
                                                          : "not owed");
        CU_ASSERT_FALSE(world->clients[0].quarantined);
        close_world();
    }
}

/* Guards the bound of replies: the library stops at its limit, and a client that goes on is
 * quarantined, and hurts no other. */
static void test_reply_space(void)
{
    _Alignas(8) uint8_t record[512] = {0};
    struct message_send s;
    uint32_t size, taken = 0;

    open_world(&(struct world_options){.seed = 1}, 2);
    s = short_to(0, 1);
    flood.silent = 2;
    while (message_request(&flood.client[0], &s) == 0 && taken < 100)
        taken++;
    CU_ASSERT(taken >= 4 && taken < 8);
    settle();
    CU_ASSERT_FALSE(world->clients[0].quarantined);
    s.flags = SUBMIT_NO_REPLY; /* these requests need no space for replies */
    CU_ASSERT_EQUAL(message_request(&flood.client[0], &s), 0);
    settle();
    world->clients[0].hostile = true;
    s.flags = 0;
    size = message_build(&flood.client[0], &s, false, record);
    for (int i = 0; i < 3; i++)
        message_raw(&flood.client[0], false, record, size);
    expect_quarantine(0, "more replies");
    CU_ASSERT_FALSE(world->clients[1].quarantined);
    close_world();
}

/* Guards that a reply gets through where the requests of both clients are held and neither client
 * has a free operation: a reply waits for no held flow, and takes no free operation. */
static void test_replies_pass_held_requests(void)
{
    static const uint8_t payload[1000];
    struct message_send s;
    struct message_event e;

    open_world(&(struct world_options){.seed = 1, .limits = {.ops_max = 4, .spill_max = 2048}}, 2);
    s = short_to(0, 1);
    CU_ASSERT_EQUAL(message_request(&flood.client[0], &s), 0);
    expect_end(0, 0);
    CU_ASSERT_TRUE_FATAL(event_of(1, MESSAGE_REMOTE, &e));
    for (uint32_t from = 0; from < 2; from++) {
        struct message_send many = short_to(from, 1 - from);

        many.kind = SUBMIT_MEDIUM;
        many.flags = SUBMIT_NO_REPLY;
        many.payload = payload;
        many.length = sizeof payload;
        for (int i = 0; i < 100; i++) {
            message_request(&flood.client[from], &many);
            for (int k = 0; k < 20; k++)
                world_round(world);
        }
    }
    settle();
    CU_ASSERT(atomic_load(&flood.client[1].shared->ended) + 4 <= flood.client[1].submitted);
    s.token = e.message.token;
    CU_ASSERT_EQUAL(message_reply(&flood.client[1], &s), 0);
    settle();
    CU_ASSERT_TRUE(event_of(0, MESSAGE_REPLY, &e));
    close_world();
}

/* Guards that a daemon which is about to sleep looks at the reply_submit ring too. */
static void test_an_answer_keeps_awake(void)
{
    struct message_send s;
    struct message_event e;

    open_world(&(struct world_options){.seed = 1}, 2);
    s = short_to(0, 1);
    message_request(&flood.client[0], &s);
    expect_end(0, 0);
    CU_ASSERT_TRUE_FATAL(event_of(1, MESSAGE_REMOTE, &e));
    CU_ASSERT_EQUAL(engine_arm(world->nodes[1].engine), 0);
    engine_disarm(world->nodes[1].engine);
    world->nodes[1].armed = false;
    s.token = e.message.token;
    CU_ASSERT_EQUAL(message_reply(&flood.client[1], &s), 0);
    CU_ASSERT_EQUAL(engine_arm(world->nodes[1].engine), -EAGAIN);
    settle();
    CU_ASSERT_TRUE(event_of(0, MESSAGE_REPLY, &e));
    close_world();
}

/* Guards that a client which gives back more space than its reply ring has is quarantined. */
static void test_reply_ring_meddled_with(void)
{
    struct message_send s;

    open_world(&(struct world_options){.seed = 1}, 2);
    s = short_to(0, 1);
    CU_ASSERT_EQUAL(message_request(&flood.client[0], &s), 0);
    settle();
    world->clients[0].hostile = true;
    atomic_store(&flood.client[0].shared->reply_event.head, 4096);
    CU_ASSERT_EQUAL(message_request(&flood.client[0], &s), 0);
    expect_quarantine(0, "head out of range");
    close_world();
}

/* ---- random runs ---------------------------------------------------------------------------- */

static uint64_t first_seed = 1, seeds = RUNS;

static uint64_t runs(uint64_t first, uint64_t count)
{
    struct message_counters c = {0};
    uint64_t failed = 0;
    char failure[400];

    for (uint64_t seed = first; seed < first + count && failed < 5; seed++) {
        const char *wrong;

        alarm(SEED_SECONDS);
        wrong = message_run(seed, NULL, &c, failure);
        if (!wrong)
            continue;
        failed++;
        printf("\n  seed %llu: %s\n  again: test_messages --seed %llu --trace\n",
               (unsigned long long)seed, wrong, (unsigned long long)seed);
    }
    alarm(0);
    printf("\n  %llu seeds: %llu messages, %llu events, %llu replies, %llu ends in error, %llu "
           "spilled, %llu starved, %llu overtaken, %llu breaks, %llu crashes, %llu losses, %llu "
           "deaths ",
           (unsigned long long)count, (unsigned long long)c.messages, (unsigned long long)c.events,
           (unsigned long long)c.replies, (unsigned long long)c.errors,
           (unsigned long long)c.spilled, (unsigned long long)c.starved,
           (unsigned long long)c.overtaken, (unsigned long long)c.breaks,
           (unsigned long long)c.crashes, (unsigned long long)c.losses,
           (unsigned long long)c.deaths);
    if (count >= RUNS && !(c.replies && c.errors && c.spilled && c.starved && c.overtaken &&
                           c.breaks && c.crashes && c.losses && c.deaths)) {
        printf("\n  something never came up: the test is blunt\n");
        failed++;
    }
    return failed;
}

static void test_random_runs(void)
{
    CU_ASSERT_EQUAL(runs(first_seed, seeds), 0);
}

static int run_cases(void)
{
    CU_TestInfo tests[] = {
        {"every kind by every protocol", test_kinds_and_protocols},
        {"a block at its target", test_block_at_the_target},
        {"no handler", test_no_handler},
        {"too long for the ring", test_too_long_for_the_ring},
        {"no flow for replies", test_no_flow_for_replies},
        {"a region is withdrawn", test_withdrawal},
        {"a reply fails at its start", test_reply_fails_at_its_start},
        {"a reply over a remote that was let go", test_reply_over_an_unbound_remote},
        {"a reply to nobody", test_reply_to_nobody},
        {"nobody replies", test_nobody_replies},
        {"wrong submissions", test_wrong_submissions},
        {"wrong answers", test_wrong_answers},
        {"reply event space", test_reply_space},
        {"replies pass held requests", test_replies_pass_held_requests},
        {"an answer keeps the daemon awake", test_an_answer_keeps_awake},
        {"a reply ring that was meddled with", test_reply_ring_meddled_with},
        {"random runs", test_random_runs},
        CU_TEST_INFO_NULL,
    };

    return suite_run("messages", tests);
}

int main(int argc, char **argv)
{
    struct message_counters counters = {0};
    bool many = false, one = false;
    FILE *trace = NULL;
    char failure[400];
    const char *wrong;

    for (int i = 1; i < argc; i++)
        if (i + 1 < argc && strcmp(argv[i], "--seeds") == 0) {
            seeds = strtoull(argv[++i], NULL, 0);
            many = true;
        } else if (i + 1 < argc && strcmp(argv[i], "--first") == 0) {
            first_seed = strtoull(argv[++i], NULL, 0);
        } else if (i + 1 < argc && strcmp(argv[i], "--seed") == 0) {
            first_seed = strtoull(argv[++i], NULL, 0);
            one = true;
        } else if (strcmp(argv[i], "--trace") == 0) {
            trace = stdout;
        } else {
            fprintf(stderr, "usage: %s [--seeds N [--first S] | --seed S [--trace]]\n", argv[0]);
            return 2;
        }
    if (many)
        return runs(first_seed, seeds) > 0;
    if (!one)
        return run_cases();
    wrong = message_run(first_seed, trace, &counters, failure);
    printf("seed %llu: %s\n", (unsigned long long)first_seed, wrong ? wrong : "passed");
    return wrong != NULL;
}
