/*
 * Puts to an offload's region, in the simulated world: what each return of a handler means for the
 * put, its origin and its client, alone and in a batch; that puts of any length run each handler
 * exactly once on each packet, however links break and daemons are restarted; and how a put is cut.
 *
 *     test_regions                              the cases, and 100 random runs
 *     test_regions --seeds N [--first S]        random runs alone
 *     test_regions --seed S                     one of them again
 *
 * Thread: one.
 */
#include <CUnit/CUnit.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "daemon/handlers/run.h"
#include "tests/count.h"
#include "tests/engine/bench/peek.h"
#include "tests/engine/offload/scene.h"
#include "tests/engine/offload/scene_seeds.h"

#define RUNS 100u

enum { ALL = 7, PAYLOAD = 2, COMPLETION = 4, PACKET = 256 };
enum { SUCCESS = HANDLER_SUCCESS, DROP = HANDLER_DROP, DATA = HANDLER_PROCESS_DATA };

static struct scene scene;
/* Whether the region stores puts, so that handlers find the data there (test_placed.c has more
 * about such regions). */
static bool stores;

static bool open_scene(uint64_t seed, uint32_t flags, uint32_t handlers)
{
    const struct world_options options = {.seed = seed,
                                          .limits = {.ledger_start = 4096,
                                                     .ledger_max = 4096,
                                                     .ledger_bytes = 256 * 1024,
                                                     .packed_max = PACKET},
                                          .sim = {.ordered_write_max = UINT64_MAX}};
    bool opened =
        scene_open_puts(&scene, &options, flags | (stores ? ENGINE_OFFLOAD_PLACED : 0), handlers);

    for (uint32_t i = 0; opened && i < 65536; i++)
        scene.world->clients[0].contexts[0].memory[i] = (uint8_t)(i * 7 + i / 256);
    return opened;
}

static void close_scene(void)
{
    const char *wrong = scene_close(&scene);

    CU_ASSERT_PTR_NULL(wrong);
    if (wrong)
        printf("\n  %s\n", wrong);
}

static struct offload offload(void)
{
    return peek_offload(scene.world->nodes[1].engine, (uint32_t)scene.offload);
}

static uint32_t put(uint64_t plan, uint32_t length)
{
    bool copied = length > 0 && length <= PACKET && !stores;

    return scene_put(&scene, plan, length, copied ? SUBMIT_INLINE : 0, WORLD_MAIN);
}

static bool is_placed(uint32_t length)
{
    return memcmp(scene.world->clients[1].contexts[0].memory + SCENE_PLACE,
                  scene.world->clients[0].contexts[0].memory, length) == 0;
}

/* ---- returns --------------------------------------------------------------------------------- */

/* One put in each row, and the results that must follow. */
static const struct {
    uint32_t flags, handlers;
    uint32_t header, payload, completion; /* plans */
    uint8_t runs[HANDLER_STAGES]; /* runs of the payload handler: 1 on each packet, 2 only on the
                                     first */
    int status;
    uint32_t event; /* at the owner: enum offload_event, 0: the put itself, NONE: nothing */
} returns[] = {
    {0, ALL, DATA, SUCCESS, SUCCESS, {1, 1, 1}, 0, OFFLOAD_ENDED},
    {0, ALL, DROP, SUCCESS, SUCCESS, {1, 0, 1}, 0, OFFLOAD_ENDED},
    {0, ALL, DATA, DROP, SUCCESS, {1, 1, 1}, 0, OFFLOAD_ENDED},
    {0, ALL, HANDLER_PROCEED, SUCCESS, SUCCESS, {1, 0, 0}, 0, 0},
    {0, ALL, DATA | HANDLER_PENDING, SUCCESS, SUCCESS, {1, 1, 1}, 0, NONE},
    {ENGINE_OFFLOAD_QUIET, ALL, DATA, SUCCESS, SUCCESS, {1, 1, 1}, 0, NONE},
    {ENGINE_OFFLOAD_QUIET, ALL, HANDLER_PROCEED, SUCCESS, SUCCESS, {1, 0, 0}, 0, 0},
    {0, ALL, HANDLER_FAIL, SUCCESS, SUCCESS, {1, 0, 1}, -EREMOTEIO, OFFLOAD_FAILED},
    {0, ALL, DATA, HANDLER_FAIL, SUCCESS, {1, 2, 1}, -EREMOTEIO, OFFLOAD_FAILED},
    {0, ALL, DATA, SUCCESS, HANDLER_FAIL, {1, 1, 1}, -EREMOTEIO, OFFLOAD_FAILED},
    {0, PAYLOAD | COMPLETION, DATA, SUCCESS, SUCCESS, {0, 1, 1}, 0, OFFLOAD_ENDED},
    {0, COMPLETION, DATA, SUCCESS, SUCCESS, {0, 0, 1}, 0, OFFLOAD_ENDED},
    {0, PAYLOAD, DATA, SUCCESS, SUCCESS, {0, 1, 0}, 0, OFFLOAD_ENDED},
    {0, ALL, SCENE_BAD_RETURN, SUCCESS, SUCCESS, {1, 0, 0}, -EREMOTEIO, OFFLOAD_FAULT},
    {0, ALL, DATA, SCENE_BAD_RETURN, SUCCESS, {1, 2, 0}, -EREMOTEIO, OFFLOAD_FAULT},
    {0, ALL, DATA, SUCCESS, SCENE_BAD_RETURN, {1, 1, 1}, -EREMOTEIO, OFFLOAD_FAULT},
};

