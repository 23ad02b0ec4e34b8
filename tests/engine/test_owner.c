/*
 * The engine submits operations of its own (ops/submit.h) for an owner that is no session: each
 * operation ends exactly once by the owner's row, whatever happens to the link, the peer or the
 * process. The rules that need no operation are here too: what is refused changes nothing. One
 * thread.
 */
#include <CUnit/Basic.h>
#include <CUnit/CUnit.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "daemon/engine/ops/flow.h"
#include "daemon/engine/ops/submit.h"
#include "daemon/engine/peer/bind.h"
#include "daemon/engine/watch/trace_ring.h"
#include "tests/engine/bench/peek.h"
#include "tests/engine/world/own.h"

#define ROUNDS_MAX 100000u
#define SOME       8u
#define MANY       1024u
#define ALL        ((1u << SOME) - 1)

static struct own own;
static struct world *world;

/* Opens two nodes with a client each, and a bind of the engine's own from node 0 to node 1. */
static void scene_open(uint64_t seed)
{
    const struct world_options options = {.seed = seed,
                                          .nodes = 2,
                                          .owner = &own_row,
                                          .owner_context = &own,
                                          .sim = {.ordered_write_max = UINT64_MAX}};

    CU_ASSERT_EQUAL_FATAL(world_open(&options, &world), 0);
    CU_ASSERT_EQUAL_FATAL(world_client_open(world, 0, 0, 1), 0);
    CU_ASSERT_EQUAL_FATAL(world_client_open(world, 1, 1, 1), 1);
    world_settle(world, ROUNDS_MAX);
    CU_ASSERT_EQUAL_FATAL(own_bind(&own, world, 1, 0), 0);
}

/* The owner frees its flows; checks that nothing is left over. */
static void scene_close(void)
{
    own_leave(&own);
    world_leave(world);
    CU_ASSERT_FALSE(world->failed);
    if (world->failed)
        printf("\n  %s\n", world->failure);
    world_close(world);
}

/* Submits puts and operations of no bytes, in turn. */
static void submit_some(uint32_t from, uint32_t to)
{
    for (uint32_t i = from; i < to; i++)
        CU_ASSERT_EQUAL(own_submit(&own, i, i % 2 == 0, i % 3 == 0 ? SUBMIT_UNORDERED : 0), 0);
}

static void rounds(uint32_t count)
{
    while (count-- > 0)
        world_round(world);
}

/* Waits for all operations; checks that all have ended well and have brought their events, and that
 * the puts stand in memory. */
static void expect_all(void)
{
    uint64_t word;

    own_finish(&own, ROUNDS_MAX);
    CU_ASSERT_EQUAL(own.ended, ALL);
    CU_ASSERT_EQUAL(own.arrived, ALL);
    for (uint32_t i = 0; i < SOME; i++) {
        CU_ASSERT_EQUAL(own.status[i], 0);
        memcpy(&word, world->clients[1].contexts[0].memory + 8 * i, 8);
        CU_ASSERT_EQUAL(word, i % 2 == 0 ? i + 1 : 0);
    }
}

static void nothing(uint32_t after)
{
}

static void link_breaks(uint32_t after)
{
    rounds(after);
    world_link_break(world, 0, 1);
}

static void origin_dies(uint32_t after)
{
    rounds(after);
    world_node_crash(world, 0);
    rounds(3);
    world_node_reopen(world, 0, false);
}

static void target_dies(uint32_t after)
{
    rounds(after);
    world_node_crash(world, 1);
    rounds(3);
    world_node_reopen(world, 1, false);
}

static void test_exactly_once(void)
{
    static void (*const happens[])(uint32_t after) = {nothing, link_breaks, origin_dies,
                                                      target_dies};

    for (size_t i = 0; i < sizeof happens / sizeof *happens; i++)
        for (uint32_t after = 0; after < 24; after++) {
            scene_open(1 + after);
            submit_some(0, SOME / 2);
            happens[i](after);
            submit_some(SOME / 2, SOME);
            expect_all();
            scene_close();
        }
}

/* Guards that with SUBMIT_NO_LCE successes are only counted, and errors reported. */
static void test_silent(void)
{
    scene_open(3);
    CU_ASSERT_EQUAL(own_submit(&own, 0, true, SUBMIT_NO_LCE), 0);
    CU_ASSERT_EQUAL(own_submit(&own, 1, false, SUBMIT_NO_LCE | SUBMIT_UNORDERED), 0);
    own_finish(&own, ROUNDS_MAX);
    CU_ASSERT_EQUAL(own.silent, 2);
    CU_ASSERT_EQUAL(own.ended, 0);
    CU_ASSERT_EQUAL(own.arrived, 3);
    scene_close();
}

/* Guards a peer that is given up: operations under way have an unknown outcome, later ones fail at
 * once, and so does a bind to a context that does not exist. */
