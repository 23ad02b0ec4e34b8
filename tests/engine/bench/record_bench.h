/*
 * One engine, node 0 of two, with one client, one context and one region; the test is its peer,
 * node 1, and writes into the ring that the engine offers. Writes to node 1 go nowhere and succeed
 * at once; writes to the engine's own node go by the loop, where there is one.
 *
 * Everything runs in one thread, and alike at each start: an input that a fuzzer finds can be
 * replayed.
 */
#ifndef PWC_TESTS_ENGINE_RECORD_BENCH_H
#define PWC_TESTS_ENGINE_RECORD_BENCH_H

#include <stdbool.h>
#include <stdint.h>
#include "daemon/engine/engine.h"
#include "proto/session_abi.h"
#include "tests/engine/bench/still_fabric.h"

#define BENCH_SEGMENT 65536u
#define BENCH_JOB     "j"

struct bench_shape {
    uint32_t ring_bytes;   /* bytes of each ring of the session */
    uint32_t region_bytes; /* bytes of the region, at the start of the segment */
    uint32_t entries;      /* entries of the tables of regions, remotes and flows; 0: 8 */
    uint32_t ledger_bytes; /* bytes of each ledger; 0: 16 KiB, with more entries 64 KiB */
    bool with_self;        /* the loop, and a remote that leads to the client's own region */
    bool siblings;         /* nodes 0 and 1 are engines of one machine */
};

struct bench {
    struct still_fabric fabric;
    struct fabric *loop; /* NULL: none */
    struct engine_host host;
    struct engine_config config;
    struct engine *engine;
    void *arena, *memory;
    struct session_shared *session;
    uint8_t *submit, *answer; /* data of the submit ring and of the reply_submit ring */
    uint8_t *segment;
    size_t session_bytes;
    struct engine_key key;
    uint32_t remote;
    uint32_t woken; /* how often the engine wanted to wake the client */
    bool quarantined;
    uint32_t offloads_closed; /* notices that an offload was closed */
    uint64_t now, random;
    uint64_t clock, clock_tick; /* the clock of handlers' runs (bench_clock), in ns, and by how much
                                   each look moves it */
    /* node 1's side of the link */
    uint32_t restarts; /* restarts of node 1's daemon, which has kept its state */
    struct engine_offer offer;
    uint8_t *ring; /* the engine's inbound ring, which it offered to node 1 */
    uint64_t position;
    uint16_t run;
    bool broken;
    uint32_t wanted; /* notices that the engine wants a link with node 1 */
};

/* Opens a bench without a link yet. Returns NULL if the engine does not come up, which is a bug in
 * itself. */
struct bench *bench_new(const struct bench_shape *shape);
void bench_free(struct bench *b);
/* Lets the process die: another one takes the arena over, and the link is gone. Returns false if
 * the takeover fails, which is a bug in itself. */
bool bench_reopen(struct bench *b);
void bench_steps(struct bench *b, int n);
/* Gives runs of handlers a clock from now on; no other thread gets the processor meanwhile. */
void bench_clock(struct bench *b);
/* Shakes hands as node 1, also again after a link that broke. Returns 0 or a negative errno. */
int bench_link(struct bench *b);
/* Sends the `size` bytes of `records` as one run; position 0 is the start of a new link's ring.
 * Returns false if the run does not fit any more. */
bool bench_send(struct bench *b, const void *records, uint32_t size);
/* As bench_send, but the engine makes no step. */
bool bench_send_unseen(struct bench *b, const void *records, uint32_t size);
/* Resolves the client's region for a flow of node 1, the test. */
void bench_bind(struct bench *b, uint32_t origin_flow);
/* Sends a note about one of the engine's flows, or an inflow of it. */
void bench_note(struct bench *b, uint8_t kind, uint32_t flow, uint32_t sequence);
/* Our answer to a BIND: `status`, and a region of 4096 bytes with these rights. */
void bench_bound(struct bench *b, uint32_t remote, int32_t status, uint32_t rights);
/* Gives the client a remote that leads to node 1 (flow 0 and remote 0 in a bench without self),
 * with both rights, for the key BENCH_KEY. */
#define BENCH_KEY                                                                                  \
    (struct engine_key)                                                                            \
    {                                                                                              \
        .node = 1, .slot = 2, .generation = 9                                                      \
    }
void bench_remote(struct bench *b);
/* Acknowledges all records that the engine has sent to node 1. */
void bench_ack(struct bench *b);
/* Submits as the client; only the bytes that the record's size states are written. */
void bench_submit(struct bench *b, const struct submit_record *record);
/* As bench_submit, but the engine makes no step. */
void bench_submit_unseen(struct bench *b, const struct submit_record *record);
/* Consumes the next local event. Returns false if there is none. */
bool bench_local_event(struct bench *b, struct event_record *out);
/* The inflow of the first bind (bench_bind). */
uint32_t bench_inflow(const struct bench *b);
/* Bytes of remote events that the client has been shown. */
uint64_t bench_events(const struct bench *b);
/* Returns the next number of a series that is the same in each bench. */
uint64_t bench_random(struct bench *b);

#endif