static uint32_t put_row(size_t row, uint32_t length)
{
    return put(scene_plan(returns[row].header, returns[row].payload, returns[row].completion),
               length);
}

/* Checks the results of the row's put. */
static void check_row(size_t row, uint32_t number, uint32_t length)
{
    const struct scene_message *m = &scene.messages[number];
    uint32_t event = returns[row].event, packets = length == 0 ? 1 : (length + PACKET - 1) / PACKET;

    for (uint32_t stage = 0; stage < HANDLER_STAGES; stage++) {
        uint32_t runs = returns[row].runs[stage];

        if (stage == HANDLER_PAYLOAD && runs == 1)
            runs = packets;
        else if (runs == 2)
            runs = 1;
        CU_ASSERT_EQUAL(scene_runs(&scene, number, stage), runs);
    }
    CU_ASSERT_EQUAL(m->ends, 1);
    CU_ASSERT_EQUAL(m->status, returns[row].status);
    for (uint32_t kind = 0; kind < COUNT(m->events); kind++)
        CU_ASSERT_EQUAL(m->events[kind], kind == event);
}

static void check_return(size_t row, uint32_t length)
{
    uint32_t event = returns[row].event;

    CU_ASSERT_FATAL(open_scene(row + 1, returns[row].flags, returns[row].handlers));
    CU_ASSERT_EQUAL(put_row(row, length), 0);
    scene_finish(&scene);
    check_row(row, 0, length);
    if (returns[row].header == HANDLER_PROCEED || stores)
        CU_ASSERT(is_placed(length));
    if (returns[row].header == DROP || returns[row].payload == DROP)
        CU_ASSERT_EQUAL(offload().dropped, length);
    CU_ASSERT_EQUAL(offload().messages, 1);
    CU_ASSERT_EQUAL(offload().bytes, length);
    CU_ASSERT_EQUAL(offload().state, event == OFFLOAD_FAULT ? OFFLOAD_DISABLED : OFFLOAD_OPEN);
    close_scene();
}

static void test_returns(void)
{
    static const uint32_t lengths[] = {0,          1,          PACKET - 1,     PACKET,
                                       PACKET + 1, 2 * PACKET, 4 * PACKET + 3, 8000};

    for (size_t row = 0; row < COUNT(returns); row++)
        for (size_t i = 0; i < COUNT(lengths); i++)
            check_return(row, lengths[i]);
}

/* ---- in a batch ------------------------------------------------------------------------------ */

/* The row for all puts of a batch except one. */
enum { PLAIN = 0 };

/* Counts the records of this kind that client 0's node has staged from a position on. */
static uint32_t staged(uint8_t kind, uint64_t at)
{
    struct engine *e = scene.world->nodes[0].engine;
    uint64_t end = peek_peer(e, 1).staged;
    uint32_t count = 0;

    while (at < end) {
        const struct wire_record *head = peek_record(e, 1, at);

        count += head->kind == kind;
        at += head->words * UINT64_C(8);
    }
    return count;
}

