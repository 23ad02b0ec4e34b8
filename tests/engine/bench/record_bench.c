/* Owns an engine whose peer is the test (record_bench.h). Thread: one. */
#include "tests/engine/bench/record_bench.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "daemon/fabric/loop.h"
#include "proto/wire_abi.h"
#include "tests/engine/bench/peek.h"

#define SELF       0u
#define OTHER      1u
#define OTHER_ID   77u    /* of its state */
#define OTHER_RING 16384u /* bytes of a ring, in a small bench */
#define STEPS      100
#define PAGE       4096u

uint64_t bench_random(struct bench *b)
{
    b->random ^= b->random << 13;
    b->random ^= b->random >> 7;
    b->random ^= b->random << 17;
    return b->random;
}

static void host_wake(void *context, uint32_t session, uint32_t mode)
{
    ((struct bench *)context)->woken++;
}

static void host_random(void *context, void *to, size_t size)
{
    for (size_t i = 0; i < size; i++)
        ((uint8_t *)to)[i] = (uint8_t)bench_random(context);
}

void bench_steps(struct bench *b, int n)
{
    struct engine_notice notice;
    uint64_t deadline;

    while (n-- > 0) {
        b->now += 10000;
        engine_step(b->engine, b->now, 64, &deadline);
        while (engine_notice(b->engine, &notice)) {
            if (notice.kind == ENGINE_PEER_BROKEN && notice.peer == OTHER)
                b->broken = true;
            if (notice.kind == ENGINE_WANT_PEER && notice.peer == OTHER)
                b->wanted++;
            if (notice.kind == ENGINE_QUARANTINED)
                b->quarantined = true;
            if (notice.kind == ENGINE_OFFLOAD_CLOSED)
                b->offloads_closed++;
            if (notice.kind == ENGINE_BOUND && notice.status == 0)
                b->remote = notice.handle;
        }
    }
}

/* ---- node 1 ---------------------------------------------------------------------------------- */

int bench_link(struct bench *b)
{
    struct engine_offer ours = {.peer = OTHER,
                                .incarnation = 1 + b->restarts,
                                .state_id = OTHER_ID,
                                .ring_bytes = b->config.ledger_start};
    int rc = -EAGAIN;

    bench_steps(b, 2);
    for (int i = 0; i < STEPS && rc == -EAGAIN; i++) {
        rc = engine_offer(b->engine, OTHER, &b->offer);
        if (rc == -EAGAIN)
            bench_steps(b, 1);
    }
    if (rc < 0)
        return rc;
    if (b->offer.peer_state_id == OTHER_ID) { /* the engine still remembers the test's side */
        ours.peer_state_id = b->offer.state_id;
        ours.consumed = b->position;
    }
    rc = engine_peer_up(b->engine, OTHER, &ours);
    b->ring = (uint8_t *)(uintptr_t)b->offer.ring_address;
    b->run = 0;
    b->position = 0;
    b->broken = false;
    return rc;
}

static uint64_t host_clock(void *context)
{
    struct bench *b = context;

    return b->clock += b->clock_tick;
}

static uint64_t host_switches(void *context)
{
    (void)context;
    return 0;
}

void bench_clock(struct bench *b)
{
    b->host.clock = host_clock;
    b->host.switches = host_switches;
}

bool bench_send(struct bench *b, const void *records, uint32_t size)
{
    if (!bench_send_unseen(b, records, size))
        return false;
    bench_steps(b, 2);
    return true;
}

bool bench_send_unseen(struct bench *b, const void *records, uint32_t size)
{
    uint8_t *at = b->ring + b->position;

    if (size < sizeof(struct wire_record) || size > b->offer.ring_bytes - b->position)
        return false;
    memcpy(at, records, size);
    ((struct wire_record *)(void *)at)->run = size;
    still_push(&b->fabric,
               &(struct fabric_event){.kind = FABRIC_ARRIVED,
                                      .immediate = wire_immediate(WIRE_RUN, OTHER, b->run++)});
    b->position += size;
    return true;
}

