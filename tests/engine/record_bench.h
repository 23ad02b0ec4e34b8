/*
 * One engine over a fabric that only remembers, with one client, one context and one region; the
 * test is its peer, node 1, and writes into the ring that the engine offers. Thread: one.
 */
#ifndef PWC_TESTS_ENGINE_RECORD_BENCH_H
#define PWC_TESTS_ENGINE_RECORD_BENCH_H

#include <stdbool.h>
#include <stdint.h>
#include "engine.h"
#include "session_abi.h"
#include "still_fabric.h"

#define BENCH_RING    8192u
#define BENCH_SEGMENT 65536u

extern const struct session_sizes bench_rings;

struct bench {
    struct still_fabric fabric;
    struct engine_host host;
    struct engine_config config;
    struct engine *engine;
    void *arena, *memory, *session;
    uint8_t *segment;
    uint8_t *ring; /* the inbound ring that the engine offered us */
    struct engine_offer offer;
    struct engine_key key;
    uint64_t now;
    uint16_t run;
    uint64_t position;
    uint32_t inflow;
    uint32_t woken; /* how often the client was to be */
    bool broken;
};

/* With a flow from us to the client. */
struct bench *bench_new(void);
void bench_free(struct bench *b);
void bench_steps(struct bench *b, int n);
/* Shakes hands, again after a link that broke. */
int bench_link(struct bench *b);
/* One run of `size` bytes as its bytes stand in `records`; position 0 of a new link's ring. */
void bench_send(struct bench *b, const void *records, uint32_t size);
/* Resolves the client's region for a flow of ours. */
void bench_bind(struct bench *b, uint32_t origin_flow);
/* Bytes of events that the client has been shown. */
uint64_t bench_events(const struct bench *b);
/* The same numbers each time. */
uint64_t bench_random(void);

#endif
