/*
 * Tables for all pairs of large nodes: chains whose homes grow, entries that take no memory until
 * they are used, binds whose time does not grow with their number, and a restart with 65,536 pairs.
 * The test is the engine's control thread and its peer. One thread.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#include "tests/suite.h"
#include "daemon/engine/engine.h"
#include "daemon/engine/session/direct.h"
#include "daemon/engine/state/chain.h"
#include "tests/engine/bench/linked_bench.h"
#include "tests/engine/bench/peek.h"
#include "tests/engine/bench/still_fabric.h"
#include "proto/wire_abi.h"

#define PEER  1u /* node of the peer */
#define PAIRS 65536u

/* ---- chains ---------------------------------------------------------------------------------- */

#define MEMBERS 4096u

/* Counts the entries before this one in its home; UINT32_MAX: the entry is not in its home. */
static uint32_t depth(const struct chain *c, uint32_t key, uint32_t entry)
{
    uint32_t before = 0, i;

    for (i = chain_first(c, chain_home(c, key, 7)); i != UINT32_MAX && i != entry;
         i = chain_next(c, i))
        before++;
    return i == entry ? before : UINT32_MAX;
}

static void test_homes_grow(void)
{
    struct chain c = {.first = calloc(MEMBERS, sizeof(*c.first)),
                      .links = calloc(MEMBERS, sizeof(*c.links))};
    uint32_t deepest = 0;

    chain_keys_init(&c, MEMBERS);
    CU_ASSERT_EQUAL(c.homes, CHAIN_HOMES);
    for (uint32_t i = 0; i < MEMBERS; i++) {
        chain_add_key(&c, chain_hash(3 * i, 7), i);
        CU_ASSERT_EQUAL(c.homes, i < CHAIN_HOMES ? CHAIN_HOMES : i + 1);
        if (i % 61 == 0)
            for (uint32_t k = 0; k <= i; k++)
                CU_ASSERT_NOT_EQUAL(depth(&c, 3 * k, k), UINT32_MAX);
    }
    for (uint32_t i = 0; i < MEMBERS; i++)
        deepest = depth(&c, 3 * i, i) > deepest ? depth(&c, 3 * i, i) : deepest;
    CU_ASSERT(deepest < 16);
    /* Every second entry leaves; an entry that is added again moves to its new home. */
    for (uint32_t i = 0; i < MEMBERS; i += 2)
        chain_remove(&c, i);
    CU_ASSERT_EQUAL(c.members, MEMBERS / 2);
    chain_add_key(&c, chain_hash(5, 7), 1);
    CU_ASSERT_EQUAL(c.members, MEMBERS / 2);
    CU_ASSERT_NOT_EQUAL(depth(&c, 5, 1), UINT32_MAX);
    for (uint32_t i = 3; i < MEMBERS; i++)
        CU_ASSERT_EQUAL(depth(&c, 3 * i, i) != UINT32_MAX, i % 2 == 1);
    free(c.first);
    free(c.links);
}

/* ---- memory that is not used ----------------------------------------------------------------- */

static void host_wake(void *context, uint32_t session, uint32_t mode)
{
}

static void host_random(void *context, void *to, size_t size)
{
    memset(to, 7, size);
}

static void *pages(size_t size)
{
    void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                    -1, 0);

    CU_ASSERT_PTR_NOT_EQUAL_FATAL(at, MAP_FAILED);
    madvise(at, size, MADV_NOHUGEPAGE);
    return at;
}

static size_t resident(void *at, size_t size)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), count = (size + page - 1) / page, there = 0;
    unsigned char *map = malloc(count);

    CU_ASSERT_PTR_NOT_NULL_FATAL(map);
    CU_ASSERT_EQUAL(mincore(at, size, map), 0);
    for (size_t i = 0; i < count; i++)
        there += map[i] & 1;
    free(map);
    return there * page;
}

/* Gives the memory that an engine with `pairs` pairs touches at its start, and at a takeover. */
static void starts(uint32_t pairs, size_t touched[2])
{
    static const struct engine_host host = {.wake = host_wake, .random = host_random};
    struct engine_config config = {.peers = 2, .flows_max = pairs, .remotes_max = pairs};
    struct still_fabric fabric;
    struct engine *engine;
    void *arena, *memory;

    CU_ASSERT_EQUAL_FATAL(engine_config_check(&config), 0);
    arena = pages(engine_arena_bytes(&config));
    for (int i = 0; i < 2; i++) {
        memory = pages(engine_private_bytes(&config));
        still_open(&fabric);
        CU_ASSERT_EQUAL_FATAL(engine_open(&config, arena, memory, &fabric.base, &host, 1, &engine),
                              0);
        touched[i] = resident(arena, engine_arena_bytes(&config)) +
                     resident(memory, engine_private_bytes(&config));
        munmap(memory, engine_private_bytes(&config));
    }
    munmap(arena, engine_arena_bytes(&config));
}