/* Guards that `count` puts in a row travel as one batch in which each ends as it would alone: the
 * put at `place` as its row says, the others well, except for those after a fault, which disables
 * the offload. */
static void check_batch(size_t row, uint32_t place, uint32_t count, uint32_t length)
{
    uint64_t begun;
    bool faults = returns[row].event == OFFLOAD_FAULT;

    CU_ASSERT_FATAL(open_scene(row + 1, returns[row].flags, returns[row].handlers));
    begun = peek_peer(scene.world->nodes[0].engine, 1).staged;
    for (uint32_t i = 0; i < count; i++)
        CU_ASSERT_EQUAL(put_row(i == place ? row : PLAIN, length), i);
    scene_finish(&scene);
    CU_ASSERT_EQUAL(staged(WIRE_BATCH, begun), 1);
    CU_ASSERT_EQUAL(staged(WIRE_PACKET, begun), 0);
    check_row(row, place, length);
    for (uint32_t i = 0; i < count; i++) {
        const struct scene_message *m = &scene.messages[i];
        bool ran = !(faults && i > place);

        if (i == place)
            continue;
        CU_ASSERT_EQUAL(m->ends, 1);
        CU_ASSERT_EQUAL(m->status, ran ? 0 : -ESHUTDOWN);
        for (uint32_t stage = 0; stage < HANDLER_STAGES; stage++)
            CU_ASSERT_EQUAL(scene_runs(&scene, i, stage),
                            ran && returns[row].handlers >> stage & 1);
    }
    CU_ASSERT_EQUAL(offload().bytes, (uint64_t)count * length);
    close_scene();
}

static void test_returns_in_a_batch(void)
{
    static const struct {
        uint32_t place, count, length;
    } batches[] = {{0, 2, 8}, {1, 2, 1}, {0, 8, 100}, {3, 8, 40}, {7, 8, 7}, {15, 16, 33}};

    for (size_t row = 0; row < COUNT(returns); row++)
        for (size_t i = 0; i < COUNT(batches); i++)
            check_batch(row, batches[i].place, batches[i].count, batches[i].length);
}

/* Guards that a put without a local event has one if it fails, also in a batch. */
static void test_silent_batch(void)
{
    CU_ASSERT_FATAL(open_scene(1, 0, ALL));
    for (uint32_t i = 0; i < 20; i++)
        CU_ASSERT_EQUAL(scene_put(&scene,
                                  scene_plan(DATA, i % 7 == 3 ? HANDLER_FAIL : SUCCESS, SUCCESS),
                                  16, SUBMIT_INLINE | SUBMIT_NO_LCE, WORLD_MAIN),
                        i);
    for (uint32_t i = 0; i < 10000 && scene_turn(&scene); i++)
        continue;
    for (uint32_t i = 0; i < 20; i++) {
        CU_ASSERT_EQUAL(scene.messages[i].ends, i % 7 == 3);
        CU_ASSERT_EQUAL(scene.messages[i].status, i % 7 == 3 ? -EREMOTEIO : 0);
    }
    close_scene();
}

/* Guards that a step may end in the middle of a batch whose handlers take long, and that the batch
 * continues in the next step. */
static void test_long_batch(void)
{
    uint32_t last = 0, steps = 0;

    CU_ASSERT_FATAL(open_scene(1, ENGINE_OFFLOAD_QUIET, ALL));
    for (uint32_t i = 0; i < 60; i++)
        CU_ASSERT_EQUAL(put(scene_plan(DATA, SUCCESS, SUCCESS), 16), i);
    for (uint32_t i = 0; i < 10000 && last < 60; i++) {
        uint32_t done = 0;

        scene_turn(&scene);
        while (done < 60 && scene_runs(&scene, done, HANDLER_COMPLETION) > 0)
            done++;
        steps += done > last;
        last = done;
    }
    CU_ASSERT(steps > 1);
    scene_finish(&scene);
    for (uint32_t i = 0; i < 60; i++)
        CU_ASSERT_EQUAL(scene.messages[i].status, 0);
    close_scene();
}

