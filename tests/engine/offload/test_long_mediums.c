/*
 * Mediums from a node whose packed-max is larger than that of the offload's node, in the simulated
 * world. A Medium that is longer than the target's packed-max runs no handler there: its origin
 * gets -EMSGSIZE, once, and the offload stays open. Sends of handlers have no local event; where
 * they are too long, the sender's daemon counts them as failed.
 *
 *     node 0: packed-max 4096                       node 1: packed-max 1024
 *     client 0: Mediums of 0 to 4096 bytes -------> offload: up to 1024 bytes each
 *     offload: Mediums, replies ------------------> offload; the requester
 *
 *     test_long_mediums                              the cases, and 100 random runs
 *     test_long_mediums --seeds N [--first S]        random runs alone
 *     test_long_mediums --seed S [--trace]           one random run again
 *
 * Thread: one.
 */
#include <CUnit/CUnit.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "tests/count.h"
#include "tests/engine/bench/peek.h"
#include "tests/engine/offload/assemble.h"
#include "tests/engine/offload/hand_written.h"
#include "tests/engine/offload/scene.h"
#include "tests/engine/offload/scene_seeds.h"

#define RUNS 100u

enum { ALL = 7, HEADER = 1, PAYLOAD = 2, MOST = 1024, MOST_THERE = 4096 };
enum { SUCCESS = HANDLER_SUCCESS, DATA = HANDLER_PROCESS_DATA };

static struct scene scene;

static struct world_options options_of(uint64_t seed, FILE *trace)
{
    return (struct world_options){
        .seed = seed,
        .nodes = 2,
        .submit_bytes = 65536,
        .reply_bytes = 65536,
        .limits = {.ledger_start = 32768, .packed_max = MOST, .chunks_max = 512},
        .first_packed_max = MOST_THERE,
        .trace = trace,
        .sim = {.ordered_write_max = UINT64_MAX}};
}

static struct offload offload(void)
{
    return peek_offload(scene.world->nodes[1].engine, (uint32_t)scene.offload);
}

static void conclude(const char *wrong)
{
    CU_ASSERT_PTR_NULL(wrong);
    if (wrong)
        printf("\n  %s\n", wrong);
}

/* ---- from a client --------------------------------------------------------------------------- */

/* Sends one Medium of this length between two that fit. */
static void check_length(uint32_t length, bool wants_reply, uint32_t flags, uint32_t handlers)
{
    const struct world_options options = options_of(1, NULL);
    uint64_t plan = scene_plan(DATA, SUCCESS, SUCCESS);
    const struct scene_message *m = scene.messages;
    bool fits = length <= MOST;

    CU_ASSERT_TRUE_FATAL(scene_open(&scene, &options, flags, handlers));
    scene_send(&scene, plan, false, MOST);
    scene_send(&scene, plan, wants_reply, length);
    scene_send(&scene, plan, true, 8);
    scene_finish(&scene);
    for (uint32_t i = 0; i < 3; i++) {
        bool runs = i != 1 || fits;

        CU_ASSERT_EQUAL(m[i].status, runs ? 0 : -EMSGSIZE);
        CU_ASSERT_EQUAL(m[i].ends, 1);
        for (uint32_t stage = 0; stage < HANDLER_STAGES; stage++)
            CU_ASSERT_EQUAL(scene_runs(&scene, i, stage), runs && handlers >> stage & 1);
        CU_ASSERT_EQUAL(m[i].replies, 0);
        CU_ASSERT_EQUAL(m[i].events[0], 0); /* the client did not get it either */
    }
    CU_ASSERT_EQUAL(offload().state, OFFLOAD_OPEN);
    CU_ASSERT_EQUAL(offload().faults, 0);
    CU_ASSERT_EQUAL(offload().failed, !fits);
    CU_ASSERT_EQUAL(offload().messages, 3);
    conclude(scene_close(&scene));
}

static void test_lengths(void)
{
    static const uint32_t lengths[] = {MOST, MOST + 1, MOST + 8, MOST_THERE};
    static const uint32_t handlers[] = {ALL, HEADER, PAYLOAD};

    for (size_t i = 0; i < COUNT(lengths); i++)
        for (size_t k = 0; k < 2 * COUNT(handlers); k++)
            for (uint32_t quiet = 0; quiet < 2; quiet++)
                check_length(lengths[i], k % 2, quiet * ENGINE_OFFLOAD_QUIET, handlers[k / 2]);
}

/* A message that is too long does not reach the client either, also where the header handler would
 * leave messages to the client. */
