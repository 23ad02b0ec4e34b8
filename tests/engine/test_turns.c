/*
 * Clients' shares of a link: a client with one flow and a client with sixteen, both with more to
 * send than the link carries, get the same number of bytes; a message of a third client passes them
 * all, and finds little on the way. Time is virtual: the tests count bytes that have arrived.
 *
 * The senders are on node 0; on node 1 there is a receiver for each flow of the first two senders.
 * Links are cut while operations are queued, so that all are there when a test begins. Thread: one.
 */
#include <stdio.h>
#include <string.h>
#include "tests/suite.h"
#include "daemon/engine/ops/turn.h"
#include "tests/engine/world/world.h"
#include "tests/engine/bench/peek.h"

#define FLOWS_MANY    16u
#define QUEUED        (3u << 19) /* about the bytes of records that ONE and MANY queue */
#define LEDGER        16384u
#define LEDGER_LONG   262144u /* so large that padding does not count */
#define ROUNDS_MAX    200000u
#define SIZES_MAX     4u
#define SHARE_PERCENT 5

/* Sizes of a client's puts, in turn; 0 ends them. */
struct sizes {
    uint32_t lengths[SIZES_MAX];
    bool beside; /* payloads travel beside their records */
};

#define PACKED(...)                                                                                \
    {                                                                                              \
        {__VA_ARGS__}, false                                                                       \
    }
#define BESIDE(...)                                                                                \
    {                                                                                              \
        {__VA_ARGS__}, true                                                                        \
    }

/* A client of node 0, and the clients to which it sends. */
struct sender {
    uint32_t client;
    uint32_t flows;
    uint32_t remotes[FLOWS_MANY];
    struct {
        uint32_t client, context;
    } targets[FLOWS_MANY];
    const struct sizes *sizes;
    uint64_t submitted, arrived; /* numbers of puts */
    uint64_t bytes, got;         /* bytes of records and payloads */
    uint64_t per_flow[FLOWS_MANY];
    uint32_t deaf; /* a bit for each flow whose target takes no events */
};

enum { ONE, MANY, LONE, SENDERS };

struct scene {
    struct world *w;
    struct sender senders[SENDERS];
};

/* ---- the scene ------------------------------------------------------------------------------- */

static uint64_t cost_of(const struct sizes *sizes, uint32_t length)
{
    if (sizes->beside)
        return sizeof(struct wire_op) + length + TURN_POST_BYTES;
    return length <= 256 ? sizeof(struct wire_batch_put) + abi_pad8(length)
                         : sizeof(struct wire_put) + abi_pad8(length);
}

static uint32_t length_of(const struct sizes *sizes, uint64_t number)
{
    uint32_t count = 0;

    while (count < SIZES_MAX && sizes->lengths[count])
        count++;
    return sizes->lengths[number % count];
}

static void sender_bind(struct scene *s, struct sender *sender, uint32_t flow, uint32_t client,
                        uint32_t context)
{
    const struct engine_key *key = &s->w->clients[client].contexts[context].key;
    int request = world_bind(s->w, sender->client, 0, client, context, key);

    CU_ASSERT_EQUAL_FATAL(world_await(s->w, request), 0);
    sender->remotes[flow] = s->w->requests[request].handle;
    sender->targets[flow].client = client;
    sender->targets[flow].context = context;
    sender->flows = flow + 1;
    world_request_free(s->w, request);
}

/* Opens the scene: senders have one context each; the targets of the sender with many flows have
 * two. */