void bench_bind(struct bench *b, uint32_t origin_flow)
{
    struct wire_bind bind = {.head = {.words = sizeof(bind) / 8, .kind = WIRE_BIND},
                             .flow = WIRE_NONE,
                             .origin_flow = origin_flow,
                             .origin = 1,
                             .has_key = 1,
                             .slot = b->key.slot,
                             .generation = b->key.generation,
                             .job = BENCH_JOB};

    memcpy(bind.secret, b->key.secret, sizeof(bind.secret));
    (void)bench_send(b, &bind, sizeof(bind));
}

void bench_note(struct bench *b, uint8_t kind, uint32_t flow, uint32_t sequence)
{
    struct wire_flow note = {.head = {.words = sizeof(note) / 8, .kind = kind},
                             .flow = flow,
                             .sequence = sequence,
                             .status = -EHOSTDOWN};

    (void)bench_send(b, &note, sizeof(note));
}

void bench_bound(struct bench *b, uint32_t remote, int32_t status, uint32_t rights)
{
    struct wire_bound bound = {.head = {.words = sizeof(bound) / 8, .kind = WIRE_BOUND},
                               .remote = remote,
                               .status = status,
                               .flow = 3,
                               .rights = rights,
                               .length = 4096,
                               .address = 65536};

    (void)bench_send(b, &bound, sizeof(bound));
}

void bench_remote(struct bench *b)
{
    const struct engine_key key = BENCH_KEY;

    (void)engine_bind(b->engine, 0, OTHER, 1, &key, 1);
    bench_bound(b, 0, 0, 3);
}

void bench_ack(struct bench *b)
{
    struct wire_ack ack = {.head = {.words = sizeof(ack) / 8, .kind = WIRE_ACK}};

    bench_steps(b, 2);
    ack.consumed = peek_peer(b->engine, OTHER).posted;
    (void)bench_send(b, &ack, sizeof(ack));
}

void bench_submit(struct bench *b, const struct submit_record *record)
{
    bench_submit_unseen(b, record);
    bench_steps(b, 2);
}

void bench_submit_unseen(struct bench *b, const struct submit_record *record)
{
    struct ring_control *ring = &b->session->submit;
    uint64_t tail = atomic_load(&ring->tail);

    memcpy(b->submit + tail % b->session->sizes.submit, record, record->size);
    atomic_store(&ring->tail, tail + record->size);
}

bool bench_local_event(struct bench *b, struct event_record *out)
{
    struct ring_control *ring = &b->session->local;
    uint64_t head = atomic_load(&ring->head);

    bench_steps(b, 1);
    if (atomic_load(&ring->tail) == head)
        return false;
    memcpy(out, b->submit + b->session->sizes.submit + head % b->session->sizes.local,
           sizeof(*out));
    atomic_store(&ring->head, head + out->size);
    return true;
}

uint32_t bench_inflow(const struct bench *b)
{
    return b->loop ? 1 : 0; /* inflow 0 is then that of its own remote */
}

uint64_t bench_events(const struct bench *b)
{
    return atomic_load(&b->session->remote.tail);
}

/* ---- opening --------------------------------------------------------------------------------- */

/* Returns zeroed memory between two pages that must not be touched, or NULL. Most of an engine's
 * tables stay unused, and pages of the kernel cost memory only when they are touched. */