static void test_unused_entries_take_nothing(void)
{
    size_t few[2], many[2];

    starts(64, few);
    starts(1u << 20, many);
    printf("\n\n  64 pairs: %zu KiB at the start, %zu at a takeover; 1,048,576 pairs: %zu, %zu\n",
           few[0] / 1024, few[1] / 1024, many[0] / 1024, many[1] / 1024);
    CU_ASSERT(many[0] <= few[0] + 65536);
    CU_ASSERT(many[1] <= few[1] + 65536);
}

/* Guards that a daemon whose tables have other sizes does not take the arena over, and reports why.
 */
static void test_other_sizes(void)
{
    static const struct engine_host host = {.wake = host_wake, .random = host_random};
    struct engine_config config = {.peers = 2, .flows_max = 64, .remotes_max = 100}, other;
    uint32_t pairs = 0, binds = 0;
    struct still_fabric fabric;
    struct engine *engine;
    void *arena, *memory;

    CU_ASSERT_EQUAL_FATAL(engine_config_check(&config), 0);
    arena = pages(engine_arena_bytes(&config));
    memory = pages(engine_private_bytes(&config));
    CU_ASSERT_EQUAL(engine_arena_sizes(arena, &pairs, &binds), -EUCLEAN);
    still_open(&fabric);
    CU_ASSERT_EQUAL_FATAL(engine_open(&config, arena, memory, &fabric.base, &host, 1, &engine), 0);
    CU_ASSERT_TRUE(engine_arena_fits(&config, arena));
    for (int i = 0; i < 2; i++) {
        other = config;
        (*(i == 0 ? &other.flows_max : &other.remotes_max))++;
        CU_ASSERT_FALSE(engine_arena_fits(&other, arena));
    }
    CU_ASSERT_EQUAL(engine_arena_sizes(arena, &pairs, &binds), 0);
    CU_ASSERT_EQUAL(pairs, 64);
    CU_ASSERT_EQUAL(binds, 100);
    munmap(memory, engine_private_bytes(&config));
    munmap(arena, engine_arena_bytes(&config));
}

static void test_bounds_of_sizes(void)
{
    static const struct {
        uint32_t pairs, binds;
        int status;
    } rows[] = {{0, 0, 0},
                {1u << 20, 1u << 20, 0},
                {(1u << 20) + 1, 0, -EINVAL},
                {0, (1u << 20) + 1, -EINVAL}};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct engine_config config = {.flows_max = rows[i].pairs, .remotes_max = rows[i].binds};

        CU_ASSERT_EQUAL(engine_config_check(&config), rows[i].status);
        if (rows[i].pairs == 0 && rows[i].status == 0) {
            CU_ASSERT_EQUAL(config.flows_max, 65536);
            CU_ASSERT_EQUAL(config.remotes_max, 65536);
            CU_ASSERT_EQUAL(config.pairs_user, 57344); /* seven eighths of them */
        }
    }
}

/* ---- many pairs ------------------------------------------------------------------------------ */

static uint64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static struct bench *bench_of(const struct bench_shape *shape)
{
    struct bench *b = bench_new(shape);
    struct engine_config *config;

    CU_ASSERT_PTR_NOT_NULL_FATAL(b);
    config = poke_config(b->engine);
    config->binds_client = config->binds_user = UINT32_MAX;
    config->pairs_client = config->pairs_user = UINT32_MAX;
    return b;
}

static struct bench *large_bench(void)
{
    const struct bench_shape shape = {.ring_bytes = 65536, .region_bytes = 4096, .entries = PAIRS};

    return bench_of(&shape);
}

/* Binds `n` remotes in blocks of 256. Returns the shortest time that a block took. */
static uint64_t bind_some(struct bench *b, uint32_t from, uint32_t n)
{
    uint64_t fastest = UINT64_MAX;

    for (uint32_t i = from; i < from + n; i += 256) {
        uint64_t began = now_ns();

        for (uint32_t k = i; k < i + 256; k++)
            CU_ASSERT_EQUAL(engine_bind(b->engine, 0, PEER, k, NULL, k), 0);
        began = now_ns() - began;
        fastest = began < fastest ? began : fastest;
    }
    return fastest / 256;
}

