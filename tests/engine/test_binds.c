/*
 * Binds, regions and withdrawals at their bounds: requests to the engine that cannot be granted,
 * notes of a peer about flows, remotes and regions that do not exist, tables that are full, and
 * memory that is missing, each at the point where it is met. One engine; the test is its control
 * thread and its peer (record_bench.h). One thread.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "tests/suite.h"
#include "daemon/engine/peer/bind.h"
#include "daemon/engine/engine.h"
#include "tests/engine/bench/linked_bench.h"
#include "tests/engine/bench/peek.h"
#include "proto/session_abi.h"
#include "proto/wire_abi.h"

#define PEER 1u /* node of the peer */

/* Opens a bench with a remote to the peer. */
static struct bench *bound_bench(void)
{
    struct bench *b = unbound_bench(false);

    bench_remote(b);
    CU_ASSERT_EQUAL_FATAL(peek_remote(b->engine, 0).state, REMOTE_READY);
    return b;
}

/* Leaves no limit on binds and pairs but the size of the tables. */
static void unlimited_binds(struct bench *b)
{
    struct engine_config *config = poke_config(b->engine);

    config->binds_client = config->binds_user = UINT32_MAX;
    config->pairs_client = config->pairs_user = UINT32_MAX;
}

/* Takes all memory for records. Returns how many chunks were free. */
static uint32_t take_memory(struct bench *b)
{
    return poke_memory(b->engine, 0);
}

static void give_memory(struct bench *b, uint32_t free)
{
    poke_memory(b->engine, free);
    bench_steps(b, 4);
}

static void send_region(struct bench *b, uint8_t kind, uint32_t slot, uint32_t generation)
{
    const struct wire_region record = {.head = {.words = sizeof(record) / 8, .kind = kind},
                                       .slot = slot,
                                       .generation = generation};

    bench_send(b, &record, sizeof(record));
}

static struct wire_bind bind_record(const struct bench *b)
{
    struct wire_bind bind = {.head = {.words = sizeof(bind) / 8, .kind = WIRE_BIND},
                             .flow = WIRE_NONE,
                             .origin_flow = 5,
                             .origin = 1,
                             .has_key = 1,
                             .slot = b->key.slot,
                             .generation = b->key.generation,
                             .job = "j"};

    memcpy(bind.secret, b->key.secret, sizeof(bind.secret));
    return bind;
}

static uint32_t inflows(const struct bench *b)
{
    return peek_census(b->engine).inflows;
}

static struct wire_bound last_answer(const struct bench *b)
{
    struct wire_bound answer;

    peek_last_note(b->engine, PEER, NOTES_OTHERS, &answer);
    CU_ASSERT_EQUAL_FATAL(answer.head.kind, WIRE_BOUND);
    return answer;
}

/* ---- commands of the control thread ---------------------------------------------------------- */

static void binds_that_cannot_be(void)
{
    static const struct {
        uint32_t session, node, key_node;
        int status;
    } rows[] = {{0, 1, 1, 0},
                {3, 1, 1, -EINVAL}, /* not open */
                {4, 1, 1, -EINVAL},
                {UINT32_MAX, 1, 1, -EINVAL},
                {0, 2, 2, -EHOSTUNREACH},
                {0, UINT32_MAX, 1, -EHOSTUNREACH},
                {0, 1, 0, -EKEYREJECTED},
                {0, 1, UINT32_MAX, -EKEYREJECTED}};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct bench *b = unbound_bench(false);
        const struct engine_key key = {.node = rows[i].key_node};

        CU_ASSERT_EQUAL(engine_bind(b->engine, rows[i].session, rows[i].node, 1, &key, 1),
                        rows[i].status);
        bench_free(b);
    }
}