/* Guards puts that are longer than any ring of the ledger, and not copied at their submission. */
static void test_long(void)
{
    CU_ASSERT_FATAL(open_scene(1, 0, ALL));
    for (uint32_t i = 0; i < 4; i++)
        CU_ASSERT_EQUAL(put(scene_plan(i % 2 ? HANDLER_PROCEED : DATA, SUCCESS, SUCCESS), 30000),
                        i);
    scene_finish(&scene);
    for (uint32_t i = 0; i < 4; i++) {
        CU_ASSERT_EQUAL(scene.messages[i].status, 0);
        CU_ASSERT(i % 2 || scene_got_all(&scene, i, PACKET));
    }
    CU_ASSERT(is_placed(30000));
    close_scene();
}

/* ---- other writes to the region -------------------------------------------------------------- */

static int status_of(uint8_t kind, uint16_t flags, uint32_t length, uint64_t offset)
{
    const struct world_client *c = &scene.world->clients[0];
    const struct vector_piece piece = {offset << VECTOR_LENGTH_BITS | 8};
    uint8_t bytes[256] = {0};
    struct submit_record *r = (void *)bytes;
    struct message_event event;

    *r = (struct submit_record){.size = sizeof(*r),
                                .kind = kind,
                                .flags = flags | SUBMIT_NO_RCE,
                                .code = kind == SUBMIT_ATOMIC ? word_code(WORD_ADD, WORD_U64) : 0,
                                .remote = scene.remote,
                                .reserve = event_bytes(0),
                                .offset = offset,
                                .length = length,
                                .segment = c->segments[WORLD_MAIN].handle,
                                .local_offset = c->contexts[0].offset};
    if (flags & SUBMIT_INLINE)
        r->size += abi_pad8(length);
    if (kind == SUBMIT_VECTOR) { /* a block of one piece */
        r->code = SUBMIT_PUT;
        r->total = 8;
        memcpy(r + 1, &piece, sizeof(piece));
    }
    CU_ASSERT_EQUAL_FATAL(message_raw(&scene.client[0], false, bytes, r->size), 0);
    message_submitted(&scene.client[0]);
    for (uint32_t i = 0; i < 10000; i++) {
        if (message_probe(&scene.client[0], MESSAGE_LOCAL, &event) == 1)
            return event.head.status;
        world_round(scene.world);
    }
    return -ETIMEDOUT;
}

/* Guards that a get works as usual, and that nothing but puts may write, because other writes would
 * bypass the handlers. */
static void test_others(void)
{
    CU_ASSERT_FATAL(open_scene(1, ENGINE_OFFLOAD_QUIET, ALL));
    memset(scene.world->clients[1].contexts[0].memory + SCENE_PLACE, 0x5a, 64);
    CU_ASSERT_EQUAL(status_of(SUBMIT_GET, 0, 64, SCENE_PLACE), 0);
    CU_ASSERT_EQUAL(scene.world->clients[0].contexts[0].memory[63], 0x5a);
    CU_ASSERT_EQUAL(status_of(SUBMIT_ATOMIC, SUBMIT_INLINE, 8, SCENE_PLACE), -EOPNOTSUPP);
    CU_ASSERT_EQUAL(status_of(SUBMIT_PUT, SUBMIT_INLINE | SUBMIT_MORE, 8, SCENE_PLACE),
                    -EOPNOTSUPP);
    CU_ASSERT_EQUAL(
        status_of(SUBMIT_VECTOR, SUBMIT_INLINE, sizeof(struct vector_piece) + 8, SCENE_PLACE),
        -EOPNOTSUPP);
    CU_ASSERT_EQUAL(status_of(SUBMIT_PUT, 0, 64, 65536 - 63), -ERANGE);
    CU_ASSERT_EQUAL(offload().messages, 0);
    close_scene();
}

/* ---- states ---------------------------------------------------------------------------------- */

static int ends_with(uint32_t length)
{
    uint32_t number = put(scene_plan(DATA, SUCCESS, SUCCESS), length);

    scene_finish(&scene);
    return number < SCENE_MESSAGES ? scene.messages[number].status : -EAGAIN;
}

