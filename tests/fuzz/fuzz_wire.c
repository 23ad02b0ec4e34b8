/*
 * The words of another node in the ledger that we offered it. An input is a row of (control byte,
 * number of words, words): records, one or more a run, with their length repaired where the control
 * byte says so; a link that broke is made anew.
 */
#include <stdlib.h>
#include <string.h>
#include "tests/engine/bench/record_bench.h"
#include "proto/wire_abi.h"

enum repair {
    REPAIR_WORDS = 1 << 0,
    REPAIR_FLOW = 1 << 1, /* the inflow or flow that there is */
    REPAIR_KEY = 1 << 2,  /* of a packed put, a bind */
    PAYLOAD = 1 << 3,     /* the announcement of a payload, not of a run */
    CONSUME = 1 << 4,     /* the client takes its events */
    WAIT = 1 << 5,
};

#define RING 65536u

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct bench_shape shape = {
    .ring_bytes = RING, .region_bytes = BENCH_SEGMENT, .with_self = true};

static void repair(const struct bench *b, uint8_t how, uint8_t *record, uint32_t size)
{
    struct wire_record *head = (struct wire_record *)(void *)record;
    struct wire_put *put = (struct wire_put *)(void *)record;
    struct wire_batch *batch = (struct wire_batch *)(void *)record;
    struct wire_vector *vector = (struct wire_vector *)(void *)record;
    struct wire_bind *bind = (struct wire_bind *)(void *)record;

    if (how & REPAIR_WORDS)
        head->words = (uint16_t)(size / 8);
    head->kind %= WIRE_KINDS + 1;
    if (how & REPAIR_FLOW && size >= sizeof(struct wire_op))
        put->op.flow = bench_inflow(b);
    if (how & REPAIR_KEY && head->kind == WIRE_PUT && size >= sizeof(*put)) {
        put->slot = b->key.slot;
        put->generation = b->key.generation;
    }
    if (how & REPAIR_KEY && head->kind == WIRE_BATCH && size >= sizeof(*batch)) {
        batch->slot = b->key.slot;
        batch->generation = b->key.generation;
    }
    if (how & REPAIR_KEY && head->kind == WIRE_VECTOR && size >= sizeof(*vector)) {
        vector->slot = b->key.slot;
        vector->generation = b->key.generation;
    }
    if (how & REPAIR_KEY && head->kind == WIRE_BIND && size >= sizeof(*bind)) {
        bind->slot = b->key.slot;
        bind->generation = b->key.generation;
        memcpy(bind->secret, b->key.secret, sizeof(bind->secret));
        memcpy(bind->job, "j", 2);
    }
}

static void consume(struct ring_control *ring)
{
    atomic_store(&ring->head, atomic_load(&ring->tail));
}

/* A new link, and a flow to the client's region. */
static bool link_up(struct bench *b)
{
    if (b->broken)
        engine_peer_lost(b->engine, 1);
    if (bench_link(b) < 0)
        return false;
    bench_bind(b, 5);
    return !b->broken;
}

/* A good record must be taken: else no input gets behind the first checks. */
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    struct bench *b = bench_new(&shape);
    struct {
        struct wire_put put;
        uint8_t payload[16];
    } record = {
        .put = {.op = {.head = {.words = sizeof(record) / 8, .kind = WIRE_PUT}, .length = 16},
                .offset = 64},
        .payload = "0123456789abcde"};

    if (!b || !link_up(b))
        abort();
    atomic_store(&b->session->handlers[0], UINT64_MAX);
    repair(b, REPAIR_FLOW | REPAIR_KEY, (uint8_t *)&record, sizeof(record));
    if (!bench_send(b, &record, sizeof(record)) || b->broken ||
        memcmp(b->segment + 64, record.payload, sizeof(record.payload)) != 0 ||
        atomic_load(&b->session->remote.tail) == 0)
        abort();
    bench_free(b);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bench *b = bench_new(&shape);

    if (!b || !link_up(b))
        abort();
    atomic_store(&b->session->handlers[0], UINT64_MAX);
    while (size >= 2) {
        uint8_t how = data[0];
        uint32_t bytes = 8u * data[1];
        _Alignas(8) uint8_t record[8 * 255];

        data += 2;
        size -= 2;
        bytes = bytes < size ? bytes : (uint32_t)size & ~7u;
        if (bytes < sizeof(struct wire_record))
            continue;
        memcpy(record, data, bytes);
        data += bytes;
        size -= bytes;
        repair(b, how, record, bytes);
        if (how & PAYLOAD) {
            still_push(&b->fabric,
                       &(struct fabric_event){
                           .kind = FABRIC_ARRIVED,
                           .immediate = wire_immediate(WIRE_PAYLOAD, 1,
                                                       (uint16_t)(record[0] | record[1] << 8))});
            bench_steps(b, 2);
        } else if (!bench_send(b, record, bytes)) {
            b->broken = true;
        }
        if (how & WAIT)
            bench_steps(b, 8);
        if (how & CONSUME)
            consume(&b->session->remote);
        if (b->broken && !link_up(b))
            abort();
    }
    bench_steps(b, 16);
    engine_client_close(b->engine, 0);
    bench_steps(b, 16);
    bench_free(b);
    return 0;
}