static void binds_without_room(void)
{
    struct bench *b = unbound_bench(false);
    uint32_t free;

    unlimited_binds(b);
    free = take_memory(b);
    CU_ASSERT_EQUAL(engine_bind(b->engine, 0, PEER, 1, NULL, 1), -ENOBUFS);
    CU_ASSERT_EQUAL(peek_remote(b->engine, 0).state, REMOTE_FREE);
    give_memory(b, free);
    for (uint32_t i = 0; i < b->config.remotes_max; i++)
        CU_ASSERT_EQUAL(engine_bind(b->engine, 0, PEER, 1, NULL, 1), 0);
    CU_ASSERT_EQUAL(engine_bind(b->engine, 0, PEER, 1, NULL, 1), -ENOSPC);
    bench_free(b);
    /* Takes all flows that there may be, and leaves one remote free. */
    b = unbound_bench(false);
    unlimited_binds(b);
    poke_unused(b->engine, TABLE_FLOWS, 2);
    for (uint32_t peer = 1; peer <= 2; peer++)
        CU_ASSERT_EQUAL(engine_bind(b->engine, 0, PEER, peer, NULL, 1), 0);
    CU_ASSERT_EQUAL(engine_bind(b->engine, 0, PEER, 3, NULL, 1), -ENOSPC);
    CU_ASSERT_EQUAL(peek_remote(b->engine, 2).state, REMOTE_FREE);
    bench_free(b);
}

/* Guards that a bind which is under way when its context closes ends with an error, before the end
 * of the context is reported. */
static void binds_of_a_context_that_closes(void)
{
    enum { COOKIE = 77 };
    struct bench *b = unbound_bench(false);
    struct engine_notice notice;
    uint64_t deadline;
    int bound = 0, closed = 0;

    CU_ASSERT_EQUAL_FATAL(engine_bind(b->engine, 0, PEER, 1, NULL, COOKIE), 0);
    bench_ack(b);
    engine_session_close(b->engine, 0);
    for (int i = 0; i < 100 && closed == 0; i++) {
        b->now += 10000;
        engine_step(b->engine, b->now, 64, &deadline);
        while (engine_notice(b->engine, &notice)) {
            closed += notice.kind == ENGINE_SESSION_CLOSED;
            if (notice.kind != ENGINE_BOUND)
                continue;
            bound++;
            CU_ASSERT_EQUAL(notice.cookie, COOKIE);
            CU_ASSERT_EQUAL(notice.status, -ESHUTDOWN);
            CU_ASSERT_EQUAL(closed, 0);
        }
    }
    CU_ASSERT_EQUAL(closed, 1);
    CU_ASSERT_EQUAL(bound, 1);
    /* The answer of the peer comes later, and frees the remote without a second notice. */
    b->remote = UINT32_MAX;
    bench_bound(b, 0, 0, 0);
    CU_ASSERT_EQUAL(b->remote, UINT32_MAX);
    CU_ASSERT_FALSE(b->broken);
    bench_free(b);
}

static void unbinds(void)
{
    struct bench *b = bound_bench();
    const struct submit_record get = {
        .size = sizeof(get), .kind = SUBMIT_GET, .reserve = event_bytes(0), .length = 64};

    CU_ASSERT_EQUAL(engine_unbind(b->engine, 0, b->config.remotes_max), -EINVAL);
    CU_ASSERT_EQUAL(engine_unbind(b->engine, 0, 1), -EINVAL);
    CU_ASSERT_EQUAL(engine_unbind(b->engine, 1, 0), -EINVAL);
    b->fabric.holds = true; /* the get below keeps the remote in use for a while */
    bench_submit(b, &get);
    CU_ASSERT_EQUAL(engine_unbind(b->engine, 0, 0), 0);
    CU_ASSERT_EQUAL(engine_unbind(b->engine, 0, 0), -EINVAL);
    CU_ASSERT_EQUAL(peek_remote(b->engine, 0).state, REMOTE_READY);
    /* The region is withdrawn as well: the answer to that is due before the remote is free. */
    send_region(b, WIRE_REVOKE, 2, 9);
    CU_ASSERT_TRUE(peek_remote(b->engine, 0).revoke_due);
    poke_sweep(b->engine);
    bench_steps(b, 2);
    CU_ASSERT_EQUAL(peek_remote(b->engine, 0).state, REMOTE_REVOKED);
    still_release(&b->fabric);
    bench_steps(b, 2);
    bench_ack(b);
    CU_ASSERT_EQUAL(peek_remote(b->engine, 0).state, REMOTE_FREE);
    CU_ASSERT_TRUE(b->fabric.kinds & 1u << WIRE_REVOKED);
    bench_free(b);
}