static void scene_open(struct scene *s, uint64_t seed, uint32_t ledger, uint32_t chunks)
{
    const struct world_options options = {
        .seed = seed,
        .nodes = 2,
        .submit_bytes = 1u << 18,
        .local_bytes = 1u << 22,
        .remote_bytes = 1u << 16,
        .limits = {.clients_max = 16,
                   .sessions_max = 32,
                   .segments_max = 32,
                   .flows_max = 64,
                   .chunks_max = chunks,
                   .ops_max = 262144,
                   .packed_max = 4096,
                   .ledger_max = ledger,
                   .ledger_start = ledger,
                   .ledger_bytes = 4 << 20},
        .sim = {.ordered_write_max = UINT64_MAX},
    };
    int first;

    memset(s, 0, sizeof *s);
    CU_ASSERT_EQUAL_FATAL(world_open(&options, &s->w), 0);
    s->w->nodes[0].budget_max = s->w->nodes[1].budget_max = 256;
    for (uint32_t i = 0; i < SENDERS; i++)
        s->senders[i].client = (uint32_t)world_client_open(s->w, 0, i, 1);
    first = world_client_open(s->w, 1, SENDERS, 2);
    for (uint32_t i = 1; i < FLOWS_MANY / 2 + 1; i++)
        world_client_open(s->w, 1, SENDERS + i, 2);
    CU_ASSERT_FATAL(world_settle(s->w, 10000));
    sender_bind(s, &s->senders[ONE], 0, (uint32_t)first, 0);
    sender_bind(s, &s->senders[LONE], 0, (uint32_t)first, 1);
    for (uint32_t i = 0; i < FLOWS_MANY; i++)
        sender_bind(s, &s->senders[MANY], i, (uint32_t)first + 1 + i / 2, i % 2);
}

static void scene_close(struct scene *s)
{
    world_leave(s->w);
    if (s->w->failed)
        printf("\n  %s\n", s->w->failure);
    CU_ASSERT_FALSE(s->w->failed);
    world_close(s->w);
}

/* Counts puts that have arrived; a put's rid is its length. */
static void take_events(struct scene *s)
{
    struct pwc_event event;

    for (uint32_t i = 0; i < SENDERS; i++) {
        struct sender *sender = &s->senders[i];
        struct world_context *own = &s->w->clients[sender->client].contexts[0];

        while (own->channel_open && channel_probe(&own->channel, PWC_ANY, 0, &event) == 1)
            CU_ASSERT(event.status == 0 || !s->w->clients[sender->client].live);
        for (uint32_t k = 0; k < sender->flows; k++) {
            struct world_context *x =
                &s->w->clients[sender->targets[k].client].contexts[sender->targets[k].context];

            while (!(sender->deaf & 1u << k) && x->channel_open &&
                   channel_probe(&x->channel, PWC_ANY, 0, &event) == 1) {
                uint64_t cost = cost_of(sender->sizes, (uint32_t)event.id);

                sender->arrived++;
                sender->got += cost;
                sender->per_flow[k] += cost;
            }
        }
    }
}

static bool scene_round(struct scene *s)
{
    bool more = world_round(s->w);

    take_events(s);
    return more;
}

static bool put(struct scene *s, struct sender *sender, uint32_t flow, uint32_t length)
{
    const struct world_client *c = &s->w->clients[sender->client];
    struct submit_record record = {.kind = SUBMIT_PUT,
                                   .flags = sender->sizes->beside ? 0 : SUBMIT_INLINE,
                                   .remote = sender->remotes[flow],
                                   .length = length,
                                   .rid = length,
                                   .segment = c->segments[WORLD_MAIN].handle};

    if (world_submit(s->w, sender->client, 0, &record, NULL, NULL, c->contexts[0].memory) < 0)
        return false;
    sender->submitted++;
    sender->bytes += cost_of(sender->sizes, length);
    return true;
}

/* Submits puts until `bytes` are queued, sixty-four to a flow at a time, while the link is cut. */
static void queue_up(struct scene *s, struct sender *sender, uint64_t bytes)
{
    uint32_t rounds = 0;

    for (uint64_t i = 0; sender->bytes < bytes; i++) {
        uint32_t flow = (uint32_t)(i / 64 % sender->flows);

        while (!put(s, sender, flow, length_of(sender->sizes, i)) && rounds++ < ROUNDS_MAX)
            scene_round(s);
    }
    while (!world_taken(s->w, sender->client, 0) && rounds++ < ROUNDS_MAX)
        scene_round(s);
    CU_ASSERT_FATAL(rounds < ROUNDS_MAX);
}