static void test_states(void)
{
    for (uint32_t length = 10; length < 3000; length += 1500) {
        CU_ASSERT_FATAL(open_scene(1, 0, ALL));
        CU_ASSERT_EQUAL(ends_with(length), 0);
        CU_ASSERT_EQUAL(scene_enable(&scene, false), 0);
        CU_ASSERT_EQUAL(ends_with(length), -ESHUTDOWN);
        CU_ASSERT_EQUAL(scene_enable(&scene, true), 0);
        CU_ASSERT_EQUAL(ends_with(length), 0);
        CU_ASSERT_EQUAL(scene_destroy(&scene), 0);
        CU_ASSERT_EQUAL(ends_with(length), -ESHUTDOWN);
        close_scene();
    }
}

static int create(const struct engine_offload_info *info)
{
    return engine_offload_create(scene.world->nodes[1].engine,
                                 scene.world->clients[1].contexts[0].session, info, 0);
}

static void test_refused(void)
{
    const struct world_context *x;
    struct engine_offload_info good, info;
    struct engine_key key;

    CU_ASSERT_FATAL(open_scene(1, 0, ALL));
    x = &scene.world->clients[1].contexts[0];
    good = (struct engine_offload_info){.program = (uint32_t)scene.program,
                                        .takes = OFFLOAD_PUTS,
                                        .host = {x->key.slot, x->key.generation, 0, x->length}};
    CU_ASSERT_EQUAL(create(&good), -EADDRINUSE);
    info = good, info.takes++;
    CU_ASSERT_EQUAL(create(&info), -EINVAL);
    info = good, info.host.length -= 64;
    CU_ASSERT_EQUAL(create(&info), -EINVAL);
    info = good, info.host.offset = 64, info.host.length -= 64;
    CU_ASSERT_EQUAL(create(&info), -EINVAL);
    info = good, info.host.length = 0;
    CU_ASSERT_EQUAL(create(&info), -EINVAL);
    info.host.slot = UINT32_MAX; /* an empty window may have any slot */
    CU_ASSERT_EQUAL(create(&info), -EINVAL);
    CU_ASSERT_EQUAL(world_region_open(scene.world, 1, 0, ENGINE_REMOTE_READ, &key), 0);
    info = good, info.host.slot = key.slot, info.host.generation = key.generation;
    CU_ASSERT_EQUAL(create(&info), -EINVAL);
    /* Peers that have bound the region know that it takes packets, so it may have another offload.
     */
    CU_ASSERT_EQUAL(scene_destroy(&scene), 0);
    info = good, info.flags = ENGINE_OFFLOAD_PLACED;
    CU_ASSERT_EQUAL(create(&info), -EBUSY); /* the origins do not know that the region stores */
    info.takes = OFFLOAD_MESSAGES, info.index = 1;
    CU_ASSERT_EQUAL(create(&info), -EINVAL);
    CU_ASSERT(create(&good) >= 0);
    close_scene();
    /* A peer has bound the region while it had no offload, so it would not send packets: the
     * region gets no offload any more. */
    CU_ASSERT_FATAL(scene_open(
        &scene, &(struct world_options){.seed = 1, .sim = {.ordered_write_max = UINT64_MAX}}, 0,
        ALL));
    x = &scene.world->clients[1].contexts[0];
    good.program = (uint32_t)scene.program;
    good.host = (struct engine_range){x->key.slot, x->key.generation, 0,
                                      scene.world->clients[1].contexts[0].length};
    world_await(scene.world, world_bind(scene.world, 0, 0, 1, 0, &x->key));
    CU_ASSERT_EQUAL(create(&good), -EBUSY);
    close_scene();
}

/* Guards that returns mean in a region that stores what they mean elsewhere. */
static void test_stored(void)
{
    stores = true;
    test_returns();
    test_long();
    test_others();
    test_states();
    stores = false;
}

/* ---- puts that can't end --------------------------------------------------------------------- */

/* Begins a put of many packets, of which some have been handled, and others not. */
static uint32_t begin_long(uint32_t segment)
{
    uint32_t number = scene_put(&scene, scene_plan(DATA, SUCCESS, SCENE_EVENT), 4096, 0, segment);

    for (uint32_t i = 0; i < 10000 && scene_runs(&scene, number, HANDLER_PAYLOAD) < 3; i++)
        scene_turn(&scene);
    CU_ASSERT(!scene_got_all(&scene, number, PACKET));
    return number;
}