static void test_default_action(void)
{
    static const uint32_t returns[] = {HANDLER_PROCEED, HANDLER_DEFER};

    for (size_t i = 0; i < COUNT(returns); i++) {
        const struct world_options options = options_of(1, NULL);

        CU_ASSERT_TRUE_FATAL(scene_open(&scene, &options, 0, ALL));
        scene_send(&scene, scene_plan(returns[i], SUCCESS, SUCCESS), true, MOST + 1);
        scene_finish(&scene);
        CU_ASSERT_EQUAL(scene.messages[0].status, -EMSGSIZE);
        CU_ASSERT_EQUAL(scene_runs(&scene, 0, HANDLER_HEADER), 0);
        CU_ASSERT_EQUAL(scene.messages[0].events[0], 0);
        CU_ASSERT_EQUAL(scene.messages[0].events[OFFLOAD_FAILED], 1);
        conclude(scene_close(&scene));
    }
}

/* ---- from a handler -------------------------------------------------------------------------- */

enum { BY_MESSAGE, BY_REPLY };

/* Returns a header handler that makes one send. Argument 0 of its message says which: a message to
 * the first target, or a reply. Argument 1 is the length of the send. */
static struct hand_written sender(void)
{
    const struct handler_instruction code[] = {
        LOAD(7, 1, 32),
        LOAD(8, 7, 0),
        LOAD(9, 7, 8),
        op(CODE_JMP | CODE_JNE, 8, 0, 9, BY_MESSAGE),
        NUMBER(1, (uint64_t)SCENE_INDEX << 32),
        ALU_X(CODE_MOV, 2, 7),
        ALU(CODE_MOV, 3, 1),
        NUMBER(4, handler_address(HANDLER_HOST, 0)),
        ALU_X(CODE_MOV, 5, 9),
        HELPER(HELPER_MESSAGE),
        op(CODE_JMP, 0, 0, 6, 0),
        ALU_X(CODE_MOV, 1, 7),
        ALU(CODE_MOV, 2, 1),
        NUMBER(3, handler_address(HANDLER_HOST, 0)),
        ALU_X(CODE_MOV, 4, 9),
        HELPER(HELPER_REPLY),
        op(CODE_JMP | CODE_JEQ, 0, 0, 2, 0),
        ALU(CODE_MOV, 0, HANDLER_FAIL),
        EXIT,
        ALU(CODE_MOV, 0, HANDLER_DROP),
        EXIT,
    };
    struct hand_written h = {COUNT(code), .entry = {0, HANDLER_NONE, HANDLER_NONE}};

    memcpy(h.code, code, sizeof(code));
    return h;
}

/* Returns a header handler that counts its runs. */
static struct hand_written receiver(void)
{
    const struct handler_instruction code[] = {
        ALU(CODE_MOV, 1, 0),
        ALU(CODE_MOV, 2, 1),
        HELPER(HELPER_COUNTER_ADD),
        ALU(CODE_MOV, 0, HANDLER_DROP),
        EXIT,
    };
    struct hand_written h = {COUNT(code), .entry = {0, HANDLER_NONE, HANDLER_NONE}};

    memcpy(h.code, code, sizeof(code));
    return h;
}

/* Takes the events of a client, and counts its requests that ended well, and the replies. */
static void take(struct message_client *c, uint32_t *ended, uint32_t *replies)
{
    struct message_event event;

    while (message_probe(c, MESSAGE_LOCAL, &event) == 1)
        *ended += event.head.status == 0;
    while (message_probe(c, MESSAGE_REPLY, &event) == 1)
        ++*replies;
    while (message_probe(c, MESSAGE_REMOTE, &event) == 1)
        continue;
}

/* Lets client 1 ask for a send of each kind and length. */
static void ask(struct world *w, uint32_t remote, uint32_t *ended, uint32_t *replies)
{
    static const uint32_t lengths[] = {8, MOST, 2 * MOST, MOST_THERE};
    struct message_client client;

    message_client_open(&client, w, 1);
    for (uint32_t i = 0; i < 2 * COUNT(lengths); i++) {
        const struct message_send request = {.kind = SUBMIT_SHORT,
                                             .index = SCENE_INDEX,
                                             .remote = remote,
                                             .count = 2,
                                             .arguments = {i % 2, lengths[i / 2]}};

        CU_ASSERT_EQUAL(message_request(&client, &request), 0);
        for (uint32_t round = 0; round < 10000 && world_round(w); round++)
            take(&client, ended, replies);
    }
    take(&client, ended, replies);
    CU_ASSERT_TRUE(message_at_rest(&client));
}