static void regions_that_cannot_be(void)
{
    static const struct {
        uint32_t client, segment;
        uint64_t offset, length;
        unsigned rights;
        int status;
    } rows[] = {
        {0, 0, 0, 4096, 0, 0},
        {0, 0, BENCH_SEGMENT - 1, 1, 3, 0},
        {0, 0, 0, BENCH_SEGMENT, 3, 0},
        {1, 0, 0, 4096, 3, -EINVAL}, /* client is not live */
        {2, 0, 0, 4096, 3, -EINVAL}, /* another client's segment */
        {4, 0, 0, 4096, 3, -EINVAL},
        {UINT32_MAX, 0, 0, 4096, 3, -EINVAL},
        {0, 1, 0, 4096, 3, -EINVAL}, /* not open */
        {0, 4, 0, 4096, 3, -EINVAL},
        {0, UINT32_MAX, 0, 4096, 3, -EINVAL},
        {0, 0, 0, 0, 3, -EINVAL},
        {0, 0, 0, 4096, 4, -EINVAL},
        {0, 0, 0, 4096, UINT32_MAX, -EINVAL},
        {0, 0, BENCH_SEGMENT + 1, 1, 3, -ERANGE},
        {0, 0, UINT64_MAX, 1, 3, -ERANGE},
        {0, 0, 0, BENCH_SEGMENT + 1, 3, -ERANGE},
        {0, 0, 1, BENCH_SEGMENT, 3, -ERANGE},
        {0, 0, 1, UINT64_MAX, 3, -ERANGE},
        {0, 0, BENCH_SEGMENT, 1, 3, -ERANGE},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct engine_client_info info = {.rank = 1, .size = 3, .job = "j"};
        const struct engine_client_info other = {.uid = 7, .size = 1, .job = "k"};
        struct bench *b = unbound_bench(false);
        struct engine_key key;

        CU_ASSERT_EQUAL_FATAL(engine_client_open(b->engine, &info), 1);
        CU_ASSERT_EQUAL_FATAL(engine_client_open(b->engine, &other), 2);
        engine_client_close(b->engine, 1);
        bench_steps(b, 2);
        CU_ASSERT_EQUAL(engine_region_open(b->engine, rows[i].client, rows[i].segment,
                                           rows[i].offset, rows[i].length, rows[i].rights, &key),
                        rows[i].status);
        bench_free(b);
    }
}

static void regions_without_room(void)
{
    struct bench *b = unbound_bench(false);
    struct engine_key key;

    for (uint32_t i = 1; i < b->config.regions_max; i++)
        CU_ASSERT_EQUAL(engine_region_open(b->engine, 0, 0, 0, 8, 3, &key), 0);
    CU_ASSERT_EQUAL(engine_region_open(b->engine, 0, 0, 0, 8, 3, &key), -ENOSPC);
    bench_free(b);
}

/* ---- notes of a peer that asks --------------------------------------------------------------- */

