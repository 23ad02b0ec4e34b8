/* A fabric whose operations succeed at once and go nowhere: for a single engine, node 0, whose peer
 * is the test. Operations of the engine with its own node may use another fabric. Thread: one. */
#ifndef PWC_TESTS_ENGINE_STILL_FABRIC_H
#define PWC_TESTS_ENGINE_STILL_FABRIC_H

#include <stdbool.h>
#include <stdint.h>
#include "daemon/engine/engine.h" /* the fabric as the engine sees it */

#define STILL_EVENTS 4096u

struct still_fabric {
    struct fabric base;
    struct fabric *self; /* of the caller: operations to node 0, and all memory; NULL: none */
    struct fabric_event events[STILL_EVENTS];
    uint32_t head, tail;
    uint32_t memories;
    int32_t add_status;  /* status of the event of memory that is added */
    int add_refused;     /* the result of the call that adds memory, where less than 0 */
    int32_t drop_status; /* status of the event of memory that is dropped */
    uint32_t drops;      /* drops that were asked for, without those that went to `self` */
    int post_status;     /* the result of posting reads and payloads, when less than 0 */
    uint32_t post_after; /* so many posts succeed before */
    bool holds;          /* reads and payloads do not complete until still_release */
    struct fabric_event held[8];
    uint32_t held_count;
    int poll_status;     /* the result of poll, when less than 0 */
    bool serves;         /* each poll serves a read of a peer */
    uint64_t kinds;      /* kinds of the records that were written: 1 << enum wire_kind */
    uint32_t runs;       /* runs that were written */
    uint32_t payloads;   /* payloads and reads that were posted */
    uint32_t runs_first; /* runs that were written before the first payload or read */
    /* Called when a run has been written; NULL: nothing is. */
    void (*watch)(void *context);
    void *watch_context;
};

void still_open(struct still_fabric *f);
/* Completes the operations that were held back. */
void still_release(struct still_fabric *f);
/* Adds an event for the next poll. An arrival without a peer stands for a fabric that does not know
 * the writer. */
void still_push(struct still_fabric *f, const struct fabric_event *event);

#endif