static void check_cut(uint32_t number, int status)
{
    const struct scene_message *m = &scene.messages[number];

    CU_ASSERT_EQUAL(m->status, status);
    CU_ASSERT_EQUAL(scene_runs(&scene, number, HANDLER_HEADER), 1);
    CU_ASSERT_EQUAL(scene_runs(&scene, number, HANDLER_COMPLETION), 1);
    CU_ASSERT_EQUAL(m->own[HANDLER_COMPLETION], 1);
    CU_ASSERT(!scene_got_all(&scene, number, PACKET));
}

static void test_cut_by_owner(void)
{
    for (uint32_t destroy = 0; destroy < 2; destroy++) {
        uint32_t number;

        CU_ASSERT_FATAL(open_scene(1, 0, ALL));
        number = begin_long(WORLD_MAIN);
        CU_ASSERT_EQUAL(destroy ? scene_destroy(&scene) : scene_enable(&scene, false), 0);
        CU_ASSERT_EQUAL(scene_runs(&scene, number, HANDLER_COMPLETION), 1);
        scene_finish(&scene);
        check_cut(number, -ESHUTDOWN);
        if (!destroy) {
            CU_ASSERT_EQUAL(scene.messages[number].events[OFFLOAD_FAILED], 1);
            CU_ASSERT_EQUAL(scene_enable(&scene, true), 0);
            CU_ASSERT_EQUAL(ends_with(3000), 0);
        }
        close_scene();
    }
}

/* Guards a put that is cut because the memory from which it is read is closed. */
static void test_cut_by_origin(void)
{
    uint32_t number;

    CU_ASSERT_FATAL(open_scene(1, 0, ALL));
    CU_ASSERT(world_spare_open(scene.world, 0) >= 0);
    world_settle(scene.world, 10000);
    number = begin_long(WORLD_SPARE);
    CU_ASSERT(world_spare_close(scene.world, 0) >= 0);
    scene_finish(&scene);
    check_cut(number, -EFAULT);
    CU_ASSERT_EQUAL(scene.messages[number].events[OFFLOAD_FAILED], 1);
    CU_ASSERT_EQUAL(ends_with(3000), 0);
    close_scene();
}

/* Guards a put that is cut because its origin's client ends, or its origin's node is lost for good.
 */
static void test_origin_leaves(void)
{
    for (uint32_t lost = 0; lost < 2; lost++) {
        uint32_t number;

        CU_ASSERT_FATAL(open_scene(1, 0, ALL));
        number = begin_long(WORLD_MAIN);
        if (lost)
            world_link_lost(scene.world, 0, 1);
        else
            world_client_close(scene.world, 0);
        scene.silent = !lost;
        for (uint32_t i = 0; i < 10000 && scene_turn(&scene); i++)
            continue;
        CU_ASSERT_EQUAL(scene_runs(&scene, number, HANDLER_COMPLETION), 1);
        CU_ASSERT_EQUAL(scene.messages[number].events[OFFLOAD_FAILED], 1);
        CU_ASSERT_EQUAL(scene.messages[number].own[HANDLER_COMPLETION], 1);
        CU_ASSERT_EQUAL(scene.messages[number].status, lost ? -ECONNABORTED : 0);
        close_scene();
    }
}

/* ---- the pace of packets --------------------------------------------------------------------- */

enum { LONG = 1 << 20, LONG_PACKET = 4096, TURN = 512, PUTS = 4 };

/* Sends long puts to handlers that have a turn only now and then, because other clients have work.
 * Returns how many times the bytes have crossed the wire. A turn is some 12 packets. The link
 * breaks `breaks` times. */
