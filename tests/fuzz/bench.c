/* Owns the engine, its memory, and the fabric between it and nobody (bench.h). */
#include "bench.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "loop.h"

#define SELF  0u
#define OTHER 1u
#define JOB   "j"

static const struct session_sizes sizes = {BENCH_RING, BENCH_RING, BENCH_RING, BENCH_RING,
                                           BENCH_RING};

/* ---- the fabric: ourselves by the loop, the other's operations end at once ------------------- */

static struct bench *bench_of(struct fabric *fabric)
{
    return (struct bench *)fabric;
}

static void push(struct bench *b, const struct fabric_event *event)
{
    if (b->tail - b->head < BENCH_EVENTS)
        b->events[b->tail++ % BENCH_EVENTS] = *event;
}

static void split_close(struct fabric *fabric)
{
    fabric_close(bench_of(fabric)->loop);
}

static int split_address(struct fabric *fabric, struct fabric_address *out)
{
    return fabric_address_of(bench_of(fabric)->loop, out);
}

static int split_connect(struct fabric *fabric, uint32_t peer, const struct fabric_address *address)
{
    return peer == SELF ? fabric_connect(bench_of(fabric)->loop, peer, address) : 0;
}

static int split_disconnect(struct fabric *fabric, uint32_t peer)
{
    return peer == SELF ? fabric_disconnect(bench_of(fabric)->loop, peer) : 0;
}

static int split_mem_add(struct fabric *fabric, void *base, uint64_t length, unsigned access,
                         uint64_t cookie)
{
    return fabric_mem_add(bench_of(fabric)->loop, base, length, access, cookie);
}

static int split_mem_drop(struct fabric *fabric, uint32_t memory, uint64_t cookie)
{
    return fabric_mem_drop(bench_of(fabric)->loop, memory, cookie);
}

static int split_write(struct fabric *fabric, const struct fabric_write *write)
{
    struct bench *b = bench_of(fabric);

    if (write->peer == SELF)
        return fabric_post_write(b->loop, write);
    if (b->tail - b->head == BENCH_EVENTS)
        return -EAGAIN;
    push(b, &(struct fabric_event){.kind = FABRIC_WRITTEN, .cookie = write->cookie});
    return 0;
}

static int split_read(struct fabric *fabric, const struct fabric_read *read)
{
    struct bench *b = bench_of(fabric);

    if (read->peer == SELF)
        return fabric_post_read(b->loop, read);
    if (b->tail - b->head == BENCH_EVENTS)
        return -EAGAIN;
    push(b, &(struct fabric_event){.kind = FABRIC_READ, .cookie = read->cookie});
    return 0;
}

static int split_poll(struct fabric *fabric, struct fabric_event *events, int room)
{
    struct bench *b = bench_of(fabric);
    int n = 0;

    while (n < room && b->head != b->tail)
        events[n++] = b->events[b->head++ % BENCH_EVENTS];
    return n < room ? n + fabric_poll(b->loop, events + n, room - n) : n;
}

static int split_arm(struct fabric *fabric, int *descriptor)
{
    return -ENOTSUP;
}

static const struct fabric_ops split_ops = {
    .name = "split",
    .close = split_close,
    .address = split_address,
    .connect = split_connect,
    .disconnect = split_disconnect,
    .mem_add = split_mem_add,
    .mem_drop = split_mem_drop,
    .write = split_write,
    .read = split_read,
    .poll = split_poll,
    .arm = split_arm,
};

/* ---- the host -------------------------------------------------------------------------------- */

static void host_wake(void *context, uint32_t session, uint32_t mode)
{
}

static void host_random(void *context, void *to, size_t size)
{
    struct bench *b = context;

    for (size_t i = 0; i < size; i++) {
        b->random ^= b->random << 13;
        b->random ^= b->random >> 7;
        b->random ^= b->random << 17;
        ((uint8_t *)to)[i] = (uint8_t)b->random;
    }
}

void bench_steps(struct bench *b, int n)
{
    struct engine_notice notice;
    uint64_t deadline;

    while (n-- > 0) {
        b->now += 20000;
        engine_step(b->engine, b->now, 64, &deadline);
        while (engine_notice(b->engine, &notice)) {
            if (notice.kind == ENGINE_PEER_BROKEN && notice.node == OTHER)
                b->broken = true;
            if (notice.kind == ENGINE_QUARANTINED)
                b->quarantined = true;
            if (notice.kind == ENGINE_BOUND && notice.status == 0)
                b->remote = notice.handle;
        }
    }
}

/* ---- opening --------------------------------------------------------------------------------- */