static void test_restart_with_many_pairs(void)
{
    struct bench *b = large_bench();
    uint64_t first, last, takeover, step;
    struct peek_census before, after;

    first = bind_some(b, 0, PAIRS / 16);
    (void)bind_some(b, PAIRS / 16, PAIRS / 16 * 14);
    last = bind_some(b, PAIRS / 16 * 15, PAIRS / 16);
    CU_ASSERT_EQUAL(engine_bind(b->engine, 0, PEER, PAIRS, NULL, 1), -ENOSPC);
    before = peek_census(b->engine);
    CU_ASSERT_EQUAL(before.flows, PAIRS);
    CU_ASSERT_EQUAL(before.remotes, PAIRS);
    CU_ASSERT_EQUAL(before.lost, 0);
    takeover = now_ns();
    CU_ASSERT_TRUE_FATAL(bench_reopen(b));
    takeover = now_ns() - takeover;
    step = now_ns();
    bench_steps(b, 1);
    step = now_ns() - step;
    after = peek_census(b->engine);
    CU_ASSERT_EQUAL(after.flows, PAIRS);
    CU_ASSERT_EQUAL(after.remotes, PAIRS);
    CU_ASSERT_EQUAL(after.lost, 0);
    CU_ASSERT_EQUAL(after.miscounted, 0);
    printf("\n\n  a bind among the first 4,096: %lu ns, among the last: %lu ns; takeover with %u "
           "pairs: %.1f ms, its first step %.1f ms\n",
           (unsigned long)first, (unsigned long)last, PAIRS, (double)takeover / 1e6,
           (double)step / 1e6);
    bench_free(b);
}

#define MANY  8192u
#define BLOCK 256u /* the fastest of blocks of this size counts */

/* Begins the link again where the ring has no room for this many bytes; the test has consumed all
 * that was sent to it. */
static void make_room(struct bench *b, uint64_t bytes)
{
    if (b->position + bytes <= b->offer.ring_bytes)
        return;
    b->position = peek_peer(b->engine, PEER).posted;
    CU_ASSERT_EQUAL_FATAL(bench_link(b), 0);
}

/* Sends this many records of `size` bytes, each of them set up by `change`. */
static void send_many(struct bench *b, const void *like, uint32_t size, uint32_t from, uint32_t n,
                      void (*change)(void *record, uint32_t number))
{
    static uint8_t records[65536];

    for (uint32_t at = 0, count; at < n; at += count) {
        for (count = 0; count < BLOCK && at + count < n; count++) {
            memcpy(records + count * size, like, size);
            change(records + count * size, from + at + count);
        }
        make_room(b, count * size);
        CU_ASSERT_TRUE_FATAL(bench_send(b, records, count * size));
        bench_steps(b, 30);
    }
    CU_ASSERT_FALSE_FATAL(b->broken);
}

static const struct wire_bind some_bind = {
    .head = {.words = sizeof(struct wire_bind) / 8, .kind = WIRE_BIND},
    .flow = WIRE_NONE,
    .origin = 1,
    .job = "j"};

static void name_remote(void *record, uint32_t number)
{
    ((struct wire_bound *)record)->remote = number;
}

static void name_origin_flow(void *record, uint32_t number)
{
    ((struct wire_bind *)record)->origin_flow = number;
}

static void name_origin(void *record, uint32_t number)
{
    struct wire_bind *bind = record;

    bind->origin_flow = number;
    bind->origin = number;
}

static void name_inflow(void *record, uint32_t number)
{
    ((struct wire_flow *)record)->flow = number;
}

/* Unbinds this many blocks of remotes. Returns the shortest time that a block took. */
static uint64_t unbind_some(struct bench *b, uint32_t from, uint32_t blocks)
{
    uint64_t fastest = UINT64_MAX;

    for (uint32_t i = from; i < from + blocks * BLOCK; i += BLOCK) {
        uint64_t began = now_ns();

        for (uint32_t k = i; k < i + BLOCK; k++)
            CU_ASSERT_EQUAL(engine_unbind(b->engine, 0, k), 0);
        began = now_ns() - began;
        fastest = began < fastest ? began : fastest;
        bench_steps(b, 10);
    }
    return fastest / BLOCK;
}