static double crossings(uint64_t seed, uint32_t delay_ns, uint32_t breaks)
{
    const struct world_options options = {
        .seed = seed,
        .segment_bytes = LONG + SCENE_PLACE,
        .limits = {.ledger_start = 1 << 19,
                   .ledger_max = 1 << 19,
                   .ledger_bytes = 1 << 22,
                   .packed_max = LONG_PACKET,
                   .handler_turn = TURN,
                   .handler_share = 5},
        .sim = {.ordered_write_max = UINT64_MAX, .delay_max_ns = delay_ns}};
    uint64_t begun;
    double times;

    CU_ASSERT_FATAL(scene_open_puts(&scene, &options, 0, ALL));
    begun = peek_peer(scene.world->nodes[0].engine, 1).staged;
    for (uint32_t i = 0; i < PUTS; i++)
        CU_ASSERT_EQUAL(scene_put(&scene, scene_plan(DATA, SUCCESS, SUCCESS), LONG, 0, WORLD_MAIN),
                        i);
    for (uint32_t i = 0; i < 1000000 && scene.messages[PUTS - 1].ends == 0 && !scene.world->failed;
         i++) {
        poke_other_work(scene.world->nodes[1].engine);
        scene_turn(&scene);
        if (breaks > 0 && i % 100 == 99) {
            world_link_break(scene.world, 0, 1);
            breaks--;
        }
    }
    for (uint32_t i = 0; i < PUTS; i++) {
        CU_ASSERT_EQUAL(scene.messages[i].status, 0);
        CU_ASSERT(scene_got_all(&scene, i, LONG_PACKET));
    }
    times = (double)(peek_peer(scene.world->nodes[0].engine, 1).staged - begun) / LONG / PUTS;
    printf("\n    delays up to %u ns: %.2f times, in %llu us", delay_ns, times,
           (unsigned long long)sim_now(scene.world->sim) / 1000);
    close_scene();
    return times;
}

static void test_pace(void)
{
    static const uint32_t delays[] = {500, 5000, 50000};

    for (size_t i = 0; i < COUNT(delays); i++)
        CU_ASSERT(crossings(i + 1, delays[i], 0) < 2);
}

/* Guards that packets which a broken link takes back do not count as under way any more. */
static void test_pace_and_breaks(void)
{
    CU_ASSERT(crossings(1, 5000, 20) < 2);
}

/* ---- random runs ----------------------------------------------------------------------------- */

static uint32_t below(struct sim_random *random, uint32_t limit)
{
    return (uint32_t)sim_random_below(random, limit);
}

static uint64_t random_plan(struct sim_random *random)
{
    static const uint32_t headers[] = {DATA, DATA, DATA, DROP, HANDLER_PROCEED, HANDLER_FAIL};
    static const uint32_t payloads[] = {SUCCESS, SUCCESS, SUCCESS, DROP, HANDLER_FAIL};
    static const uint32_t completions[] = {SUCCESS, SUCCESS, SUCCESS, HANDLER_FAIL};
    uint64_t sends = 0;

    for (uint32_t stage = 0; stage < HANDLER_STAGES; stage++)
        sends |=
            (uint64_t)((below(random, 2) ? SCENE_PUT : 0) | (below(random, 2) ? SCENE_EVENT : 0))
            << 16 * stage;
    return sends | scene_plan(headers[below(random, COUNT(headers))],
                              payloads[below(random, COUNT(payloads))],
                              completions[below(random, COUNT(completions))]);
}

/* How often a handler runs on a put with this plan. */
static uint32_t runs_of(const struct scene_message *m, uint32_t stage)
{
    uint32_t header = m->plan & HANDLER_RETURN_MASK;
    uint32_t payload = m->plan >> 16 & HANDLER_RETURN_MASK;

    if (stage == HANDLER_HEADER)
        return 1;
    if (stage == HANDLER_COMPLETION)
        return header != HANDLER_PROCEED;
    if (header != DATA)
        return 0;
    return payload == HANDLER_FAIL || m->length == 0 ? 1 : (m->length + PACKET - 1) / PACKET;
}

static const char *check_put(uint32_t number)
{
    const struct scene_message *m = &scene.messages[number];
    bool failed = false;

    for (uint32_t stage = 0; stage < HANDLER_STAGES; stage++) {
        uint32_t one = m->plan >> 16 * stage & 0xffff, runs = runs_of(m, stage);
        bool fails = (one & HANDLER_RETURN_MASK) == HANDLER_FAIL;

        failed |= fails && runs > 0;
        if (scene_runs(&scene, number, stage) != runs)
            return "a handler has not run once on each packet";
        if (m->puts[stage] != (one & SCENE_PUT && !fails ? runs : 0))
            return "a put of a handler's has not come once";
        if (m->own[stage] != (one & SCENE_EVENT && !fails ? runs : 0))
            return "a handler's event has not come once";
    }
    if (runs_of(m, HANDLER_PAYLOAD) > 1 && !scene_got_all(&scene, number, PACKET))
        return "a packet has not been handled once";
    return m->status == (failed ? -EREMOTEIO : 0) ? NULL : "a wrong status";
}

