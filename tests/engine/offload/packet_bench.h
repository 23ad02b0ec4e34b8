/* A bench with an offload that takes puts to the client's region, and packets of such puts. The
 * test is their origin. One thread. */
#ifndef PWC_TESTS_ENGINE_PACKET_BENCH_H
#define PWC_TESTS_ENGINE_PACKET_BENCH_H

#include <string.h>
#include "daemon/handlers/image.h"
#include "tests/count.h"
#include "tests/engine/bench/linked_bench.h"
#include "tests/engine/bench/peek.h"
#include "tests/engine/offload/assemble.h"

enum { SEQUENCE = 1, PLACE = 128, TOTAL = 192, PART = 64, ORIGIN_FLOW = 5 };

/* ---- the offload ----------------------------------------------------------------------------- */

#define RETURN(value)    ALU(CODE_MOV, 0, value), EXIT
#define COUNT_RUN(stage) ALU(CODE_MOV, 1, stage), ALU(CODE_MOV, 2, 1), HELPER(HELPER_COUNTER_ADD)

/* Loads a program whose handlers count their runs; `returned` is what the header handler returns.
 * The completion handler first goes through `loops` turns of a loop, of 2 units each. */
static inline uint32_t load_for(struct bench *b, uint32_t client, uint32_t returned, uint32_t loops)
{
    const struct handler_instruction code[] = {COUNT_RUN(HANDLER_HEADER),
                                               RETURN(returned),
                                               COUNT_RUN(HANDLER_PAYLOAD),
                                               RETURN(HANDLER_SUCCESS),
                                               ALU(CODE_MOV, 3, loops + 1),
                                               ALU(CODE_SUB, 3, 1),
                                               op(CODE_JMP | CODE_JNE, 3, 0, -2, 0),
                                               COUNT_RUN(HANDLER_COMPLETION),
                                               RETURN(HANDLER_SUCCESS)};
    uint64_t words[64] = {0};
    struct handler_image *image = (void *)words;
    uint32_t bytes = (uint32_t)image_bytes(COUNT(code), 0, 0);
    struct image_error wrong;
    int program;

    *image = (struct handler_image){
        .magic = HANDLER_IMAGE_MAGIC, .instructions = COUNT(code), .entry = {0, 5, 10}};
    memcpy(words + 5, code, sizeof(code));
    CU_ASSERT_EQUAL_FATAL(image_check(words, bytes, &wrong), 0);
    program = engine_program_load(b->engine, client, image, bytes);
    CU_ASSERT_FATAL(program >= 0);
    return (uint32_t)program;
}

static inline uint32_t load(struct bench *b, uint32_t returned, uint32_t loops)
{
    return load_for(b, 0, returned, loops);
}

/* Creates an offload of this region, for the context's client. Returns its handle. */
static inline uint32_t create_for(struct bench *b, uint32_t session, const struct engine_key *key,
                                  struct engine_offload_info info)
{
    int offload;

    info.takes = OFFLOAD_PUTS;
    info.host = (struct engine_range){key->slot, key->generation, 0, 4096};
    offload = engine_offload_create(b->engine, session, &info, 1);
    CU_ASSERT_FATAL(offload >= 0);
    bench_steps(b, 2);
    return (uint32_t)offload;
}

static inline uint32_t create_like(struct bench *b, const struct engine_key *key,
                                   struct engine_offload_info info)
{
    return create_for(b, 0, key, info);
}

static inline uint32_t create_with_loops(struct bench *b, const struct engine_key *key,
                                         uint32_t returned, uint32_t loops)
{
    return create_like(b, key, (struct engine_offload_info){.program = load(b, returned, loops)});
}

static inline uint32_t create(struct bench *b, const struct engine_key *key, uint32_t returned)
{
    return create_with_loops(b, key, returned, 0);
}

static inline struct bench *new_bench_with(uint32_t *handle, uint32_t flags)
{
    const struct bench_shape shape = {.ring_bytes = RING, .region_bytes = 4096, .entries = 64};
    struct bench *b = bench_new(&shape);

    CU_ASSERT_PTR_NOT_NULL_FATAL(b);
    CU_ASSERT_EQUAL_FATAL(bench_link(b), 0);
    *handle = create_like(
        b, &b->key,
        (struct engine_offload_info){.program = load(b, HANDLER_PROCESS_DATA, 0), .flags = flags});
    bench_bind(b, ORIGIN_FLOW);
    CU_ASSERT_FALSE_FATAL(b->broken);
    return b;
}

static inline struct bench *new_bench(uint32_t *handle)
{
    return new_bench_with(handle, 0);
}

/* ---- records --------------------------------------------------------------------------------- */

struct packet_record {
    struct wire_packet w;
    uint8_t bytes[PART];
};

static inline struct packet_record packet(const struct bench *b, uint32_t at)
{
    return (struct packet_record){
        .w = {
            .put = {.op = {.head = {.words = sizeof(struct packet_record) / 8, .kind = WIRE_PACKET},
                           .flow = bench_inflow(b),
                           .sequence = SEQUENCE,
                           .length = PART},
                    .slot = b->key.slot,
                    .generation = b->key.generation,
                    .offset = PLACE},
            .total = TOTAL,
            .at = at}};
}

static inline void send_packet(struct bench *b, const struct packet_record *p)
{
    CU_ASSERT_TRUE_FATAL(bench_send(b, p, p->w.put.op.head.words * 8u));
}

static inline void send_at(struct bench *b, uint32_t at)
{
    const struct packet_record p = packet(b, at);

    send_packet(b, &p);
}

/* The record of a put that is stored. */
static inline struct packet_record stored(const struct bench *b)
{
    struct packet_record p = packet(b, TOTAL);

    p.w.put.op.head.flags = WIRE_STORED;
    p.w.put.op.head.words = sizeof(p.w) / 8;
    p.w.put.op.length = 0;
    return p;
}

/* Returns the status of the first FAIL that the engine has sent; 0 without one. */
static inline int32_t failed(const struct bench *b)
{
    uint64_t end = peek_peer(b->engine, 1).staged;

    for (uint64_t at = 0; at < end;) {
        const struct wire_flow *record = peek_record(b->engine, 1, at);

        if (record->head.kind == WIRE_FAIL)
            return record->status;
        at += record->head.words * UINT64_C(8);
    }
    return 0;
}

/* Returns how many records of this kind the engine has sent. */
static inline uint32_t sent(const struct bench *b, uint8_t kind)
{
    uint64_t end = peek_peer(b->engine, 1).staged;
    uint32_t count = 0;

    for (uint64_t at = 0; at < end;) {
        const struct wire_flow *record = peek_record(b->engine, 1, at);

        count += record->head.kind == kind;
        at += record->head.words * UINT64_C(8);
    }
    return count;
}

static inline void check_runs(const struct bench *b, uint32_t handle, uint64_t header,
                              uint64_t payload, uint64_t completion)
{
    const struct offload o = peek_offload(b->engine, handle);

    CU_ASSERT_EQUAL(o.counters[HANDLER_HEADER], header);
    CU_ASSERT_EQUAL(o.counters[HANDLER_PAYLOAD], payload);
    CU_ASSERT_EQUAL(o.counters[HANDLER_COMPLETION], completion);
}

/* The peer lets go of the region, which no other engine has bound. */
static inline void let_go(struct bench *b)
{
    const struct wire_region revoked = {
        .head = {.words = sizeof(revoked) / 8, .kind = WIRE_REVOKED},
        .slot = b->key.slot,
        .generation = b->key.generation};

    CU_ASSERT_TRUE_FATAL(bench_send(b, &revoked, sizeof(revoked)));
}

#endif