/* A send that is too long for its target's node fails: the sender's daemon counts the failure, and
 * neither offload is disabled. A request whose reply is too long ends well, because its handler has
 * run. */
static void test_sends_of_handlers(void)
{
    const struct world_options options = options_of(1, NULL);
    const struct hand_written sends = sender(), counts = receiver();
    uint32_t ended = 0, replies = 0, from, to;
    struct offload o;
    struct world *w;

    CU_ASSERT_EQUAL_FATAL(world_open(&options, &w), 0);
    for (uint32_t i = 0; i < 2; i++)
        world_client_open(w, i, i, 1);
    world_settle(w, 10000);
    to = hand_written_offload(w, 1, &counts, OFFLOAD_MESSAGES, SCENE_INDEX, UINT32_MAX);
    from = hand_written_offload(w, 0, &sends, OFFLOAD_MESSAGES, SCENE_INDEX,
                                hand_written_bind(w, 0, 1, NULL));
    ask(w, hand_written_bind(w, 1, 0, NULL), &ended, &replies);
    CU_ASSERT_EQUAL(ended, 8);
    CU_ASSERT_EQUAL(replies, 2);
    o = peek_offload(w->nodes[0].engine, from);
    CU_ASSERT(o.state == OFFLOAD_OPEN && o.faults == 0 && o.failed == 0);
    CU_ASSERT(o.sends == 8 && o.sends_failed == 4);
    o = peek_offload(w->nodes[1].engine, to);
    CU_ASSERT(o.state == OFFLOAD_OPEN && o.faults == 0);
    CU_ASSERT(o.messages == 4 && o.failed == 2 && o.counters[0] == 2);
    world_leave(w);
    CU_ASSERT_FALSE(w->failed);
    if (w->failed)
        printf("\n  %s\n", w->failure);
    world_close(w);
}

/* ---- by seed --------------------------------------------------------------------------------- */

static uint32_t lengths[SCENE_MESSAGES];

static const char *check_message(uint32_t number)
{
    const struct scene_message *m = &scene.messages[number];
    bool fits = lengths[number] <= MOST;

    if (m->status != (fits ? 0 : -EMSGSIZE))
        return "a message has ended in another way";
    for (uint32_t stage = 0; stage < HANDLER_STAGES; stage++)
        if (scene_runs(&scene, number, stage) != fits)
            return "a handler has run on a message that is too long, or not once on another one";
    return m->events[0] == 0 ? NULL : "the client has got a message of its offload's";
}

/* Makes one random run, in which links break and daemons die between two steps: each Medium ends
 * once, with the status that follows from its length. */
static const char *run(uint64_t seed, FILE *trace)
{
    struct sim_random random = {.state = seed ^ UINT64_C(0x109e)};
    struct world_options options = options_of(seed, trace);
    const struct scene_troubles troubles = {.breaks = (uint32_t)sim_random_below(&random, 2) * 2,
                                            .deaths = (uint32_t)sim_random_below(&random, 2),
                                            .sleeps = (uint32_t)sim_random_below(&random, 3)};
    uint32_t count = 20 + (uint32_t)sim_random_below(&random, 100);

    options.sim.ordered_write_max = sim_random_below(&random, 2) * UINT64_MAX;
    if (!scene_open(&scene, &options, 0, ALL))
        return scene_close(&scene);
    for (uint32_t i = 0; i < 6000 && scene.count < count && !scene.world->failed; i++) {
        uint32_t length = (uint32_t)sim_random_below(&random, 2 * MOST);

        lengths[scene.count] = length;
        scene_send(&scene, scene_plan(DATA, SUCCESS, SUCCESS), sim_random_below(&random, 2),
                   length);
        scene_turn(&scene);
        scene_trouble(&scene, &troubles, &random);
    }
    return scene_conclude(&scene, check_message);
}

static const struct scene_seeds seeds = {"long_mediums", run};

static void test_random_runs(void)
{
    CU_ASSERT_EQUAL(scene_run_seeds(&seeds, 1, RUNS), 0);
}

int main(int argc, char **argv)
{
    CU_TestInfo tests[] = {
        {"lengths", test_lengths},
        {"not for the client either", test_default_action},
        {"sends of handlers", test_sends_of_handlers},
        {"by seed", test_random_runs},
        CU_TEST_INFO_NULL,
    };

    return scene_main(&seeds, tests, argc, argv);
}