/* Makes rounds until both clients together have got this many bytes, or until both have ended. */
static void run_until(struct scene *s, uint64_t bytes)
{
    uint32_t rounds = 0;

    while (s->senders[ONE].got + s->senders[MANY].got < bytes && rounds++ < ROUNDS_MAX)
        scene_round(s);
    CU_ASSERT_FATAL(rounds < ROUNDS_MAX);
}

static void run_out(struct scene *s, struct sender *sender)
{
    uint32_t rounds = 0;

    while (sender->arrived < sender->submitted && rounds++ < ROUNDS_MAX)
        scene_round(s);
    CU_ASSERT_EQUAL(sender->arrived, sender->submitted);
    CU_ASSERT_EQUAL(sender->got, sender->bytes);
}

static void begin(struct scene *s, uint64_t seed, uint32_t ledger, const struct sizes *one,
                  const struct sizes *many)
{
    static const struct sizes eight = {.lengths = {8}};

    scene_open(s, seed, ledger, 8192);
    s->senders[ONE].sizes = one;
    s->senders[MANY].sizes = many;
    s->senders[LONE].sizes = &eight;
    world_link_cut(s->w, 0, 1);
    queue_up(s, &s->senders[ONE], QUEUED);
    queue_up(s, &s->senders[MANY], QUEUED);
    world_link_restore(s->w, 0, 1);
}

