/*
 * The list of a handler's sends: puts, gets, messages, a reply, events to its client, and changes
 * of its offload's counters. The list is private while the handler runs, and becomes operations and
 * events in the transaction that ends it. So a handler that fails has sent nothing.
 *
 *     helper --> checked, room counted --> list --> handler returns --> transaction: flows, ring
 *                    |                                  |
 *                    -EAGAIN                            FAIL, AGAIN, a fault: the list is dropped
 *
 * Room is counted when the helper is called, in a transaction that holds what the end of the
 * message needs; after the handler has returned nothing may fail.
 *
 * Thread: the progress thread. Owner: the engine, one list for all offloads.
 */
#ifndef PWC_ENGINE_COLLECT_H
#define PWC_ENGINE_COLLECT_H

#include "daemon/engine/state/state.h"
#include "daemon/handlers/run.h"

enum {
    COLLECT_SENDS = 32, /* sends and events of one run of a handler, at most */
    COLLECT_BYTES = 65536,
    COLLECT_FLOW_ENTRIES = 1024, /* entries that may wait in one flow */
};

/* The message for which a handler runs, as far as the handler's sends depend on it. */
struct sender {
    uint32_t offload; /* entry */
    uint32_t inflow;  /* by which the message has come; NONE: the handler runs on a completed get */
    uint32_t peer;    /* node that the handler's events name */
    uint64_t origin;  /* rank and context that the handler's events name */
    bool may_reply;
    uint32_t held; /* bytes of the remote ring that are kept for the message's own event */
};

/* One handler's list, and what it is checked against. */
struct collected {
    struct sender sender; /* set by collect_begin, like `counters` */
    uint64_t counters[HANDLER_COUNTERS];

    bool counted; /* counters have changed */
    bool replied;
    uint32_t sends, events, flows;
    uint32_t bytes;     /* used in `drafts` */
    uint32_t chunks;    /* chunks of the pool that the sends take */
    uint32_t gets;      /* how many sends are gets */
    uint32_t gets_most; /* most gets that have room; NONE: not counted yet in this run */
    struct {
        uint32_t flow, span;
    } flow[COLLECT_SENDS]; /* entries that each flow gets */
    struct {
        uint32_t flow, at;
        bool get;
        uint64_t host_offset; /* of a get */
    } send[COLLECT_SENDS];
    struct {
        uint64_t id, value;
    } event[COLLECT_SENDS];
    _Alignas(8) uint8_t drafts[COLLECT_BYTES]; /* struct submit_record, and what follows */
};

/* The lid of a send's operation, from the lowest bit: 8 bits: counter + 1, or 0: no counter; 32
 * bits: the offload's handle; 24 bits: the entry of a get + 1, or 0: no get. */
#define OFFLOAD_LID_HANDLE 8u
#define OFFLOAD_LID_GET    40u

/* Empties the list. */
void collect_begin(struct engine *e, const struct sender *sender);
/* The hooks of struct run_host, whose `self` is the engine. */
int collect_send(void *engine, const struct run_send *send);
uint32_t collect_target_of(void *engine, uint64_t peer);
uint64_t collect_counter(void *engine, uint32_t counter);
void collect_counter_set(void *engine, uint32_t counter, uint64_t value);

/* Within a transaction, which the caller commits: turns the list into operations and events. */
void collect_enter(struct engine *e);
/* After that commit: sends the operations on their way. */
void collect_entered(struct engine *e);

/* Whether the offloads may have one more reply to this inflow: within the bound of a flow, and the
 * client's quota of queue memory. */
bool collect_reply_allowed(const struct engine *e, uint32_t inflow);
/* Whether there is room for a reply without arguments to this inflow's requests: 0 or -ENOBUFS. */
int collect_reply_room(const struct engine *e, uint32_t inflow);
/* Within a transaction: sends that reply, for which no handler runs. There must be room. */
void collect_reply_empty(struct engine *e, uint32_t inflow);

#endif
