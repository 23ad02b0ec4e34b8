/*
 * Direct operations whose target sleeps, without a target: the test holds both sides of the pair,
 * and the daemon's side of the session. Its word_apply_all gives up after as many elements as the
 * test says. One thread.
 */
#include <CUnit/CUnit.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "clientlib/attach/context.h"
#include "clientlib/binds/bound.h"
#include "clientlib/calls/atomic.h"
#include "clientlib/neighbours/direct.h"
#include "proto/word_abi.h"
#include "shm_ring/doorbell.h"
#include "tests/clientlib/session/fake_session.h"
#include "tests/suite.h"

enum { RING = 8192, WORDS = 4, HANDLE = 7 };

static const pwc_cid none; /* PWC_CID_NONE */

static struct {
    struct fake_session daemon;
    struct pwc_client client;
    struct pwc_ctx ctx;
    struct pwc_remote remote;
    struct direct_pair *pair;
    uint64_t words[WORDS];
    uint32_t until_busy; /* elements that are changed before an atomic gives up */
} world;

uint32_t __wrap_word_apply_all(void *at, uint8_t code, uint32_t count, const void *operands,
                               void *fetched);
uint32_t __wrap_word_apply_all(void *at, uint8_t code, uint32_t count, const void *operands,
                               void *fetched)
{
    (void)at;
    (void)code;
    (void)operands;
    (void)fetched;
    return count < world.until_busy ? count : world.until_busy;
}

static void world_open(void)
{
    static const struct session_sizes rings = {RING, RING, RING, RING, RING};
    struct pwc_ctx *ctx = &world.ctx;
    struct direct_pair *pair = calloc(1, sizeof(*pair));

    memset(&world, 0, sizeof(world));
    CU_ASSERT_EQUAL_FATAL(fake_session_open(&world.daemon, &rings), 0);
    ctx->client = &world.client;
    ctx->wake_fd = ctx->doorbell_fd = ctx->descriptor = -1;
    CU_ASSERT_EQUAL_FATAL(
        channel_init(&ctx->channel, world.daemon.mapping.base, world.daemon.mapping.size), 0);
    CU_ASSERT_EQUAL_FATAL(channel_own_prepare(&ctx->channel), 0);
    pair->peer = 1;
    pair->board.fd = -1;
    CU_ASSERT_EQUAL_FATAL(mapping_create(&pair->ring, "test-pair", PAIR_BYTES), 0);
    pair_format(pair->ring.base);
    CU_ASSERT_EQUAL(pair_writer_init(&pair->writer, pair->ring.base, PAIR_BYTES, PAIR_REQUESTS), 0);
    CU_ASSERT_EQUAL(pair_reader_init(&pair->answers, pair->ring.base, PAIR_BYTES, PAIR_ANSWERS), 0);
    neighbours_add_ours(&ctx->channel.neighbours, pair);
    world.pair = pair;
    world.remote = (struct pwc_remote){.ctx = ctx,
                                       .peer = 1,
                                       .length = sizeof(world.words),
                                       .handle = HANDLE,
                                       .rights = PWC_REMOTE_RW,
                                       .way = true,
                                       .pair = pair,
                                       .memory = (uint8_t *)world.words};
    bound_add(&ctx->bound, &world.remote);
}

static void world_close(void)
{
    bound_forget(&world.ctx.bound, &world.remote);
    bound_destroy(&world.ctx.bound);
    channel_destroy(&world.ctx.channel);
    fake_session_close(&world.daemon);
}

/* Adds to some words, while the target sleeps. Returns whether the daemon was asked to wake it. */
static bool atomic_wakes(uint32_t until_busy)
{
    static const uint64_t operands[WORDS];
    const struct atomic_call call = {.dst = &world.remote,
                                     .code = word_code(WORD_ADD, WORD_U64),
                                     .count = WORDS,
                                     .operands = operands,
                                     .lid = &none,
                                     .rid = &none,
                                     .flags = PWC_NO_LCE | PWC_NO_RCE};
    const struct submit_record *record;
    struct pwc_event event;

    world.until_busy = until_busy;
    atomic_store(&world.pair->writer.ring->bell.armed, DOORBELL_FUTEX);
    CU_ASSERT_EQUAL(direct_atomic(&world.ctx, &call), 0);
    CU_ASSERT_EQUAL(channel_probe(&world.ctx.channel, PWC_ANY, PWC_LOCAL, &event),
                    until_busy < WORDS);
    if (until_busy < WORDS) {
        CU_ASSERT_EQUAL(event.status, -EBUSY);
        CU_ASSERT_EQUAL(event.length, until_busy);
    }
    record = fake_session_read(&world.daemon);
    if (!record)
        return false;
    CU_ASSERT_EQUAL(record->kind, SUBMIT_WAKE);
    CU_ASSERT_EQUAL(record->remote, HANDLE);
    return true;
}

/* Guards that an atomic which gives up wakes a target that may wait for a word it has changed, and
 * no other. */
static void test_busy_atomics_wake(void)
{
    world_open();
    CU_ASSERT_TRUE(atomic_wakes(WORDS));
    CU_ASSERT_TRUE(atomic_wakes(WORDS - 1));
    CU_ASSERT_TRUE(atomic_wakes(1));
    CU_ASSERT_FALSE(atomic_wakes(0));
    world_close();
}

int main(void)
{
    CU_TestInfo tests[] = {
        {"atomics that give up wake", test_busy_atomics_wake},
        CU_TEST_INFO_NULL,
    };

    return suite_run("direct", tests);
}
