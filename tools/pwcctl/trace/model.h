/*
 * The contents of a trace: operations, writes and events with their times, put together from
 * records.
 *
 * Owned by trace.c. Each daemon that is traced is a source; all times are of one machine's clock.
 */
#ifndef PWCCTL_TRACE_MODEL_H
#define PWCCTL_TRACE_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "proto/trace_abi.h"

/* The subject of a slice. */
enum slice_kind {
    SLICE_OPERATION = 1, /* at its origin, on its client's track */
    SLICE_RUN,           /* a write that carries records, on its peer's track */
    SLICE_EVENT,         /* at the target, on its client's track */
    SLICE_HANDLER,       /* a run of a handler, on its client's track */
    SLICE_MARK,          /* a peer or a client that came or went: no duration */
};

/* Moments of an operation; other slices have a begin and an end alone. 0: not known. */
enum moment {
    MOMENT_BEGIN = 0, /* an operation: submitted; a run: posted; an event: in its ring */
    MOMENT_POSTED,
    MOMENT_COMPLETED,
    MOMENT_PLACED,
    MOMENT_LOCAL,
    MOMENT_END, /* an operation or event: its event was read; a run: completed */
    MOMENTS
};

struct slice {
    uint8_t kind;
    uint8_t what; /* enum submit_kind; of a mark, enum trace_kind; of a handler, its stage */
    uint16_t count;
    uint32_t source, engine;
    uint32_t track;                  /* a client's handle, or a peer's number */
    uint32_t lane;                   /* slices of a track that overlap stand in different lanes */
    uint32_t thread;                 /* the lane's number among the lanes of all tracks */
    bool opens_lane;                 /* the first slice in its lane */
    uint32_t origin, flow, sequence; /* identify the operation; for a handler, flow is its offload
                                        and sequence its units */
    uint32_t towards;                /* the number of the other side */
    uint32_t length;
    int32_t status;
    uint64_t peer; /* for an operation: context << 32 | rank */
    uint64_t at[MOMENTS];
    uint32_t carried_by; /* for an operation: the slice of its run, or TRACE_NONE */
    uint32_t arrived_as; /* for an operation: the slice of its event at the target, or TRACE_NONE */
    uint64_t position;   /* in the ledger, of the operation's record; in its ring, of an event */
};

struct trace_source {
    uint32_t node, nodes;
};

struct trace_model {
    struct slice *slices;
    size_t count, room;
    uint64_t first_ns, last_ns;
    uint64_t unknown; /* records of operations that had begun before the trace */
};

/* Adds all records of one engine of a source, in their order. 0 or -ENOMEM. */
int trace_model_add(struct trace_model *m, const struct trace_source *source, uint32_t number,
                    uint32_t engine, const struct trace_record *records, size_t count);
/* Called after all records: completes ends, joins operations with their events, gives lanes. */
int trace_model_finish(struct trace_model *m);
void trace_model_free(struct trace_model *m);

#endif