/* Guards that a BIND may name the flow that exists already, and no other flow. */
static void binds_of_known_flows(void)
{
    enum target { THE_CLIENT, THE_OTHER_CONTEXT };
    static const struct {
        const char *what;
        uint32_t flow, origin_flow;
        enum target target;
        bool right;
    } rows[] = {
        {"its own", 1, 5, THE_CLIENT, true},
        {"of another node", 0, 0, THE_CLIENT, false},
        {"of another context", 1, 5, THE_OTHER_CONTEXT, false},
        {"by another number of its own", 1, 6, THE_CLIENT, false},
        {"one that has gone", 2, 7, THE_CLIENT, false},
        {"one that is on its way out", 3, 8, THE_CLIENT, false},
        {"none", 8, 5, THE_CLIENT, false},
        {"none at all", UINT32_MAX - 1, 5, THE_CLIENT, false},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct bench *b = unbound_bench(true); /* flow 0 is the client's own */
        struct session_sizes sizes = {RING, RING, RING, RING, RING};
        void *second = aligned_alloc(4096, (session_bytes(&sizes) + 4095) / 4096 * 4096);
        struct wire_bind bind = bind_record(b);
        uint32_t before;

        CU_ASSERT_PTR_NOT_NULL_FATAL(second);
        memset(second, 0, session_bytes(&sizes));
        CU_ASSERT_EQUAL_FATAL(engine_session_open(b->engine, 0, 1, second, &sizes, 0), 1);
        bench_bind(b, 5);
        bench_bind(b, 7);
        bench_bind(b, 8);
        bench_note(b, WIRE_CLOSE, 2, 0);
        poke_owed(b->engine, 3, 1); /* the client owes a reply */
        bench_note(b, WIRE_CLOSE, 3, 0);
        CU_ASSERT_EQUAL_FATAL(peek_inflow(b->engine, 2).state, INFLOW_FREE);
        CU_ASSERT_EQUAL_FATAL(peek_inflow(b->engine, 3).state, INFLOW_PARTING);
        before = inflows(b);
        bind.flow = rows[i].flow;
        bind.origin_flow = rows[i].origin_flow;
        bind.target = rows[i].target == THE_OTHER_CONTEXT ? UINT64_C(1) << 32 : 0;
        bench_send(b, &bind, sizeof(bind));
        CU_ASSERT_FALSE(b->broken);
        CU_ASSERT_EQUAL(inflows(b), before);
        if (last_answer(b).status != (rows[i].right ? 0 : -EHOSTUNREACH))
            printf("%s: %d\n", rows[i].what, last_answer(b).status);
        CU_ASSERT_EQUAL(last_answer(b).status, rows[i].right ? 0 : -EHOSTUNREACH);
        poke_owed(b->engine, 3, 0);
        bench_free(b);
        free(second);
    }
}

/* Guards the rights of a BIND: each field that names user, job, rank or key is tried with a value
 * of another client. */
static void binds_to_what_is_not_theirs(void)
{
    static const struct {
        const char *what;
        size_t at, bytes;
        uint64_t value;
        int status;
    } rows[] = {
#define FIELD(name) #name, offsetof(struct wire_bind, name), sizeof(((struct wire_bind *)0)->name)
        {FIELD(uid), 0, 0},
        {FIELD(uid), 1, -EHOSTUNREACH},
        {"job", offsetof(struct wire_bind, job), 1, 'k', -EHOSTUNREACH},
        {"job", offsetof(struct wire_bind, job) + 1, 1, 'k', -EHOSTUNREACH},
        {"job", offsetof(struct wire_bind, job), 1, 0, -EHOSTUNREACH},
        {FIELD(target), 1, -EKEYREJECTED}, /* another client's region */
        {FIELD(target), 2, -EHOSTUNREACH},
        {FIELD(target), UINT64_C(1) << 32, -EHOSTUNREACH},
        {FIELD(has_key), 0, 0},
        {FIELD(slot), 1, -EKEYREJECTED},
        {FIELD(slot), 8, -EKEYREJECTED},
        {FIELD(slot), UINT32_MAX, -EKEYREJECTED},
        {FIELD(generation), 0, -EKEYREJECTED},
        {FIELD(generation), 2, -EKEYREJECTED},
        {"secret", offsetof(struct wire_bind, secret), 1, 0, -EKEYREJECTED},
        {"secret", offsetof(struct wire_bind, secret) + 15, 1, 0, -EKEYREJECTED},
#undef FIELD
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct engine_client_info info = {.rank = 1, .size = 3, .job = "j"};
        const struct session_sizes sizes = {RING, RING, RING, RING, RING};
        void *second = calloc(1, session_bytes(&sizes));
        struct bench *b = unbound_bench(false);
        struct wire_bind bind = bind_record(b);

        CU_ASSERT_PTR_NOT_NULL_FATAL(second);
        CU_ASSERT_EQUAL_FATAL(engine_client_open(b->engine, &info), 1);
        CU_ASSERT_EQUAL_FATAL(engine_session_open(b->engine, 1, 0, second, &sizes, 0), 1);
        CU_ASSERT_EQUAL_FATAL(bind.generation, 1);
        CU_ASSERT_TRUE_FATAL(bind.secret[0] != 0 && bind.secret[15] != 0);
        memcpy((uint8_t *)&bind + rows[i].at, &rows[i].value, rows[i].bytes);
        bench_send(b, &bind, sizeof(bind));
        CU_ASSERT_FALSE(b->broken);
        if (last_answer(b).status != rows[i].status)
            printf("%s %llu: %d\n", rows[i].what, (unsigned long long)rows[i].value,
                   last_answer(b).status);
        CU_ASSERT_EQUAL(last_answer(b).status, rows[i].status);
        bench_free(b);
        free(second);
    }
}

