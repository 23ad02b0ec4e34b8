/*
 * One engine, node 0 of two, over the loop: a client with a context, a segment, a region and a
 * remote that leads to it; and node 1, which is whoever uses this. Everything in one thread, and
 * the same at each start: what a fuzzer finds can be replayed.
 */
#ifndef PWC_TESTS_FUZZ_BENCH_H
#define PWC_TESTS_FUZZ_BENCH_H

#include <stdbool.h>
#include "engine.h"
#include "session_abi.h"
#include "wire_abi.h"

#define BENCH_RING    65536u /* of each of the session's */
#define BENCH_SEGMENT 65536u
#define BENCH_EVENTS  1024u
#define BENCH_INFLOW  1u /* of node 1; the first is our own */

struct bench {
    struct fabric base; /* first: the engine's fabric */
    struct fabric *loop;
    struct fabric_event events[BENCH_EVENTS];
    uint32_t head, tail;
    struct engine_host host;
    struct engine_config config;
    struct engine *engine;
    void *arena, *memory;
    struct session_shared *session;
    uint8_t *submit, *answer; /* data of these rings */
    uint8_t *segment;
    struct engine_key key;
    uint32_t remote;
    uint64_t now, random;
    bool quarantined;
    /* node 1's side of the link */
    struct engine_offer offer; /* with the ring that we write into */
    uint64_t position;
    uint16_t run;
    bool broken;
};

/* NULL: it does not come up, which is a bug by itself. */
struct bench *bench_new(void);
void bench_free(struct bench *b);
void bench_steps(struct bench *b, int n);
/* Shakes hands as node 1, anew where the link was broken. */
bool bench_link(struct bench *b);
/* Node 1 writes a run of records and announces it; false: it does not fit any more. */
bool bench_run(struct bench *b, const void *records, uint32_t size);
/* Node 1's context 0 binds our region: BENCH_INFLOW is there. */
bool bench_bind(struct bench *b);

#endif