static void test_peer_lost(void)
{
    for (uint32_t after = 0; after < 24; after++) {
        scene_open(1 + after);
        submit_some(0, SOME / 2);
        rounds(after);
        world_link_cut(world, 0, 1);
        world_link_lost(world, 0, 1);
        submit_some(SOME / 2, SOME);
        own_finish(&own, 1);
        CU_ASSERT_EQUAL(own.ended, ALL);
        for (uint32_t i = 0; i < SOME; i++) {
            bool dead = own.status[i] == -EHOSTDOWN;

            CU_ASSERT_TRUE(
                dead || (i < SOME / 2 && (own.status[i] == -ECONNABORTED || own.status[i] == 0)));
        }
        world_link_restore(world, 0, 1);
        own_leave(&own);
        rounds(2000);
        CU_ASSERT_EQUAL(own_bind(&own, world, 1, 0), 0);
        submit_some(0, SOME);
        expect_all();
        scene_close();
    }
}

/* Guards a flow whose target's client dies: the flow is dead, and everything in it has ended. */
static void test_target_gone(void)
{
    for (uint32_t after = 0; after < 24; after++) {
        scene_open(1 + after);
        submit_some(0, SOME / 2);
        rounds(after);
        world_client_close(world, 1);
        rounds(2000);
        submit_some(SOME / 2, SOME);
        own_finish(&own, 1);
        CU_ASSERT_EQUAL(own.ended, ALL);
        for (uint32_t i = 0; i < SOME; i++)
            CU_ASSERT_TRUE(own.status[i] == -EHOSTDOWN || (i < SOME / 2 && own.status[i] == 0));
        scene_close();
    }
}

/* Guards a target that takes no events: its ring and its spill are full, operations are refused and
 * come again, and each brings its event once, in order. */
static void test_target_silent(void)
{
    struct submit_record draft = {
        .size = sizeof(draft), .kind = SUBMIT_PUT, .flags = SUBMIT_NO_LCE};
    struct pwc_event event;
    struct engine *e;
    uint64_t arrived = 0;

    scene_open(9);
    e = world->nodes[0].engine;
    for (draft.rid = 0; draft.rid < MANY; draft.rid++)
        CU_ASSERT_EQUAL(op_submit(e, peek_flow_of(e, 0), &draft), 0);
    rounds(2000);
    CU_ASSERT(own.silent < MANY);
    CU_ASSERT(peek_flow(e, peek_flow_of(e, 0)).held);
    for (uint32_t i = 0; i < ROUNDS_MAX && (arrived < MANY || own.silent < MANY); i++) {
        while (channel_probe(&world->clients[1].contexts[0].channel, PWC_ANY, PWC_REMOTE, &event) ==
               1)
            CU_ASSERT_EQUAL(event.id, arrived++);
        world_round(world);
    }
    CU_ASSERT_EQUAL(arrived, MANY);
    CU_ASSERT_EQUAL(own.silent, MANY);
    scene_close();
}

/* Guards that a trace shows the engine's own operations, without a session. */
static void test_traced(void)
{
    size_t bytes = (trace_ring_bytes(MANY) + 63) / 64 * 64;
    struct trace_ring *ring = aligned_alloc(64, bytes);
    static struct trace_record records[MANY];
    uint64_t from = 0, lost = 0;
    uint32_t submitted = 0, ended = 0;
    int n;

    CU_ASSERT_PTR_NOT_NULL_FATAL(ring);
    memset(ring, 0, bytes);
    trace_ring_init(ring, MANY);
    scene_open(10);
    engine_trace(world->nodes[0].engine, ring);
    submit_some(0, SOME);
    expect_all();
    n = trace_ring_read(ring, &from, records, MANY, &lost);
    for (int i = 0; i < n; i++) {
        submitted += records[i].kind == TRACE_SUBMITTED && records[i].session == UINT32_MAX &&
                     records[i].client == UINT32_MAX && records[i].uid == 1000;
        ended += records[i].kind == TRACE_LOCAL && records[i].session == UINT32_MAX;
    }
    CU_ASSERT_EQUAL(submitted, SOME);
    CU_ASSERT_EQUAL(ended, SOME);
    engine_trace(world->nodes[0].engine, NULL);
    scene_close();
    free(ring);
}

static void test_bind_refused(void)
{
    scene_open(5);
    own_leave(&own);
    world->clients[1].contexts[0].key.secret[0] ^= 1;
    CU_ASSERT_EQUAL(own_bind(&own, world, 1, 0), -EKEYREJECTED);
    world_link_cut(world, 0, 1);
    CU_ASSERT(
        bind_begin(world->nodes[0].engine, OWN_OWNER, 1, world_peer_of(world, 1, 0), NULL, 0) >= 0);
    rounds(100);
    world_link_lost(world, 0, 1);
    CU_ASSERT_EQUAL(own.bound, -EHOSTDOWN);
    world_link_restore(world, 0, 1);
    scene_close();
}

/* Guards that an owner frees only its own flows, although all owners without a list of their own
 * share one list. */