/* Guards that a flow which is on its way out is not mistaken for the new flow of that number. */
static void binds_beside_one_that_parts(void)
{
    struct bench *b = unbound_bench(false);

    bench_bind(b, 5);
    bench_bind(b, 5); /* binds the same pair of contexts again, which makes no second inflow */
    CU_ASSERT_EQUAL(inflows(b), 1);
    poke_owed(b->engine, 0, 1);
    bench_note(b, WIRE_CLOSE, 0, 0);
    bench_bind(b, 5);
    CU_ASSERT_EQUAL(inflows(b), 2);
    CU_ASSERT_EQUAL(last_answer(b).flow, 1);
    poke_owed(b->engine, 0, 0);
    bench_free(b);
}

static void binds_into_full_tables(void)
{
    struct bench *b = unbound_bench(false);
    uint32_t free;

    unlimited_binds(b);
    for (uint32_t flow = 0; flow < b->config.flows_max; flow++)
        bench_bind(b, flow);
    CU_ASSERT_EQUAL(inflows(b), b->config.flows_max);
    CU_ASSERT_EQUAL(last_answer(b).status, 0);
    bench_bind(b, 99);
    CU_ASSERT_EQUAL(last_answer(b).status, -ENOSPC);
    CU_ASSERT_FALSE(b->broken);
    bench_free(b);
    /* The table of grants is full. */
    b = unbound_bench(false);
    unlimited_binds(b);
    poke_unused(b->engine, TABLE_GRANTS, 0);
    bench_bind(b, 5);
    CU_ASSERT_EQUAL(last_answer(b).status, -ENOSPC);
    bench_free(b);
    /* Without memory for its answer, the request waits as a whole. */
    b = unbound_bench(false);
    bench_steps(b, 2);
    free = take_memory(b);
    bench_bind(b, 5);
    CU_ASSERT_EQUAL(inflows(b), 0);
    CU_ASSERT_FALSE(peek_grant_given(b->engine));
    give_memory(b, free);
    CU_ASSERT_EQUAL(inflows(b), 1);
    CU_ASSERT_FALSE(b->broken);
    bench_free(b);
}

/* Guards that the answer to a bind has the error with which the region's memory could not be
 * registered. */
static void binds_to_what_is_not_registered(void)
{
    static uint8_t memory[4096];
    struct bench *b = unbound_bench(false);
    struct engine_key key;
    struct wire_bind bind;

    b->fabric.add_status = -EIO;
    CU_ASSERT_EQUAL_FATAL(engine_segment_open(b->engine, 0, memory, sizeof(memory)), 1);
    CU_ASSERT_EQUAL_FATAL(engine_region_open(b->engine, 0, 1, 0, 8, 3, &key), 0);
    bind = bind_record(b);
    bind.slot = key.slot;
    bind.generation = key.generation;
    memcpy(bind.secret, key.secret, sizeof(bind.secret));
    bench_send(b, &bind, sizeof(bind));
    CU_ASSERT_EQUAL(last_answer(b).status, -EIO);
    bench_free(b);
    b = unbound_bench(false);
    CU_ASSERT_EQUAL_FATAL(engine_segment_open(b->engine, 0, memory, sizeof(memory)), 1);
    CU_ASSERT_EQUAL_FATAL(engine_region_open(b->engine, 0, 1, 0, 8, 3, &key), 0);
    bind.slot = key.slot;
    bind.generation = key.generation;
    memcpy(bind.secret, key.secret, sizeof(bind.secret));
    bench_steps(b, 2);
    poke_unregistered(b->engine, 1); /* memory that is not registered yet */
    bench_send(b, &bind, sizeof(bind));
    CU_ASSERT_EQUAL(last_answer(b).status, -EAGAIN);
    bench_free(b);
}