static uint64_t close_some(struct bench *b, uint32_t from, uint32_t blocks)
{
    const struct wire_flow close = {.head = {.words = sizeof(close) / 8, .kind = WIRE_CLOSE}};
    uint64_t fastest = UINT64_MAX;

    for (uint32_t i = from; i < from + blocks * BLOCK; i += BLOCK) {
        uint64_t began;

        make_room(b, BLOCK * sizeof(close));
        began = now_ns();
        send_many(b, &close, sizeof(close), i, BLOCK, name_inflow);
        began = now_ns() - began;
        fastest = began < fastest ? began : fastest;
    }
    return fastest / BLOCK;
}

/* Guards that the first bind of a context, or to it, which stands at the end of its list, leaves as
 * quickly as the last one. */
static void test_the_oldest_leave(void)
{
    const struct wire_bound bound = {.head = {.words = sizeof(bound) / 8, .kind = WIRE_BOUND},
                                     .flow = 3};
    struct bench *b = large_bench();
    uint64_t oldest[2], newest[2];
    struct peek_census census;

    CU_ASSERT_EQUAL_FATAL(bench_link(b), 0);
    (void)bind_some(b, 0, MANY);
    send_many(b, &bound, sizeof(bound), 0, MANY, name_remote);
    send_many(b, &some_bind, sizeof(some_bind), 0, MANY, name_origin_flow);
    census = peek_census(b->engine);
    CU_ASSERT_EQUAL_FATAL(census.flows, MANY);
    CU_ASSERT_EQUAL_FATAL(census.inflows, MANY);
    CU_ASSERT_EQUAL(census.miscounted, 0);
    oldest[0] = unbind_some(b, 0, 8);
    oldest[1] = close_some(b, 0, 8);
    census = peek_census(b->engine);
    CU_ASSERT_EQUAL(census.inflows, MANY - 8 * BLOCK);
    CU_ASSERT_EQUAL(census.miscounted, 0);
    (void)unbind_some(b, 8 * BLOCK, MANY / BLOCK - 16);
    (void)close_some(b, 8 * BLOCK, MANY / BLOCK - 16);
    newest[0] = unbind_some(b, MANY - 8 * BLOCK, 8);
    newest[1] = close_some(b, MANY - 8 * BLOCK, 8);
    census = peek_census(b->engine);
    printf("\n\n  of %u flows, %u inflows: the oldest leave in %lu, %lu ns, the newest in %lu, "
           "%lu ns\n",
           MANY, MANY, (unsigned long)oldest[0], (unsigned long)oldest[1], (unsigned long)newest[0],
           (unsigned long)newest[1]);
    CU_ASSERT_EQUAL(census.inflows + census.remotes, 0);
    CU_ASSERT_EQUAL(census.miscounted + census.lost, 0);
    for (int i = 0; i < 2; i++)
        CU_ASSERT(oldest[i] <= 8 * newest[i] + 1000);
    bench_free(b);
}

/* Returns the time of the shortest of some steps in which a context with this many binds has
 * drained its spill, and one of its origins may continue. */
static uint64_t drain(uint32_t pairs)
{
    const struct bench_shape shape = {
        .ring_bytes = SESSION_RING_MIN, .region_bytes = 4096, .entries = PAIRS};
    struct wire_op note = {.head = {.words = sizeof(note) / 8, .kind = WIRE_NOTE}};
    struct bench *b = bench_of(&shape);
    uint64_t fastest = UINT64_MAX;

    CU_ASSERT_EQUAL_FATAL(bench_link(b), 0);
    send_many(b, &some_bind, sizeof(some_bind), 0, pairs, name_origin_flow);
    CU_ASSERT_EQUAL_FATAL(peek_inflow(b->engine, 0).state, INFLOW_OPEN);
    for (int i = 0; i < 20; i++) {
        uint64_t began;

        while (peek_session(b->engine, 0).spill_bytes == 0) {
            make_room(b, sizeof(note));
            CU_ASSERT_TRUE_FATAL(bench_send(b, &note, sizeof(note)));
            note.sequence++;
        }
        CU_ASSERT_EQUAL(peek_inflow(b->engine, 0).state, INFLOW_STOPPED);
        bench_steps(b, 4);
        atomic_store(&b->session->remote.head, bench_events(b));
        began = now_ns();
        bench_steps(b, 1);
        began = now_ns() - began;
        fastest = began < fastest ? began : fastest;
        CU_ASSERT_EQUAL(peek_inflow(b->engine, 0).state, INFLOW_OPEN);
    }
    bench_free(b);
    return fastest;
}