static void test_two_owners(void)
{
    const uint64_t other = OWN_OWNER + 1;
    struct engine *e;
    int remote;

    scene_open(8);
    e = world->nodes[0].engine;
    remote = bind_begin(e, other, 1, world_peer_of(world, 1, 0), NULL, 0);
    CU_ASSERT_FATAL(remote > 0);
    rounds(2000);
    CU_ASSERT_NOT_EQUAL(peek_flow_of(e, (uint32_t)remote), peek_flow_of(e, 0));
    CU_ASSERT_EQUAL(peek_remote(e, (uint32_t)remote).state, REMOTE_READY);
    bind_forget_owner(e, other);
    flows_detach(e, other);
    rounds(2000);
    CU_ASSERT_EQUAL(peek_flow(e, peek_flow_of(e, 0)).state, FLOW_OPEN);
    CU_ASSERT_EQUAL(peek_remote(e, (uint32_t)remote).state, REMOTE_FREE);
    submit_some(0, SOME);
    expect_all();
    scene_close();
}

/* Guards that a refused draft changes nothing: the flow is as before, and the word that its owner
 * has stored in the same transaction gets its old value back. */
static void test_refused(void)
{
    static const struct {
        struct submit_record draft;
        int result;
    } rows[] = {
        {{.size = 64, .kind = 77}, -EINVAL},
        {{.size = 64, .kind = SUBMIT_WAKE}, -EINVAL},
        {{.size = 72, .kind = SUBMIT_PUT}, -EINVAL},
        {{.size = 64, .kind = SUBMIT_PUT, .remote = 5}, -EINVAL},
        {{.size = 64, .kind = SUBMIT_PUT, .remote = UINT32_MAX}, -EINVAL},
        {{.size = 64 + 4096, .kind = SUBMIT_PUT, .flags = SUBMIT_INLINE, .length = 4096}, -EINVAL},
        {{.size = 64 + 24, .kind = SUBMIT_SHORT, .rid_len = 24}, -EOPNOTSUPP},
    };
    uint32_t remote, free;
    struct submit_record foreign = {.size = 64, .kind = SUBMIT_PUT};
    struct engine *e;
    int request;

    scene_open(6);
    e = world->nodes[0].engine;
    remote = peek_remote_of(e, OWN_OWNER);
    CU_ASSERT_EQUAL_FATAL(remote, 0);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        poke_word(e, remote, UINT64_MAX);
        CU_ASSERT_EQUAL(op_submit(e, peek_flow_of(e, remote), &rows[i].draft), rows[i].result);
        CU_ASSERT_EQUAL(peek_word(e, remote), 0);
    }
    request = world_bind(world, 0, 0, 1, 0, &world->clients[1].contexts[0].key);
    CU_ASSERT_EQUAL(world_await(world, request), 0);
    foreign.remote = world->requests[request].handle;
    CU_ASSERT_EQUAL(op_submit(e, peek_flow_of(e, remote), &foreign), -EINVAL);
    free = poke_memory(e, 0);
    CU_ASSERT_EQUAL(own_submit(&own, 0, true, 0), -ENOBUFS);
    CU_ASSERT_EQUAL(peek_word(e, remote), 0);
    poke_memory(e, free);
    submit_some(0, SOME);
    expect_all();
    scene_close();
}

/* Guards that the engine's own operation cannot use memory of a client: a put from a segment ends
 * with an error, once. */
static void test_no_client(void)
{
    const struct submit_record draft = {
        .size = 64, .kind = SUBMIT_PUT, .length = 8, .segment = 0, .lid = 0};
    struct engine *e;

    scene_open(7);
    e = world->nodes[0].engine;
    poke_word(e, 0, UINT64_C(1) << 32);
    CU_ASSERT_EQUAL(op_submit(e, peek_flow_of(e, 0), &draft), 0);
    own_finish(&own, ROUNDS_MAX);
    CU_ASSERT_EQUAL(own.ended, 1);
    CU_ASSERT_EQUAL(own.status[0], -EFAULT);
    scene_close();
}

int main(void)
{
    CU_TestInfo tests[] = {{"each operation ends once", test_exactly_once},
                           {"silent ones are counted", test_silent},
                           {"a peer is lost for good", test_peer_lost},
                           {"the target goes", test_target_gone},
                           {"the target is silent", test_target_silent},
                           {"traces show them", test_traced},
                           {"a bind is refused", test_bind_refused},
                           {"two owners", test_two_owners},
                           {"what is refused changes nothing", test_refused},
                           {"no memory of clients", test_no_client},
                           CU_TEST_INFO_NULL};
    CU_SuiteInfo suites[] = {{"owner", NULL, NULL, NULL, NULL, tests}, CU_SUITE_INFO_NULL};
    unsigned failed;

    if (CU_initialize_registry() != CUE_SUCCESS)
        return 2;
    CU_basic_set_mode(CU_BRM_NORMAL);
    if (CU_register_suites(suites) != CUE_SUCCESS || CU_basic_run_tests() != CUE_SUCCESS)
        return 2;
    failed = CU_get_number_of_failures();
    CU_cleanup_registry();
    return failed > 0;
}