/* Checks that each of the two differs by at most this many percent from what is due to it. */
static void check_same(const char *what, uint64_t a, uint64_t b)
{
    uint64_t apart = a > b ? a - b : b - a;

    if (apart * 200 > (a + b) * SHARE_PERCENT)
        printf("\n  %s: %llu and %llu bytes\n", what, (unsigned long long)a, (unsigned long long)b);
    CU_ASSERT(apart * 200 <= (a + b) * SHARE_PERCENT);
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void test_shares(void)
{
    static const struct {
        const char *what;
        uint32_t ledger;
        struct sizes one, many;
    } rows[] = {
        {"8 bytes", LEDGER, PACKED(8), PACKED(8)},
        {"4 KiB", LEDGER, PACKED(4096), PACKED(4096)},
        {"mixed", LEDGER, PACKED(8, 4096, 300, 64), PACKED(8, 4096, 300, 64)},
        {"mixed, long", LEDGER_LONG, PACKED(8, 4096, 300, 64), PACKED(8, 4096, 300, 64)},
        {"300 bytes and 4 KiB", LEDGER_LONG, PACKED(300), PACKED(4096)},
        {"4 KiB and 300 bytes", LEDGER_LONG, PACKED(4096), PACKED(300)},
        {"8 KiB beside", LEDGER, BESIDE(8192), BESIDE(8192)},
        {"8 KiB beside and 300 bytes", LEDGER, BESIDE(8192), PACKED(300)},
        {"300 bytes and 8 KiB beside", LEDGER, PACKED(300), BESIDE(8192)},
        {"5000 bytes beside and 300 bytes", LEDGER, BESIDE(5000), PACKED(300)},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint64_t one, many;
        struct scene s;

        begin(&s, 7 + i, rows[i].ledger, &rows[i].one, &rows[i].many);
        run_until(&s, QUEUED / 4); /* either may have had the first turn of the link */
        one = s.senders[ONE].got;
        many = s.senders[MANY].got;
        run_until(&s, QUEUED);
        check_same(rows[i].what, s.senders[ONE].got - one, s.senders[MANY].got - many);
        run_out(&s, &s.senders[ONE]);
        run_out(&s, &s.senders[MANY]);
        scene_close(&s);
    }
}

/* Guards that a client's flows take turns within its share. */
static void test_flows_of_one(void)
{
    static const struct sizes sizes = {.lengths = {300}};
    struct scene s;

    begin(&s, 3, LEDGER, &sizes, &sizes);
    run_until(&s, 2 * QUEUED * 3 / 4);
    for (uint32_t k = 0; k < FLOWS_MANY; k++)
        CU_ASSERT(s.senders[MANY].per_flow[k] + 2 * TURN_BYTES >= s.senders[MANY].got / FLOWS_MANY);
    scene_close(&s);
}

/* Counts the entries of a client's open flows that have been staged so far. */
static uint64_t left_origin(const struct scene *s, uint32_t client)
{
    return peek_staged_of(s->w->nodes[0].engine, s->w->clients[client].handle);
}

/* Guards that a client waits for at most one turn of each of the others, plus what these had
 * overdrawn; one more turn may follow in the same step. */
static void test_a_lone_message(void)
{
    static const struct {
        struct sizes sizes;
        uint64_t entry; /* the most bytes that leave for each entry that an operation takes in its
                           flow */
    } rows[] = {
        {PACKED(8), sizeof(struct op)}, {PACKED(4096), sizeof(struct op)}, {BESIDE(8192), 8192}};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct sizes *sizes = &rows[i].sizes;
        const uint64_t bound = 3 * (TURN_BYTES * 3 / 2 + sizes->lengths[0]);
        struct scene s;
        struct sender *lone;

        begin(&s, 5 + i, LEDGER, sizes, sizes);
        lone = &s.senders[LONE];
        run_until(&s, QUEUED / 2);
        /* A step takes a turn or two, so that little of what follows the message is counted. */
        s.w->nodes[0].budget_max = 1;
        for (uint32_t n = 1; n <= 20; n++) {
            uint64_t before = left_origin(&s, s.senders[ONE].client) +
                              left_origin(&s, s.senders[MANY].client),
                     own = left_origin(&s, lone->client), passed;

            CU_ASSERT(put(&s, lone, 0, 8));
            for (uint32_t r = 0; left_origin(&s, lone->client) == own && r < ROUNDS_MAX; r++)
                scene_round(&s);
            passed = (left_origin(&s, s.senders[ONE].client) +
                      left_origin(&s, s.senders[MANY].client) - before) *
                     rows[i].entry;
            if (passed > bound)
                printf("\n  %u: %llu bytes before a lone message\n", sizes->lengths[0],
                       (unsigned long long)passed);
            CU_ASSERT(passed <= bound);
            run_out(&s, lone);
        }
        scene_close(&s);
    }
}

/* Guards the end of the client whose turn it is: the others continue, and nothing is left of it. */
static void test_an_end_in_the_middle(void)
{
    static const struct sizes sizes = {.lengths = {8, 4096, 300}};

    for (uint64_t seed = 1; seed <= 20; seed++) {
        uint32_t ends = seed % 2 ? MANY : ONE, stays = ends == MANY ? ONE : MANY;
        struct scene s;

        begin(&s, seed, LEDGER, &sizes, &sizes);
        run_until(&s, QUEUED / 4 + seed * 1000);
        world_client_close(s.w, s.senders[ends].client);
        run_out(&s, &s.senders[stays]);
        CU_ASSERT(s.senders[ends].arrived < s.senders[ends].submitted);
        scene_close(&s);
    }
}

/* Guards that while flows are held, because their targets take no events, the other flows get the
 * whole share. */
