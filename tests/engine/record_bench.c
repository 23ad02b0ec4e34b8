/* An engine whose peer is the test (record_bench.h). Thread: one. */
#include "record_bench.h"

#include <CUnit/CUnit.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "wire_abi.h"

const struct session_sizes bench_rings = {BENCH_RING, BENCH_RING, BENCH_RING, BENCH_RING,
                                          BENCH_RING};

static uint64_t random_state = 88172645463325252u;

uint64_t bench_random(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

static void host_wake(void *context, uint32_t session, uint32_t mode)
{
    ((struct bench *)context)->woken++;
}

static void host_random(void *context, void *to, size_t size)
{
    for (size_t i = 0; i < size; i++)
        ((uint8_t *)to)[i] = (uint8_t)bench_random();
}

void bench_steps(struct bench *b, int n)
{
    struct engine_notice notice;
    uint64_t deadline;

    while (n-- > 0) {
        b->now += 10000;
        engine_step(b->engine, b->now, 64, &deadline);
        while (engine_notice(b->engine, &notice))
            if (notice.kind == ENGINE_PEER_BROKEN)
                b->broken = true;
    }
}

/* The link of an engine that we, node 1, have shaken hands with. */
int bench_link(struct bench *b)
{
    struct engine_offer ours = {.node = 1, .incarnation = 1, .state_id = 77, .ring_bytes = 16384};
    int r;

    bench_steps(b, 2);
    while ((r = engine_offer(b->engine, 1, &b->offer)) == -EAGAIN)
        bench_steps(b, 1);
    if (r < 0)
        return r;
    ours.peer_state_id = b->offer.peer_state_id == 77 ? b->offer.state_id : 0;
    ours.consumed = b->offer.peer_state_id == 77 ? b->position : 0;
    r = engine_peer_up(b->engine, 1, &ours);
    b->ring = (uint8_t *)(uintptr_t)b->offer.ring_address;
    b->run = 0;
    b->position = 0;
    b->broken = false;
    return r;
}

/* One run of `size` bytes as its bytes stand in `records`; position 0 of a new link's ring. */
void bench_send(struct bench *b, const void *records, uint32_t size)
{
    struct wire_record *first = (struct wire_record *)(b->ring + b->position);

    memcpy(first, records, size);
    first->run = size;
    still_push(&b->fabric,
               &(struct fabric_event){.kind = FABRIC_ARRIVED,
                                      .immediate = wire_immediate(WIRE_RUN, 1, b->run++)});
    b->position += size;
    bench_steps(b, 2);
}

void bench_free(struct bench *b)
{
    free(b->arena);
    free(b->memory);
    free(b->session);
    free(b->segment);
    free(b);
}

static void *zeroed(size_t size)
{
    void *at = aligned_alloc(4096, (size + 4095) / 4096 * 4096);

    return at ? memset(at, 0, size) : NULL;
}

/* Resolves the client's region for a flow of ours. */
void bench_bind(struct bench *b, uint32_t origin_flow)
{
    struct wire_bind bind = {.head = {.words = sizeof(bind) / 8, .kind = WIRE_BIND},
                             .flow = WIRE_NONE,
                             .origin_flow = origin_flow,
                             .origin = 1,
                             .has_key = 1,
                             .slot = b->key.slot,
                             .generation = b->key.generation,
                             .job = "j"};

    memcpy(bind.secret, b->key.secret, sizeof(bind.secret));
    bench_send(b, &bind, sizeof(bind));
}

/* An engine with one client, one context, one region and a flow from us to it. */
struct bench *bench_new(void)
{
    struct engine_client_info info = {.size = 2, .job = "j"};
    struct bench *b = calloc(1, sizeof(*b));

    still_open(&b->fabric);
    b->host = (struct engine_host){.context = b, .wake = host_wake, .random = host_random};
    b->config = (struct engine_config){.nodes = 2,
                                       .clients_max = 4,
                                       .sessions_max = 4,
                                       .segments_max = 4,
                                       .regions_max = 8,
                                       .remotes_max = 8,
                                       .flows_max = 8,
                                       .chunks_max = 32,
                                       .ledger_bytes = 1u << 20,
                                       .ledger_max = 65536};
    CU_ASSERT_EQUAL_FATAL(engine_config_check(&b->config), 0);
    b->arena = zeroed(engine_arena_bytes(&b->config));
    b->memory = zeroed(engine_private_bytes(&b->config));
    b->session = zeroed(session_bytes(&bench_rings));
    b->segment = zeroed(BENCH_SEGMENT);
    CU_ASSERT_EQUAL_FATAL(
        engine_open(&b->config, b->arena, b->memory, &b->fabric.base, &b->host, 1, &b->engine), 0);
    CU_ASSERT_EQUAL_FATAL(engine_client_open(b->engine, &info), 0);
    CU_ASSERT_EQUAL_FATAL(engine_session_open(b->engine, 0, 0, b->session, &bench_rings), 0);
    CU_ASSERT_EQUAL_FATAL(engine_segment_open(b->engine, 0, b->segment, BENCH_SEGMENT), 0);
    CU_ASSERT_EQUAL_FATAL(engine_region_open(b->engine, 0, 0, 0, 4096, 3, &b->key), 0);
    CU_ASSERT_EQUAL_FATAL(bench_link(b), 0);
    bench_bind(b, 5);
    CU_ASSERT_FALSE_FATAL(b->broken);
    b->inflow = 0; /* the first of this engine */
    return b;
}

uint64_t bench_events(const struct bench *b)
{
    return atomic_load(&((struct session_shared *)b->session)->remote.tail);
}
