/*
 * Offloads: programs of clients that are joined to an index of a context's active messages, or to a
 * region. Messages and puts that arrive there are given to the program's handlers
 * (daemon/engine/offload).
 *
 * Arena types hold indices and offsets only and are changed through arena_set* (arena.h). Private
 * types die with the process. Thread: the progress thread owns all of it.
 */
#ifndef PWC_ENGINE_OFFLOADS_H
#define PWC_ENGINE_OFFLOADS_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include "daemon/engine/engine.h"
#include "daemon/engine/state/chain.h"
#include "daemon/engine/state/flows.h"
#include "daemon/engine/state/ready_list.h"
#include "daemon/engine/watch/histogram.h"
#include "proto/handler_abi.h"
#include "proto/wire_abi.h"

#define OFFLOADS_SHIFT 10u
#define OFFLOADS_MAX   (1u << OFFLOADS_SHIFT)
static_assert(OFFLOADS_MAX == ENGINE_OFFLOADS_MAX, "the shift is that of a handle");
#define OFFLOAD_GENERATIONS (1u << (31 - OFFLOADS_SHIFT))

/* ---- in the arena ---------------------------------------------------------------------------- */

enum offload_state {
    OFFLOAD_FREE = 0,
    OFFLOAD_BINDING = 1, /* its targets are being bound */
    OFFLOAD_OPEN = 2,
    OFFLOAD_DISABLED = 3, /* by its client, or by a fault: operations that arrive fail */
};

/* The client's request, carried out once all puts to the offload are cut. Until then no handler of
 * another message begins. */
enum offload_ending {
    OFFLOAD_STAYS = 0,
    OFFLOAD_TO_DISABLE = 1,
    OFFLOAD_TO_DESTROY = 2,
};

struct offload {
    uint32_t state;      /* enum offload_state */
    uint32_t generation; /* of the entry */
    uint32_t session;
    uint32_t program; /* an entry of the table of programs, which it holds */
    uint32_t takes;   /* enum offload_takes */
    uint32_t index;   /* of the context's messages */
    uint32_t flags;   /* enum engine_offload_flag */
    uint32_t ending;  /* enum offload_ending */
    uint64_t cookie;  /* the client's own word, which each event has */
    uint64_t answer;  /* while its targets are being bound: the caller's cookie */
    struct engine_range state_memory, host, scratch;
    uint32_t targets;
    uint32_t unbound; /* targets that are not bound yet */
    uint32_t gets;    /* of its handlers: struct handler_get */
    uint64_t counters[HANDLER_COUNTERS];
    /* Counts for views. */
    uint64_t messages, bytes, dropped, deferred, failed, faults, sends, sends_failed, units;
    uint32_t fault, fault_stage, fault_place; /* the last fault */
    int32_t bind_status;                      /* the first bind that failed */
    uint64_t fault_address;
};

/* A target, in its offload's row of the table. Memory of a row is touched only as far as there are
 * targets. */
struct offload_target {
    uint64_t endpoint; /* rank and context that the remote leads to */
    uint32_t remote;   /* a remote of the context's offloads, or NONE; the bind may be under way */
    uint32_t given;    /* the client's remote; not used once `remote` is there */
};
static_assert(sizeof(struct offload_target) == 16, "256 of them are a page");

enum get_state {
    GET_FREE = 0,
    GET_SENT = 1, /* its operation is in its flow */
    GET_COME = 2, /* the operation has ended, and the completion handler is to run */
};

/* A get that a handler has asked for, from that handler's return to the end of the completion
 * handler. */
struct handler_get {
    uint32_t state; /* enum get_state */
    uint32_t session;
    uint32_t peer;          /* its target's node */
    uint32_t in_doubt;      /* 1: an earlier process may have run the handler (doubt.h) */
    uint64_t endpoint;      /* rank and context of the target */
    struct handled handled; /* `sequence` is the entry's number, `status` the get's own */
};

/* Entries that all clients share, and further ones for each client: as many as one handler may
 * send. */
#define GETS_SHARED 4096u
#define GETS_OWN    32u

static inline uint32_t gets_size(const struct engine_config *c)
{
    return GETS_SHARED + GETS_OWN * c->clients_max;
}

static inline uint32_t offload_handle_of(const struct offload *o, uint32_t number)
{
    return o->generation << OFFLOADS_SHIFT | number;
}

/* Bytes of a put that one packet holds at most. */
static inline uint32_t packet_longest(const struct engine_config *c)
{
    uint32_t most = c->packed_max & ~(WIRE_PACKET_UNIT - 1);

    return most > 0 ? most : WIRE_PACKET_UNIT;
}