static void test_held_flows(void)
{
    static const struct sizes sizes = {.lengths = {300}};
    struct scene s;

    begin(&s, 11, LEDGER, &sizes, &sizes);
    s.senders[MANY].deaf = 0x0fff;
    run_until(&s, QUEUED / 2);
    for (uint32_t k = 0; k < 12; k++)
        CU_ASSERT_EQUAL(s.senders[MANY].per_flow[k], 0);
    /* These counts leave out bytes in the rings and spills of targets that take no events. */
    CU_ASSERT(s.senders[MANY].got > 0 && s.senders[ONE].got > 0);
    s.senders[MANY].deaf = 0;
    run_out(&s, &s.senders[MANY]);
    run_out(&s, &s.senders[ONE]);
    scene_close(&s);
}

/* Guards that when two clients queue as much as they may towards a node that is away, a third can
 * still submit. */
static void test_room_for_a_third(void)
{
    static const struct sizes sizes[] = {PACKED(300), PACKED(8)};
    struct scene s;
    uint32_t rounds = 0;

    scene_open(&s, 13, LEDGER, 512);
    for (uint32_t i = 0; i < SENDERS; i++)
        s.senders[i].sizes = &sizes[i == LONE];
    world_link_cut(s.w, 0, 1);
    for (uint64_t i = 0; i < 400000; i++)
        if (!put(&s, &s.senders[i % 2 ? MANY : ONE], i % 2 ? i / 2 % FLOWS_MANY : 0, 300))
            scene_round(&s);
    /* The two clients have all that they may have: their rings are full, and stay so. */
    CU_ASSERT_FALSE(world_taken(s.w, s.senders[ONE].client, 0));
    CU_ASSERT_FALSE(world_taken(s.w, s.senders[MANY].client, 0));
    for (uint32_t i = 0; i < 100; i++)
        CU_ASSERT(put(&s, &s.senders[LONE], 0, 8));
    while (!world_taken(s.w, s.senders[LONE].client, 0) && rounds++ < 1000)
        scene_round(&s);
    CU_ASSERT_TRUE(world_taken(s.w, s.senders[LONE].client, 0));
    world_link_restore(s.w, 0, 1);
    for (uint32_t i = 0; i < SENDERS; i++)
        run_out(&s, &s.senders[i]);
    scene_close(&s);
}

/* Bytes of a client's submissions that the engine has not taken. */
static uint64_t untaken(const struct world *w, uint32_t client)
{
    const struct session_shared *shared = w->clients[client].contexts[0].base;

    return shared->submit.tail - shared->submit.head;
}

/* Guards that a step takes up to four budgets of submissions from each client, and thirty-two from
 * all, and that the next step continues with the clients that had no turn. */
static void test_steps_of_a_crowd(void)
{
    enum { CROWD = 12, PUTS = 64, OF_EACH = 4, OF_ALL = 32 };
    static const struct sizes sizes = PACKED(8);
    const struct world_options options = {
        .seed = 17,
        .nodes = 2,
        .limits = {.clients_max = CROWD + 1, .sessions_max = CROWD + 1, .flows_max = CROWD + 8},
        .sim = {.ordered_write_max = UINT64_MAX},
    };
    struct scene s = {0};
    struct sender crowd[CROWD] = {0};
    uint64_t record;

    CU_ASSERT_EQUAL_FATAL(world_open(&options, &s.w), 0);
    for (uint32_t i = 0; i < CROWD; i++)
        crowd[i].client = (uint32_t)world_client_open(s.w, 0, i, 1);
    uint32_t target = (uint32_t)world_client_open(s.w, 1, CROWD, 1);
    CU_ASSERT_FATAL(world_settle(s.w, 10000));
    for (uint32_t i = 0; i < CROWD; i++) {
        crowd[i].sizes = &sizes;
        sender_bind(&s, &crowd[i], 0, target, 0);
    }
    world_link_cut(s.w, 0, 1);
    for (uint32_t i = 0; i < CROWD * PUTS; i++)
        CU_ASSERT_FATAL(put(&s, &crowd[i % CROWD], 0, 8));
    record = untaken(s.w, crowd[0].client) / PUTS;
    for (uint32_t step = 1; step <= 2 * PUTS / OF_EACH; step++) {
        uint64_t deadline, least = UINT64_MAX, most = 0, all = 0;

        (void)engine_step(s.w->nodes[0].engine, sim_now(s.w->sim), 1, &deadline);
        for (uint32_t i = 0; i < CROWD; i++) {
            uint64_t taken = PUTS - untaken(s.w, crowd[i].client) / record;

            least = taken < least ? taken : least;
            most = taken > most ? taken : most;
            all += taken;
        }
        CU_ASSERT_EQUAL(all, step * OF_ALL < CROWD * PUTS ? step * OF_ALL : CROWD * PUTS);
        CU_ASSERT(most - least <= OF_EACH);
    }
    world_link_restore(s.w, 0, 1);
    CU_ASSERT(world_settle(s.w, 100000));
    scene_close(&s);
}