/* Whether the ring of remote events has room for one more event, with padding before it if
 * needed. */
static bool ring_has_room(const struct bench *b)
{
    uint64_t tail = bench_events(b), used = tail - atomic_load(&b->session->remote.head);
    uint64_t to_end = SESSION_RING_MIN - tail % SESSION_RING_MIN, event = event_bytes(0);

    return event + (to_end < event ? to_end : 0) <= SESSION_RING_MIN - used;
}

/* Returns the time of the shortest of some steps in which a context with this many binds has made
 * room, and the end of one of its origins, which has waited for that room, is reported. */
static uint64_t report_end(uint32_t pairs)
{
    const struct bench_shape shape = {
        .ring_bytes = SESSION_RING_MIN, .region_bytes = 4096, .entries = PAIRS};
    struct wire_op note = {.head = {.words = sizeof(note) / 8, .kind = WIRE_NOTE}};
    struct wire_flow close = {.head = {.words = sizeof(close) / 8, .kind = WIRE_CLOSE},
                              .status = -EHOSTDOWN};
    struct bench *b = bench_of(&shape);
    uint64_t fastest = UINT64_MAX;

    CU_ASSERT_EQUAL_FATAL(bench_link(b), 0);
    send_many(b, &some_bind, sizeof(some_bind), 0, pairs, name_origin);
    while (close.flow++ < 20) {
        uint64_t began;
        uint32_t free;

        for (; ring_has_room(b); note.sequence++) {
            make_room(b, sizeof(note));
            CU_ASSERT_TRUE_FATAL(bench_send(b, &note, sizeof(note)));
        }
        free = poke_memory(b->engine, 0);
        make_room(b, sizeof(close));
        CU_ASSERT_TRUE_FATAL(bench_send(b, &close, sizeof(close)));
        CU_ASSERT_EQUAL(peek_inflow(b->engine, close.flow).state, INFLOW_PARTING);
        (void)poke_memory(b->engine, free);
        atomic_store(&b->session->remote.head, bench_events(b));
        began = now_ns();
        bench_steps(b, 1);
        began = now_ns() - began;
        fastest = began < fastest ? began : fastest;
        CU_ASSERT_EQUAL(peek_inflow(b->engine, close.flow).state, INFLOW_FREE);
    }
    bench_free(b);
    return fastest;
}

/* Counts the inflows in this state. */
static uint32_t inflows_in(const struct bench *b, uint32_t inflows, enum inflow_state state)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < inflows; i++)
        count += peek_inflow(b->engine, i).state == state;
    return count;
}

/* Guards that of many origins that may continue, a step lets only some continue. */
static void test_many_go_on(void)
{
    enum { HELD = 1100, STEP_MOST = 512 };
    struct wire_op note = {.head = {.words = sizeof(note) / 8, .kind = WIRE_NOTE}};
    struct bench *b = large_bench();
    uint32_t steps = 0;

    CU_ASSERT_EQUAL_FATAL(bench_link(b), 0);
    send_many(b, &some_bind, sizeof(some_bind), 0, HELD, name_origin_flow);
    while (peek_session(b->engine, 0).spill_bytes == 0) {
        make_room(b, sizeof(note));
        CU_ASSERT_TRUE_FATAL(bench_send(b, &note, sizeof(note)));
        note.sequence++;
    }
    for (note.flow = 1, note.sequence = 0; note.flow < HELD; note.flow++) {
        make_room(b, sizeof(note));
        CU_ASSERT_TRUE_FATAL(bench_send(b, &note, sizeof(note)));
    }
    CU_ASSERT_EQUAL_FATAL(inflows_in(b, HELD, INFLOW_STOPPED), HELD);
    while (inflows_in(b, HELD, INFLOW_OPEN) < HELD && steps++ < 20) {
        uint32_t before = inflows_in(b, HELD, INFLOW_OPEN);

        atomic_store(&b->session->remote.head, bench_events(b));
        bench_steps(b, 1);
        CU_ASSERT(inflows_in(b, HELD, INFLOW_OPEN) <= before + STEP_MOST);
    }
    CU_ASSERT_EQUAL(inflows_in(b, HELD, INFLOW_OPEN), HELD);
    CU_ASSERT_FALSE(b->broken || b->quarantined);
    bench_free(b);
}