static void *zeroed(size_t size)
{
    void *at = aligned_alloc(4096, (size + 4095) / 4096 * 4096);

    return at ? memset(at, 0, size) : NULL;
}

static bool open_client(struct bench *b)
{
    const struct engine_client_info info = {.size = 2, .job = JOB};

    if (engine_client_open(b->engine, &info) != 0 ||
        engine_session_open(b->engine, 0, 0, b->session, &sizes) != 0 ||
        engine_segment_open(b->engine, 0, b->segment, BENCH_SEGMENT) != 0)
        return false;
    bench_steps(b, 4);
    atomic_store(&b->session->handlers[0], UINT64_MAX);
    b->remote = WIRE_NONE;
    if (engine_region_open(b->engine, 0, 0, 0, BENCH_SEGMENT, 3, &b->key) != 0 ||
        engine_bind(b->engine, 0, SELF, 0, &b->key, 1) != 0)
        return false;
    for (int i = 0; i < 100 && b->remote == WIRE_NONE; i++)
        bench_steps(b, 1);
    return b->remote != WIRE_NONE;
}

struct bench *bench_new(void)
{
    struct bench *b = calloc(1, sizeof(*b));

    if (!b)
        return NULL;
    b->base = (struct fabric){&split_ops, {.message_max = 1u << 30, .ordered_write_max = 1u << 30}};
    b->host = (struct engine_host){.context = b, .wake = host_wake, .random = host_random};
    b->random = 88172645463325252u;
    b->config = (struct engine_config){.nodes = 2,
                                       .clients_max = 2,
                                       .sessions_max = 2,
                                       .segments_max = 4,
                                       .regions_max = 8,
                                       .remotes_max = 8,
                                       .flows_max = 8,
                                       .chunks_max = 16,
                                       .ledger_bytes = 1u << 18,
                                       .ledger_max = 32768};
    if (engine_config_check(&b->config) < 0 ||
        loop_open(&(struct loop_config){256, 64}, &b->loop) < 0)
        abort();
    b->arena = zeroed(engine_arena_bytes(&b->config));
    b->memory = zeroed(engine_private_bytes(&b->config));
    b->session = zeroed(session_bytes(&sizes));
    b->segment = zeroed(BENCH_SEGMENT);
    b->submit = (uint8_t *)b->session + SESSION_DATA_OFFSET;
    b->answer = b->submit + 3 * BENCH_RING;
    if (engine_open(&b->config, b->arena, b->memory, &b->base, &b->host, 1, &b->engine) == 0 &&
        open_client(b))
        return b;
    bench_free(b);
    return NULL;
}

void bench_free(struct bench *b)
{
    fabric_close(&b->base);
    free(b->arena);
    free(b->memory);
    free(b->session);
    free(b->segment);
    free(b);
}

/* ---- node 1 ---------------------------------------------------------------------------------- */

bool bench_link(struct bench *b)
{
    struct engine_offer ours = {
        .node = OTHER, .incarnation = 1, .state_id = 77, .ring_bytes = 16384};
    int rc = -EAGAIN;

    if (b->broken)
        engine_peer_lost(b->engine, OTHER);
    for (int i = 0; i < 100 && rc == -EAGAIN; i++) {
        bench_steps(b, 1);
        rc = engine_offer(b->engine, OTHER, &b->offer);
    }
    b->run = 0;
    b->position = 0;
    b->broken = false;
    return rc == 0 && engine_peer_up(b->engine, OTHER, &ours) == 0;
}

bool bench_run(struct bench *b, const void *records, uint32_t size)
{
    uint8_t *at = (uint8_t *)(uintptr_t)b->offer.ring_address + b->position;

    if (size < sizeof(struct wire_record) || size > b->offer.ring_bytes - b->position)
        return false;
    memcpy(at, records, size);
    ((struct wire_record *)(void *)at)->run = size;
    push(b, &(struct fabric_event){.kind = FABRIC_ARRIVED,
                                   .immediate = wire_immediate(WIRE_RUN, OTHER, b->run++)});
    b->position += size;
    bench_steps(b, 2);
    return true;
}

bool bench_bind(struct bench *b)
{
    struct wire_bind bind = {.head = {.words = sizeof(bind) / 8, .kind = WIRE_BIND},
                             .flow = WIRE_NONE,
                             .origin_flow = 5,
                             .origin = 1,
                             .has_key = 1,
                             .slot = b->key.slot,
                             .generation = b->key.generation,
                             .job = JOB};

    memcpy(bind.secret, b->key.secret, sizeof(bind.secret));
    return bench_run(b, &bind, sizeof(bind)) && !b->broken;
}