/* ---- answers of a peer ----------------------------------------------------------------------- */

static void answers_to_nothing(void)
{
    struct bench *b = unbound_bench(true);
    struct engine *e = b->engine;
    uint32_t own = b->remote, free;

    /* An answer for a remote that has asked another node. */
    CU_ASSERT_EQUAL_FATAL(engine_bind(e, 0, 0, 0, &b->key, 1), 0);
    for (uint32_t i = 0; i < b->config.remotes_max; i++)
        if (i != own)
            bench_bound(b, i, -EKEYREJECTED, 0);
    bench_bound(b, own, -EKEYREJECTED, 0);
    CU_ASSERT_FALSE(b->broken);
    CU_ASSERT_EQUAL(peek_remote(e, own).state, REMOTE_READY);
    bench_free(b);
    b = unbound_bench(true);
    CU_ASSERT_EQUAL_FATAL(engine_bind(b->engine, 0, 0, 0, &b->key, 1), 0);
    own = b->remote + 1;
    CU_ASSERT_EQUAL_FATAL(peek_remote(b->engine, own).asked, 1);
    {
        const struct wire_bound bound = {.head = {.words = sizeof(bound) / 8, .kind = WIRE_BOUND},
                                         .remote = own,
                                         .status = -EKEYREJECTED,
                                         .flow = WIRE_NONE};
        const struct ledger_record record = {bound.head, (const uint8_t *)&bound, sizeof(bound)};

        CU_ASSERT_EQUAL(bind_answered(b->engine, PEER, &record), 0);
        CU_ASSERT_EQUAL(peek_remote(b->engine, own).asked, 1);
    }
    bench_free(b);
    /* The answer is "not yet", and there is no memory to ask again. */
    b = unbound_bench(false);
    CU_ASSERT_EQUAL_FATAL(engine_bind(b->engine, 0, PEER, 1, NULL, 1), 0);
    bench_ack(b);
    free = take_memory(b);
    bench_bound(b, 0, -EAGAIN, 0);
    CU_ASSERT_EQUAL(peek_remote(b->engine, 0).asked, 1);
    give_memory(b, free);
    CU_ASSERT_EQUAL(peek_remote(b->engine, 0).asked, 1);
    CU_ASSERT_EQUAL(peek_remote(b->engine, 0).state, REMOTE_BINDING);
    bench_bound(b, 0, 0, 3);
    CU_ASSERT_EQUAL(peek_remote(b->engine, 0).state, REMOTE_READY);
    bench_free(b);
}

/* Guards that when the owner's registrations are new, remotes with a key are resolved again, or are
 * lost where there is no memory to ask. */
static void refreshes(void)
{
    struct bench *b = bound_bench();
    uint32_t free;

    CU_ASSERT_EQUAL_FATAL(engine_bind(b->engine, 0, PEER, 1, NULL, 1), 0);
    bench_bound(b, 1, 0, 0);
    bench_ack(b);
    free = take_memory(b);
    bind_refresh_node(b->engine, PEER);
    CU_ASSERT_EQUAL(peek_remote(b->engine, 0).state, REMOTE_REVOKED);
    CU_ASSERT_EQUAL(peek_remote(b->engine, 1).state, REMOTE_READY);
    give_memory(b, free);
    bench_free(b);
    b = bound_bench();
    bind_refresh_node(b->engine, PEER);
    CU_ASSERT_EQUAL(peek_remote(b->engine, 0).state, REMOTE_STALE);
    bench_bound(b, 0, 0, 3);
    CU_ASSERT_EQUAL(peek_remote(b->engine, 0).state, REMOTE_READY);
    bench_free(b);
}

/* ---- withdrawals ----------------------------------------------------------------------------- */

/* Guards that a withdrawal revokes only the remote with that key, of that generation, from that
 * node. */