/* ---- private --------------------------------------------------------------------------------- */

struct collected;
struct vm;

/* The process's own view of an offload; it ends with the process. */
struct offload_live {
    struct histogram runs; /* units of each run */
    uint32_t begun;        /* in OFFLOAD_BINDING: how many targets have a bind that has begun */
    uint32_t cut_to;  /* inflow + 1: the sweep looks at this inflow next; 0: at the first one */
    bool cut;         /* the sweep has looked at all inflows: all puts to the offload are cut */
    bool unasked;     /* a client asked an earlier process to destroy the offload. That client may
                       * have gone, so the engine destroys the offload without another call */
    bool disabled;    /* the client has disabled the offload, and has not enabled it since then */
    uint32_t in_time; /* runs since the last one that used its time more than twice, up to
                       * OFFLOAD_IN_TIME */
};

/* How many more times a run may use its full time. A pause of the machine is not the handler's
 * fault; but a handler that is always slow may cost other clients no more than twice its time. */
#define OFFLOAD_AGAIN      1u
#define OFFLOAD_AGAIN_MOST 3u /* after OFFLOAD_IN_TIME runs in time */
#define OFFLOAD_IN_TIME    256u

/* Units that handlers take in one step, before records wait for the next one. */
#define OFFLOAD_STEP_UNITS 8192u
/* Units that may be spent in one step to cut puts: on their completion handlers, and on each inflow
 * that is looked at. The next step continues. */
#define OFFLOAD_CUT_UNITS  8192u
#define OFFLOAD_LOOK_UNITS 8u

/* Turns of handlers (offload/turns.h): what is left of a client's turn. */
struct handler_turn {
    int64_t left;   /* units; a negative rest is taken off the next turn */
    uint64_t until; /* ns: then the rest is void */
    bool waits;     /* the turn stands in its user's list */
};

/* A user whose clients wait for a turn. */
struct handler_user {
    uint32_t uid;
    struct ready_list clients;
};

/* The two clients that have had work of some kind last: the latest one first. */
struct handler_work {
    uint32_t client[2];
    uint64_t until[2]; /* ns: the entry counts until then */
};

struct handler_turns {
    struct handler_turn *of;    /* by client */
    uint32_t *next;             /* by client: links of its user's list */
    struct handler_user *users; /* entries of `waiting`, and free ones */
    uint32_t *user_next;
    struct ready_list waiting; /* users: the next one first */
    struct ready_list unused;  /* entries */
    uint32_t used;             /* entries that were ever in use */
    int64_t credit;            /* ns for which turns may be given */
    uint64_t credit_at;        /* ns: when it was brought up to date */
    uint32_t share;            /* of the time, in 256ths */
    struct handler_work handled, others;
};

/* Turns of clients whose offloads have puts to be cut (offload/puts/cuts.h). */
struct cut_turns {
    uint32_t next; /* client whose puts are cut next, before those of others; or NONE */
    uint32_t last; /* client whose puts were cut last, in step `last_step` */
    uint32_t last_step;
};

/* Gets that have completed (offload/gets.h). */
struct handler_gets {
    struct handler_get *table; /* in the arena */
    uint32_t *next;            /* by get: links of its context's list */
    struct ready_list *of;     /* by context: its completed gets, in the order in which they run */
    uint32_t *session_next;
    bool *listed;               /* by context */
    struct ready_list sessions; /* contexts with completed gets; some may have none any more */
};

struct offloads {
    struct offload *table;          /* in the arena */
    struct offload_target *targets; /* in the arena: a row of ENGINE_OFFLOAD_TARGETS for each */
    struct chain by_index;          /* by session and index */
    uint8_t *stacks;                /* HANDLER_STACK_BYTES for each client */
    struct vm *vm;
    struct collected *collected;      /* of the handler that runs */
    struct offload_live *live;        /* OFFLOADS_MAX */
    struct engine_offloads_view sums; /* without what is counted at the moment of a view */
    uint64_t spent;                   /* units in this step */
    uint64_t spent_on_cuts;           /* units in this step, by puts that were cut */
    struct cut_turns cut_turns;
    struct handler_turns turns;
    struct handler_gets gets;
    uint32_t targets_left; /* targets of offloads that may still end in this step */
    uint64_t again_at;     /* ns: operations that wait for room to send try again; 0: none waits */
    uint32_t pauses;       /* how often the pause has doubled since a send ended */
};

/* The targets of an offload, by number. */
static inline struct offload_target *offload_targets(const struct offloads *all, uint32_t offload)
{
    return all->targets + (uint64_t)offload * ENGINE_OFFLOAD_TARGETS;
}

#endif