/* ---- bursts ---------------------------------------------------------------------------------- */

/* Bytes of records that have been staged towards node 1 and that it has not consumed. */
static uint64_t on_the_way(const struct scene *s)
{
    return peek_peer(s->w->nodes[0].engine, 1).staged -
           peek_peer(s->w->nodes[1].engine, 0).consumed;
}

/* The most bytes that two bursts of records of this length have, and a few other records. */
static uint64_t two_bursts(uint32_t length)
{
    uint64_t record = sizeof(struct wire_put) + abi_pad8(length);

    return 2 * (BURST_UNITS / (BURST_RECORD + record / BURST_BYTES) + 1) * record + 1024;
}

/* How often clients of node 0 have paused. */
static uint64_t pauses(const struct scene *s)
{
    struct counters_peer row = {0};
    uint32_t from = 1;

    CU_ASSERT_EQUAL_FATAL(engine_view_peers(s->w->nodes[0].engine, &from, &row, 1), 1);
    return row.paused;
}

/* Sends a lone message, and waits until it has arrived. Returns the most bytes that were on their
 * way meanwhile. */
static uint64_t lone_message(struct scene *s)
{
    struct sender *lone = &s->senders[LONE];
    uint64_t most = 0;

    CU_ASSERT(put(s, lone, 0, 8));
    for (uint32_t r = 0; lone->arrived < lone->submitted && r < ROUNDS_MAX; r++) {
        uint64_t now = on_the_way(s);

        most = now > most ? now : most;
        scene_round(s);
    }
    CU_ASSERT_EQUAL(lone->arrived, lone->submitted);
    return most;
}

/* A scene in which the first `busy` senders have queued puts of one length. */
static void begin_busy(struct scene *s, uint64_t seed, const struct sizes *sizes, uint32_t busy)
{
    static const struct sizes eight = {.lengths = {8}};

    scene_open(s, seed, LEDGER_LONG, 8192);
    for (uint32_t i = 0; i < SENDERS; i++)
        s->senders[i].sizes = i == LONE ? &eight : sizes;
    world_link_cut(s->w, 0, 1);
    for (uint32_t i = 0; i < busy; i++)
        queue_up(s, &s->senders[i], QUEUED);
    world_link_restore(s->w, 0, 1);
}

/* Guards that lone messages find at most two bursts of a client that sends much on the way, once
 * they share the link; and that there is more on the way before. */
static void test_bursts(void)
{
    static const struct sizes rows[] = {PACKED(300), PACKED(1024), PACKED(4096)};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint64_t bound = two_bursts(rows[i].lengths[0]), most = 0;
        struct scene s;

        begin_busy(&s, 21 + i, &rows[i], 1);
        for (uint32_t r = 0; s.senders[ONE].got < QUEUED / 4 && r < ROUNDS_MAX; r++) {
            most = on_the_way(&s) > most ? on_the_way(&s) : most;
            scene_round(&s);
        }
        CU_ASSERT(most > bound);
        CU_ASSERT_EQUAL(pauses(&s), 0);
        (void)lone_message(&s); /* the others do not know of it yet */
        for (uint32_t n = 0; n < 20; n++) {
            uint64_t found = lone_message(&s);

            if (found > bound)
                printf("\n  %u: %llu bytes on the way\n", rows[i].lengths[0],
                       (unsigned long long)found);
            CU_ASSERT(found <= bound);
        }
        CU_ASSERT(pauses(&s) > 0);
        run_out(&s, &s.senders[ONE]);
        scene_close(&s);
    }
}

