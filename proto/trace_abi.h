/*
 * The format of a trace (Traced.records): one record of 64 bytes for each step of an operation, in
 * this machine's byte order. Times are CLOCK_MONOTONIC's.
 *
 * An operation is named by the number of its origin, the number of its flow there, and its sequence
 * in that flow; records of a target have only the low 32 bits of the sequence. A batch is one
 * operation, with a count. A number of a node here is that of its engine: node + nodes * engine.
 */
#ifndef PWC_PROTO_TRACE_ABI_H
#define PWC_PROTO_TRACE_ABI_H

#include <assert.h>
#include <stdint.h>

/* The steps, and the meaning of `position` in each. */
enum trace_kind {
    TRACE_SUBMITTED = 1, /* taken from the client's ring; position: the target, a pwc_peer */
    TRACE_STAGED,        /* its record is in the ledger to `node`; position: the record's end */
    TRACE_POSTED,        /* the fabric has its payload or read */
    TRACE_COMPLETED,     /* the fabric has ended the payload or read */
    TRACE_PLACED,        /* its target has consumed its record */
    TRACE_LOCAL,         /* its local event is posted; position: the event's end in the ring, 0: no
                            event */
    TRACE_REMOTE,        /* at the target: its event is posted; position: the event's end in the
                            remote ring, 0: spilled */
    TRACE_REPLY,         /* at the requester: a reply's event is posted; position: the event's end
                            in the reply_event ring */
    TRACE_DRAINED,       /* a client has read its ring `op` (enum trace_ring_name) up to
                            `position` */
    TRACE_RUN,           /* records up to `position` of the ledger to `node` left as one run;
                            sequence: its number; length: its bytes */
    TRACE_RUN_ENDED,     /* the fabric has ended a run's write */
    TRACE_PEER_UP,
    TRACE_PEER_DOWN,
    TRACE_CLIENT_ATTACHED,
    TRACE_CLIENT_DETACHED,
    TRACE_QUARANTINED, /* status: the reason's number */
    TRACE_HANDLER, /* a handler has run, from at_ns on; position: for how many ns; sequence: units;
                      flow: its offload's handle; op: enum handler_stage; status: its fault */
    TRACE_KINDS
};

enum trace_ring_name { TRACE_RING_LOCAL = 0, TRACE_RING_REMOTE = 1, TRACE_RING_REPLY = 2 };

#define TRACE_NONE UINT32_MAX

struct trace_record {
    uint64_t index; /* number among all records of the engine, from 1 */
    uint64_t at_ns;
    uint64_t sequence;
    uint64_t position;
    uint32_t length; /* bytes */
    int32_t status;
    uint32_t uid; /* the user of the operation; TRACE_NONE: of several users, or the daemon's own */
    uint32_t client; /* number of the client on this node; TRACE_NONE: no client */
    uint32_t session;
    uint32_t node; /* number of the peer */
    uint32_t flow; /* at the operation's origin */
    uint16_t count;
    uint8_t kind;
    uint8_t op; /* enum submit_kind */
};
static_assert(sizeof(struct trace_record) == 64, "trace_record");

#endif