static void test_drains(void)
{
    uint64_t few = drain(64), many = drain(MANY);

    printf("\n\n  a drained spill of a context that was bound 64 times: %lu ns, %u times: %lu ns\n",
           (unsigned long)few, MANY, (unsigned long)many);
    CU_ASSERT(many <= 4 * few + 4000);
    few = report_end(64);
    many = report_end(MANY);
    printf("  an end that waited for room: %lu ns, %lu ns\n", (unsigned long)few,
           (unsigned long)many);
    CU_ASSERT(many <= 4 * few + 4000);
}

/* Returns the time of the shortest of some steps in which the engine looks for silent peers: it has
 * this many flows without anything under way, to a peer that owes answers. */
static uint64_t look_for_silence(uint32_t pairs)
{
    struct bench *b = large_bench();
    uint64_t fastest = UINT64_MAX;

    (void)bind_some(b, 0, pairs);
    for (int i = 0; i < 20; i++) {
        uint64_t began;

        b->now += b->config.keepalive_ns;
        began = now_ns();
        bench_steps(b, 1);
        began = now_ns() - began;
        fastest = began < fastest ? began : fastest;
    }
    bench_free(b);
    return fastest;
}

static void test_looks_for_silence(void)
{
    uint64_t few = look_for_silence(256), many = look_for_silence(PAIRS);

    printf("\n\n  a look for silent peers with 256 flows: %lu ns, with %u: %lu ns\n",
           (unsigned long)few, PAIRS, (unsigned long)many);
    CU_ASSERT(many <= 8 * few + 20000);
}

/* Guards the bit that remotes share whose handles are equal modulo SESSION_REMOTES: while any of
 * them has ended, the bit says so for all. */
static void test_ends_share_bits(void)
{
    enum { FIRST = 5, OTHER = FIRST + SESSION_REMOTES };
    const uint64_t bit = UINT64_C(1) << FIRST;
    struct bench *b = large_bench();

    (void)bind_some(b, 0, SESSION_REMOTES);
    poke_remote_state(b->engine, FIRST, REMOTE_REVOKED);
    direct_show_ended(b->engine, FIRST, true);
    CU_ASSERT_EQUAL(atomic_load(&b->session->ended_remotes[0]), bit);
    (void)bind_some(b, SESSION_REMOTES, 256); /* each new remote is shown as not ended */
    CU_ASSERT_EQUAL(atomic_load(&b->session->ended_remotes[0]), bit);
    poke_remote_state(b->engine, FIRST, REMOTE_READY);
    direct_show_ended(b->engine, FIRST, false);
    CU_ASSERT_EQUAL(atomic_load(&b->session->ended_remotes[0]), 0);
    direct_show_ended(b->engine, OTHER, true);
    CU_ASSERT_EQUAL(atomic_load(&b->session->ended_remotes[0]), bit);
    direct_show_ended(b->engine, OTHER, false);
    poke_remote_state(b->engine, FIRST, REMOTE_REVOKED);
    direct_show_ended(b->engine, FIRST, true);
    CU_ASSERT_EQUAL(engine_unbind(b->engine, 0, FIRST), 0);
    CU_ASSERT_EQUAL_FATAL(bench_link(b), 0);
    bench_bound(b, FIRST, 0, 3); /* with this answer the remote is free */
    bench_steps(b, 2);
    CU_ASSERT_EQUAL_FATAL(peek_remote(b->engine, FIRST).state, REMOTE_FREE);
    CU_ASSERT_EQUAL(atomic_load(&b->session->ended_remotes[0]), 0);
    bench_free(b);
}

int main(void)
{
    CU_TestInfo tests[] = {{"homes of keys grow with the entries", test_homes_grow},
                           {"unused entries take nothing", test_unused_entries_take_nothing},
                           {"other sizes are another arena", test_other_sizes},
                           {"bounds of sizes", test_bounds_of_sizes},
                           {"ends share bits", test_ends_share_bits},
                           {"the oldest leave as quickly", test_the_oldest_leave},
                           {"a spill is drained", test_drains},
                           {"many go on", test_many_go_on},
                           {"a look for silent peers", test_looks_for_silence},
                           {"a restart with many pairs", test_restart_with_many_pairs},
                           CU_TEST_INFO_NULL};

    return suite_run("pairs", tests);
}