/* Guards that a client that has sent much, and then sends lone messages, counts as one that sends
 * little. */
static void test_much_before(void)
{
    static const struct sizes sizes = PACKED(1024);
    struct scene s;

    begin_busy(&s, 41, &sizes, 1);
    s.senders[LONE].sizes = &sizes;
    world_link_cut(s.w, 0, 1);
    queue_up(&s, &s.senders[LONE], 2 * SPARSE_OF_UNITS);
    world_link_restore(s.w, 0, 1);
    run_out(&s, &s.senders[LONE]);
    run_until(&s, QUEUED * 3 / 4);
    (void)lone_message(&s);
    CU_ASSERT(lone_message(&s) <= two_bursts(1024));
    run_out(&s, &s.senders[ONE]);
    scene_close(&s);
}

/* Submits a shape of 1024 elements of 32 bytes, in records of 128. */
static void put_shape(struct scene *s, struct sender *sender)
{
    enum { RECORDS = 8, ELEMENTS = 128, BYTES = 32 };
    const struct world_client *c = &s->w->clients[sender->client];

    for (uint32_t i = 1; i <= RECORDS; i++) {
        const struct submit_strided elements = {
            .local_stride = BYTES, .remote_stride = BYTES, .element = BYTES, .count = ELEMENTS};
        const struct submit_record record = {
            .kind = SUBMIT_STRIDED,
            .code = SUBMIT_PUT,
            .flags = SUBMIT_INLINE | (i < RECORDS ? SUBMIT_MORE | SUBMIT_NO_RCE : 0),
            .remote = sender->remotes[0],
            .total = (i < RECORDS ? 1 : RECORDS) * ELEMENTS * BYTES,
            .length = sizeof(elements),
            .segment = c->segments[WORLD_MAIN].handle};

        CU_ASSERT_EQUAL(world_submit(s->w, sender->client, 0, &record, NULL, NULL, &elements), 0);
    }
    sender->submitted++;
}

/* Submits a vector of 256 pieces of 5 bytes in one record. */
static bool put_pieces(struct scene *s, struct sender *sender)
{
    enum { PIECES = 256, BYTES = 5 };
    struct {
        struct vector_piece head;
        uint8_t bytes[8];
    } block[PIECES] = {0};
    const struct submit_record record = {.kind = SUBMIT_VECTOR,
                                         .code = SUBMIT_PUT,
                                         .flags = SUBMIT_INLINE,
                                         .remote = sender->remotes[0],
                                         .total = PIECES * BYTES,
                                         .length = sizeof(block)};

    for (uint64_t i = 0; i < PIECES; i++)
        block[i].head.place = i * 8 << VECTOR_LENGTH_BITS | BYTES;
    if (world_submit(s->w, sender->client, 0, &record, NULL, NULL, block) < 0)
        return false;
    sender->submitted++;
    return true;
}

/* Guards that short pieces count what they cost the target: one record of them is a burst. */
static void test_pieces_in_bursts(void)
{
    static const struct sizes sizes = PACKED(8);
    const uint64_t record = sizeof(struct wire_vector) + 256 * 16;
    uint32_t rounds = 0;
    struct scene s;

    begin_busy(&s, 61, &sizes, 0);
    world_link_cut(s.w, 0, 1);
    for (uint32_t i = 0; i < 200; i++)
        while (!put_pieces(&s, &s.senders[ONE]) && rounds++ < ROUNDS_MAX)
            scene_round(&s);
    world_link_restore(s.w, 0, 1);
    while (s.senders[ONE].arrived < 20 && rounds++ < ROUNDS_MAX)
        scene_round(&s);
    (void)lone_message(&s);
    for (uint32_t n = 0; n < 20; n++)
        CU_ASSERT(lone_message(&s) <= 2 * record + 1024);
    CU_ASSERT(s.senders[ONE].arrived < s.senders[ONE].submitted);
    scene_close(&s);
}