static void *zeroed(size_t size)
{
    size_t bytes = (size + PAGE - 1) / PAGE * PAGE;
    uint8_t *at = mmap(NULL, bytes + 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (at == MAP_FAILED)
        return NULL;
    if (mprotect(at + PAGE, bytes, PROT_READ | PROT_WRITE) == 0)
        return at + PAGE;
    munmap(at, bytes + 2 * PAGE);
    return NULL;
}

static void give(void *at, size_t size)
{
    if (at)
        munmap((uint8_t *)at - PAGE, (size + PAGE - 1) / PAGE * PAGE + 2 * PAGE);
}

static bool bind_self(struct bench *b)
{
    b->remote = WIRE_NONE;
    if (engine_bind(b->engine, 0, SELF, 0, &b->key, 1) != 0)
        return false;
    for (int i = 0; i < STEPS && b->remote == WIRE_NONE; i++)
        bench_steps(b, 1);
    return b->remote != WIRE_NONE;
}

static bool open_client(struct bench *b, const struct bench_shape *shape)
{
    const struct engine_client_info info = {.size = 2, .job = BENCH_JOB};
    const uint32_t ring = shape->ring_bytes;
    const struct session_sizes sizes = {ring, ring, ring, ring, ring};

    b->session_bytes = session_bytes(&sizes);
    b->session = zeroed(b->session_bytes);
    b->segment = zeroed(BENCH_SEGMENT);
    if (!b->session || !b->segment)
        return false;
    b->submit = (uint8_t *)b->session + SESSION_DATA_OFFSET;
    b->answer = b->submit + 3u * ring;
    if (engine_client_open(b->engine, &info) != 0 ||
        engine_session_open(b->engine, 0, 0, b->session, &sizes, 0) != 0 ||
        engine_segment_open(b->engine, 0, b->segment, BENCH_SEGMENT) != 0 ||
        engine_region_open(b->engine, 0, 0, 0, shape->region_bytes, 3, &b->key) != 0)
        return false;
    return !shape->with_self || bind_self(b);
}

static bool open_engine(struct bench *b, const struct bench_shape *shape)
{
    uint32_t entries = shape->entries > 0 ? shape->entries : 8;
    uint32_t ledger = shape->ledger_bytes > 0 ? shape->ledger_bytes
                      : entries > 8           ? 65536
                                              : OTHER_RING;

    b->host = (struct engine_host){.context = b, .wake = host_wake, .random = host_random};
    b->config = (struct engine_config){.peers = 2,
                                       .stride = shape->siblings ? 1 : 0,
                                       .clients_max = 4,
                                       .sessions_max = 4,
                                       .segments_max = 4,
                                       .regions_max = entries,
                                       .remotes_max = entries,
                                       .flows_max = entries,
                                       .chunks_max = 32 + entries / 8,
                                       .team_bytes = 16u << 20,
                                       .program_bytes = 256u << 10,
                                       .ledger_bytes = 1u << 20,
                                       .ledger_start = ledger,
                                       .ledger_max = ledger > 65536 ? ledger : 65536};
    if (engine_config_check(&b->config) < 0)
        return false;
    b->arena = zeroed(engine_arena_bytes(&b->config));
    b->memory = zeroed(engine_private_bytes(&b->config));
    return b->arena && b->memory &&
           engine_open(&b->config, b->arena, b->memory, &b->fabric.base, &b->host, 1, &b->engine) ==
               0;
}

bool bench_reopen(struct bench *b)
{
    memset(b->memory, 0, engine_private_bytes(&b->config));
    still_open(&b->fabric);
    return engine_open(&b->config, b->arena, b->memory, &b->fabric.base, &b->host, b->now,
                       &b->engine) == 0 &&
           engine_session_inherit(b->engine, 0, b->session) == 0 &&
           engine_segment_inherit(b->engine, 0, b->segment) == 0;
}

struct bench *bench_new(const struct bench_shape *shape)
{
    struct bench *b = calloc(1, sizeof(*b));

    if (!b)
        return NULL;
    b->random = 88172645463325252u;
    still_open(&b->fabric);
    if (!shape->with_self || loop_open(&(struct loop_config){256, 64}, &b->loop) == 0) {
        b->fabric.self = b->loop;
        if (open_engine(b, shape) && open_client(b, shape))
            return b;
    }
    bench_free(b);
    return NULL;
}

void bench_free(struct bench *b)
{
    if (b->loop)
        fabric_close(b->loop);
    give(b->arena, engine_arena_bytes(&b->config));
    give(b->memory, engine_private_bytes(&b->config));
    give(b->session, b->session_bytes);
    give(b->segment, BENCH_SEGMENT);
    free(b);
}