static void withdrawals_of_others(void)
{
    static const struct {
        uint32_t slot, generation;
        bool mine;
    } rows[] = {{2, 9, true},  {2, 8, false}, {2, 10, false},
                {3, 9, false}, {0, 0, false}, {UINT32_MAX, UINT32_MAX, false}};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct bench *b = bound_bench();

        CU_ASSERT_EQUAL_FATAL(engine_bind(b->engine, 0, PEER, 1, NULL, 1), 0);
        bench_bound(b, 1, 0, 0); /* a remote without a key */
        send_region(b, WIRE_REVOKE, rows[i].slot, rows[i].generation);
        CU_ASSERT_EQUAL(peek_remote(b->engine, 0).state == REMOTE_REVOKED, rows[i].mine);
        CU_ASSERT_EQUAL(peek_remote(b->engine, 1).state, REMOTE_READY);
        bench_free(b);
    }
}

/* Guards that without memory a withdrawal is requested, and answered, later. */
static void withdrawals_without_memory(void)
{
    struct bench *b = unbound_bench(false);
    uint32_t free;

    bench_bind(b, 5);
    bench_ack(b);
    free = take_memory(b);
    CU_ASSERT_EQUAL(engine_region_close(b->engine, 0, b->key.slot, b->key.generation, 1), 0);
    bench_steps(b, 2);
    CU_ASSERT_FALSE(peek_grant_asked(b->engine));
    give_memory(b, free);
    CU_ASSERT_TRUE(peek_grant_asked(b->engine));
    bench_free(b);
    b = bound_bench();
    bench_ack(b);
    free = take_memory(b);
    send_region(b, WIRE_REVOKE, 2, 9);
    CU_ASSERT_EQUAL(b->fabric.kinds & 1u << WIRE_REVOKED, 0);
    give_memory(b, free);
    CU_ASSERT_TRUE(b->fabric.kinds & 1u << WIRE_REVOKED);
    bench_free(b);
}

/* Guards regions that are withdrawn while their remotes are in use: each answer waits until its own
 * remote is free, and for memory. */
static void withdrawals_of_what_is_in_use(void)
{
    static const struct engine_key keys[] = {
        {.node = PEER, .slot = 2, .generation = 9},
        {.node = PEER, .slot = 3, .generation = 9},
        {.node = PEER, .slot = 2, .generation = 10},
    };
    struct bench *b = unbound_bench(false);
    uint32_t free;

    for (uint32_t i = 0; i < 3; i++) {
        CU_ASSERT_EQUAL_FATAL(engine_bind(b->engine, 0, PEER, 1, &keys[i], 1), 0);
        bench_bound(b, i, 0, 3);
    }
    b->fabric.holds = true;
    for (uint32_t i = 0; i < 3; i++) {
        const struct submit_record get = {.size = sizeof(get),
                                          .kind = SUBMIT_GET,
                                          .reserve = event_bytes(0),
                                          .remote = i,
                                          .length = 64};

        bench_submit(b, &get);
        send_region(b, WIRE_REVOKE, keys[i].slot, keys[i].generation);
        CU_ASSERT_TRUE(peek_remote(b->engine, i).revoke_due);
    }
    bench_ack(b);
    CU_ASSERT_EQUAL(b->fabric.kinds & 1u << WIRE_REVOKED, 0);
    free = take_memory(b);
    still_release(&b->fabric);
    bench_steps(b, 2);
    CU_ASSERT_EQUAL(b->fabric.kinds & 1u << WIRE_REVOKED, 0);
    give_memory(b, free);
    for (uint32_t i = 0; i < 3; i++)
        CU_ASSERT_FALSE(peek_remote(b->engine, i).revoke_due);
    CU_ASSERT_TRUE(b->fabric.kinds & 1u << WIRE_REVOKED);
    bench_free(b);
}

/* Guards that a remote at another node, whose region has the same slot and generation, is not
 * affected by a withdrawal. */