/* Guards that a client which pauses in the middle of a shape does not wait for an ACK that may come
 * late. */
static void test_a_shape_in_bursts(void)
{
    static const struct sizes sizes = PACKED(8);
    struct sender *one;
    struct scene s;

    begin_busy(&s, 51, &sizes, 0);
    one = &s.senders[ONE];
    for (uint32_t i = 0; i < 5; i++) {
        uint64_t begun;

        (void)lone_message(&s);
        begun = sim_now(s.w->sim);
        put_shape(&s, one);
        for (uint32_t r = 0; one->arrived < one->submitted && r < ROUNDS_MAX; r++)
            scene_round(&s);
        CU_ASSERT_EQUAL(one->arrived, one->submitted);
        CU_ASSERT(sim_now(s.w->sim) - begun < 500000);
    }
    CU_ASSERT(pauses(&s) > 0);
    scene_close(&s);
}

/* Guards that clients that both send much do not pause. */
static void test_no_bursts(void)
{
    static const struct sizes sizes = PACKED(1024);
    uint64_t bound = two_bursts(1024), most = 0;
    struct scene s;

    begin_busy(&s, 31, &sizes, 2);
    for (uint32_t r = 0; s.senders[ONE].arrived < s.senders[ONE].submitted && r < ROUNDS_MAX; r++) {
        most = on_the_way(&s) > most ? on_the_way(&s) : most;
        scene_round(&s);
    }
    CU_ASSERT(most > 2 * bound);
    CU_ASSERT_EQUAL(pauses(&s), 0);
    run_out(&s, &s.senders[MANY]);
    scene_close(&s);
}

/* Guards clients in a pause: the link breaks, or the client ends, and the others continue. */
static void test_ends_in_a_pause(void)
{
    static const struct sizes sizes = PACKED(1024);

    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct scene s;

        begin_busy(&s, seed, &sizes, 2);
        for (uint64_t n = 0; n < 2 + seed % 3; n++)
            (void)lone_message(&s);
        if (seed % 2) {
            world_link_cut(s.w, 0, 1);
            for (uint64_t r = 0; r < seed; r++)
                scene_round(&s);
            world_link_restore(s.w, 0, 1);
            run_out(&s, &s.senders[ONE]);
        } else {
            world_client_close(s.w, s.senders[ONE].client);
        }
        (void)lone_message(&s);
        run_out(&s, &s.senders[MANY]);
        scene_close(&s);
    }
}

int main(void)
{
    CU_TestInfo tests[] = {{"one flow and sixteen: the same bytes", test_shares},
                           {"a client's flows take turns", test_flows_of_one},
                           {"a lone message passes what waits", test_a_lone_message},
                           {"a client ends in its turn", test_an_end_in_the_middle},
                           {"held flows leave their share", test_held_flows},
                           {"a third finds room to submit", test_room_for_a_third},
                           {"steps of a crowd", test_steps_of_a_crowd},
                           {"lone messages pass all but two bursts", test_bursts},
                           {"one that has sent much before", test_much_before},
                           {"a shape in bursts", test_a_shape_in_bursts},
                           {"short pieces in bursts", test_pieces_in_bursts},
                           {"clients that send much do not pause", test_no_bursts},
                           {"ends in a pause", test_ends_in_a_pause},
                           CU_TEST_INFO_NULL};

    return suite_run("turns", tests);
}