static struct world_options random_options(struct sim_random *random, uint64_t seed, FILE *trace)
{
    static const uint64_t ordered[] = {0, 4096, UINT64_MAX};

    return (struct world_options){.seed = seed,
                                  .trace = trace,
                                  .limits = {.ledger_start = 4096,
                                             .ledger_max = 4096u << 2 * below(random, 2),
                                             .ledger_bytes = 256 * 1024,
                                             .packed_max = PACKET,
                                             .chunks_max = below(random, 2) ? 64 : 256,
                                             .spill_max = 512 + below(random, 4000)},
                                  .sim = {.ordered_write_max = ordered[below(random, 3)],
                                          .message_max = 1u << 20,
                                          .refuse_per_mille = below(random, 2) * 100,
                                          .delay_max_ns = 500 + below(random, 10000)}};
}

static uint32_t random_put(struct sim_random *random)
{
    uint32_t length = below(random, below(random, 3) ? 2000 : PACKET);
    bool copied = length > 0 && length <= PACKET && below(random, 2);

    return scene_put(&scene, random_plan(random), length, copied ? SUBMIT_INLINE : 0, WORLD_MAIN);
}

/* Sends puts in a row, which may become batches. */
static void random_row(struct sim_random *random, uint32_t most)
{
    uint32_t count = 2 + below(random, 70), length = 1 + below(random, 40);

    for (uint32_t i = 0; i < count && scene.count < most; i++)
        (void)scene_put(&scene, random_plan(random), length, SUBMIT_INLINE, WORLD_MAIN);
}

/* Makes one random run. Returns NULL, or what went wrong. */
static const char *run(uint64_t seed, FILE *trace)
{
    struct sim_random random = {.state = seed ^ UINT64_C(0x9e9105)};
    struct world_options options = random_options(&random, seed, trace);
    uint32_t count = 20 + below(&random, 100), rows = below(&random, 2);
    const struct scene_troubles troubles = {
        .breaks = below(&random, 2) * 3, .deaths = below(&random, 2), .sleeps = below(&random, 3)};

    if (!scene_open_puts(&scene, &options,
                         below(&random, 2) * ENGINE_OFFLOAD_QUIET |
                             below(&random, 2) * ENGINE_OFFLOAD_PLACED,
                         ALL))
        return scene_close(&scene);
    for (uint32_t i = 0; i < 6000 && scene.count < count && !scene.world->failed; i++) {
        for (uint32_t burst = below(&random, 4); burst > 0 && scene.count < count; burst--)
            (void)random_put(&random);
        if (rows && below(&random, 8) == 0)
            random_row(&random, count);
        scene_turn(&scene);
        scene_trouble(&scene, &troubles, &random);
    }
    return scene_conclude(&scene, check_put);
}

static const struct scene_seeds seeds = {"regions", run};

static void test_random_runs(void)
{
    CU_ASSERT_EQUAL(scene_run_seeds(&seeds, 1, RUNS), 0);
}

int main(int argc, char **argv)
{
    CU_TestInfo tests[] = {
        {"what each return means", test_returns},
        {"a region that stores", test_stored},
        {"what it means in a batch", test_returns_in_a_batch},
        {"a batch without local events", test_silent_batch},
        {"a batch of several steps", test_long_batch},
        {"long puts", test_long},
        {"gets, and what is refused", test_others},
        {"disabled, enabled, destroyed", test_states},
        {"what no offload takes", test_refused},
        {"cut by the owner", test_cut_by_owner},
        {"cut by the origin", test_cut_by_origin},
        {"the origin leaves", test_origin_leaves},
        {"the pace of packets", test_pace},
        {"pace and breaks", test_pace_and_breaks},
        {"exactly once, by seed", test_random_runs},
        CU_TEST_INFO_NULL,
    };

    return scene_main(&seeds, tests, argc, argv);
}