static void withdrawals_of_two_nodes(void)
{
    struct bench *b = unbound_bench(true);
    const struct engine_key key = {
        .node = PEER, .slot = b->key.slot, .generation = b->key.generation};
    const struct submit_record get = {.size = sizeof(get),
                                      .kind = SUBMIT_GET,
                                      .remote = 1,
                                      .reserve = event_bytes(0),
                                      .length = 64};

    CU_ASSERT_EQUAL_FATAL(engine_bind(b->engine, 0, PEER, 1, &key, 1), 0);
    bench_bound(b, 1, 0, 3);
    b->fabric.holds = true;
    bench_submit(b, &get);
    send_region(b, WIRE_REVOKE, key.slot, key.generation);
    CU_ASSERT_TRUE(peek_remote(b->engine, 1).revoke_due);
    poke_revoke_due(b->engine, 0, true);
    still_release(&b->fabric);
    bench_steps(b, 2);
    CU_ASSERT_FALSE(peek_remote(b->engine, 1).revoke_due);
    CU_ASSERT_TRUE(peek_remote(b->engine, 0).revoke_due);
    poke_revoke_due(b->engine, 0, false);
    bench_free(b);
}

/* ---- a next process -------------------------------------------------------------------------- */

/* Guards that nothing is taken from a context whose memory was not passed on, and that the context
 * ends. */
static void sessions_that_nobody_attaches(void)
{
    struct bench *b = bound_bench();
    const struct submit_record put = {
        .size = sizeof(put), .kind = SUBMIT_PUT, .reserve = event_bytes(0)};

    still_open(&b->fabric);
    memset(b->memory, 0, engine_private_bytes(&b->config));
    CU_ASSERT_EQUAL_FATAL(
        engine_open(&b->config, b->arena, b->memory, &b->fabric.base, &b->host, 2, &b->engine), 0);
    CU_ASSERT_EQUAL_FATAL(peek_open_sessions(b->engine), 1);
    bench_submit(b, &put);
    bench_steps(b, 4);
    CU_ASSERT_EQUAL(atomic_load(&b->session->submit.head), 0);
    CU_ASSERT_EQUAL(peek_open_sessions(b->engine), 0);
    bench_free(b);
}

static int fence(void *context)
{
    return 0;
}

/* The next process opens the arena. Returns when its next action is due while it has nothing to do.
 */
static uint64_t due_when_idle(struct bench *b)
{
    uint64_t deadline = 0;

    still_open(&b->fabric);
    memset(b->memory, 0, engine_private_bytes(&b->config));
    CU_ASSERT_EQUAL_FATAL(
        engine_open(&b->config, b->arena, b->memory, &b->fabric.base, &b->host, 2, &b->engine), 0);
    for (int i = 0; i < 100; i++)
        (void)engine_step(b->engine, 2, 16, &deadline);
    return deadline;
}

/* Guards clients that do not fence because an earlier process fenced for them: if the next process
 * cannot, it does not rely on their bells alone, but looks at their rings from time to time. */
static void fences_that_are_gone(void)
{
    struct bench *b = bound_bench();

    CU_ASSERT(due_when_idle(b) > 2 + 1000000);
    b->host.fence = fence;
    CU_ASSERT(due_when_idle(b) > 2 + 1000000);
    b->host.fence = NULL;
    CU_ASSERT(due_when_idle(b) <= 2 + 1000000);
    bench_free(b);
}

int main(void)
{
    CU_TestInfo tests[] = {{"binds that cannot be", binds_that_cannot_be},
                           {"binds without room", binds_without_room},
                           {"binds of a context that closes", binds_of_a_context_that_closes},
                           {"unbinds", unbinds},
                           {"regions that cannot be", regions_that_cannot_be},
                           {"regions without room", regions_without_room},
                           {"binds of known flows", binds_of_known_flows},
                           {"binds to what is not theirs", binds_to_what_is_not_theirs},
                           {"binds beside one that parts", binds_beside_one_that_parts},
                           {"binds into full tables", binds_into_full_tables},
                           {"binds to what is not registered", binds_to_what_is_not_registered},
                           {"answers to nothing", answers_to_nothing},
                           {"refreshes", refreshes},
                           {"withdrawals of others", withdrawals_of_others},
                           {"withdrawals without memory", withdrawals_without_memory},
                           {"withdrawals of what is in use", withdrawals_of_what_is_in_use},
                           {"withdrawals of two nodes", withdrawals_of_two_nodes},
                           {"sessions that nobody attaches", sessions_that_nobody_attaches},
                           {"fences that are gone", fences_that_are_gone},
                           CU_TEST_INFO_NULL};

    return suite_run("binds", tests);
}
