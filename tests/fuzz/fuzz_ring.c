/*
 * What a client writes into its rings of submissions and answers, through the engine. An input is
 * a row of (control byte, number of words, words): the words go into the ring, repaired where the
 * control byte says so, so that what lies behind the first checks is reached too.
 */
#include <stdlib.h>
#include <string.h>
#include "tests/engine/bench/record_bench.h"
#include "proto/wire_abi.h"

enum repair {
    IN_ANSWERS = 1 << 0,
    REPAIR_SIZE = 1 << 1,
    REPAIR_HANDLES = 1 << 2, /* remote, segment, reserve */
    REPAIR_MESSAGE = 1 << 3, /* its block's length */
    CONSUME = 1 << 4,        /* the client takes its events */
    STEP = 1 << 5,
    ANY_TAIL = 1 << 6, /* not behind what was written */
};

#define RING 65536u

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct bench_shape shape = {
    .ring_bytes = RING, .region_bytes = BENCH_SEGMENT, .with_self = true};

static void repair(const struct bench *b, uint8_t how, uint8_t *record, uint32_t size)
{
    struct submit_record *r = (struct submit_record *)(void *)record;

    if (size < sizeof(*r))
        return;
    if (how & REPAIR_HANDLES) {
        r->remote = b->remote;
        r->segment = 0;
        r->lid_len %= 64;
        r->reserve = event_bytes(r->lid_len);
    }
    if (how & REPAIR_MESSAGE && size >= sizeof(*r) + sizeof(struct message)) {
        struct message *m = (struct message *)(void *)(record + sizeof(*r));

        r->lid_len = 0;
        r->reserve = event_bytes(0);
        r->rid_len = (uint16_t)(size - sizeof(*r));
        m->kind = r->kind;
        m->arguments = (uint8_t)((r->rid_len - sizeof(*m)) / 8 % SESSION_ARGUMENTS_MAX);
        m->payload_len = r->rid_len - (uint32_t)sizeof(*m) - 8u * m->arguments;
        r->rid = how & IN_ANSWERS ? r->rid % 4 : 0;
    }
    if (how & REPAIR_SIZE)
        r->size = size;
}

static void consume(struct ring_control *ring)
{
    atomic_store(&ring->head, atomic_load(&ring->tail));
}

/* A good record must be taken: else no input gets behind the first checks. */
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    struct bench *b = bench_new(&shape);
    struct submit_record put = {.kind = SUBMIT_PUT, .offset = 4096, .length = 64};

    if (!b)
        abort();
    atomic_store(&b->session->handlers[0], UINT64_MAX);
    memset(b->segment, 'x', 64);
    repair(b, REPAIR_SIZE | REPAIR_HANDLES, (uint8_t *)&put, sizeof(put));
    memcpy(b->submit, &put, sizeof(put));
    atomic_store(&b->session->submit.tail, sizeof(put));
    bench_steps(b, 32);
    if (b->quarantined || atomic_load(&b->session->ended) != 1 ||
        memcmp(b->segment, b->segment + 4096, 64) != 0)
        abort();
    bench_free(b);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bench *b = bench_new(&shape);
    uint64_t tails[2] = {0, 0};

    if (!b)
        abort();
    atomic_store(&b->session->handlers[0], UINT64_MAX);
    while (size >= 2 && !b->quarantined) {
        uint8_t how = data[0];
        uint32_t bytes = 8u * data[1];
        uint32_t which = how & IN_ANSWERS;
        uint8_t *ring = which ? b->answer : b->submit;
        struct ring_control *control = which ? &b->session->reply_submit : &b->session->submit;
        _Alignas(8) uint8_t record[8 * 255];

        data += 2;
        size -= 2;
        bytes = bytes < size ? bytes : (uint32_t)size & ~7u;
        memcpy(record, data, bytes);
        repair(b, how, record, bytes);
        for (uint32_t i = 0; i < bytes; i++)
            ring[(tails[which] + i) % RING] = record[i];
        tails[which] += bytes;
        if (how & ANY_TAIL && bytes >= 8)
            memcpy(&tails[which], record, sizeof(tails[which]));
        atomic_store(&control->tail, tails[which]);
        data += bytes;
        size -= bytes;
        if (how & STEP)
            bench_steps(b, 4);
        if (how & CONSUME) {
            consume(&b->session->local);
            consume(&b->session->remote);
            consume(&b->session->reply_event);
        }
    }
    bench_steps(b, 16);
    engine_client_close(b->engine, 0);
    bench_steps(b, 16);
    bench_free(b);
    return 0;
}
