/*
 * The engine's state: its tables (clients.h, flows.h, links.h, programs.h, teams.h), and the fields
 * that belong to no table. Thread: the progress thread owns all of it.
 */
#ifndef PWC_ENGINE_STATE_H
#define PWC_ENGINE_STATE_H

#include "daemon/engine/engine.h"
#include "daemon/engine/state/arena.h"
#include "daemon/engine/state/chain.h"
#include "daemon/engine/state/clients.h"
#include "daemon/engine/state/due.h"
#include "daemon/engine/state/flows.h"
#include "daemon/engine/state/heap.h"
#include "daemon/engine/state/links.h"
#include "daemon/engine/state/offloads.h"
#include "daemon/engine/state/programs.h"
#include "daemon/engine/state/teams.h"

/* The tables whose entries come and go. */
enum table {
    TABLE_CLIENTS,
    TABLE_SESSIONS,
    TABLE_SEGMENTS,
    TABLE_REGIONS,
    TABLE_GRANTS,
    TABLE_REMOTES,
    TABLE_FLOWS,
    TABLE_INFLOWS,
    TABLE_TEAMS,
    TABLE_PROGRAMS,
    TABLE_OFFLOADS,
    TABLE_GETS,
    TABLES
};

/* A table's free entries (table.h): entries on the stack were in use before, and entries from
 * `*fresh` on never were. `count`, `fresh` and `stack` point into the arena. */
struct free_list {
    uint32_t *count; /* on the stack */
    uint32_t *fresh;
    uint32_t *stack;
    uint32_t size; /* of the table */
};

/* Entries of a table that leave, or may: each once, in a ring as large as the table (table.h). */
struct leaving {
    uint32_t *entries;
    bool *listed;
    uint32_t size, head, count;
    uint32_t due; /* how many entries, from the head on, this sweep must still visit */
};

/* Flows of one user that are on their way out, and whose contexts are gone. These flows still count
 * for the user's quota. */
struct user_gone {
    uint32_t uid;
    uint32_t flows, remotes; /* remotes that name them */
};

struct engine {
    struct arena arena;
    struct engine_config config;
    struct fabric *fabric;
    const struct engine_host *host;
    const struct owner_kind *owners[OWNER_KINDS]; /* rows; NULL: there is no such owner */
    uint32_t processor;                           /* as session_shared.processor */
    uint64_t now;
    uint64_t part_at;       /* when the part of the step that is under way began */
    uint64_t slowest_ns;    /* of the parts of the step that have ended */
    uint32_t slowest, part; /* enum engine_part: the slowest one, and the one that ended last; 0:
                             * none */

    /* tables of the arena */
    struct client *clients;
    struct session *sessions;
    struct segment *segments;
    struct region *regions;
    struct grant *grants;
    struct remote *remotes;
    struct flow *flows;
    struct inflow *inflows;
    struct peer *peers;
    uint64_t *doubt; /* doubt.h */
    struct free_list unused[TABLES];
    uint32_t *own_flows; /* list: flows whose owner has no list of its own */
    struct chunk_pool pool;
    uint32_t message_max; /* bytes of an active message's block */

    /* private tables, same indices */
    struct leaving leaving[TABLES];
    struct chain flows_of_peer;
    struct chain sessions_of_endpoint; /* by rank and context */
    struct chain inflows_of_peer;      /* parting inflows included */
    struct chain remotes_of_key;       /* by peer and slot: remotes that a REVOKE may be about */
    struct chain flows_of_way;         /* by owner and endpoint */
    struct chain inflows_of_origin;    /* by session and origin */
    struct chain inflows_of_flow;      /* by session, and the origin's peer and flow */
    struct chain inflows_held; /* by session: stopped or refused inflows, and perhaps others */
    /* Flows and inflows about whose peers there is something to report, and perhaps others: */
    struct chain flows_due; /* by session, with separate homes for ends and for peers that are back:
                             * due_home */
    struct chain inflows_due; /* likewise */
    struct chain grants_of_peer;
    struct session_live *session_live;
    struct segment_live *segment_live;
    struct flow_live *flow_live;
    struct turn *turns;     /* turns_max turns of clients, then the turn *nobody* of each peer */
    uint32_t *client_notes; /* by client: entries that its waiting notes take */
    uint32_t *flow_next, *turn_next, *turn_next_blocked, *turn_next_paused;
    struct user_gone *gone; /* one for each user with flows that have lost their context */
    uint32_t gone_count;
    uint32_t free_turns; /* list */
    uint32_t turns_used; /* turns from here on were never on the free list */
    uint32_t turns_max;
    struct peer_live *peer_live;
    struct latency *latencies;
    uint32_t latency_count;                /* entries that peers have */
    uint32_t *remote_busy;                 /* fabric operations that name the remote */
    uint32_t *remote_next, *remote_before; /* links in the list of the remote's flow; NONE at its
                                            * ends */
    uint32_t *flow_before, *inflow_before, *grant_before; /* lists.h */
    struct heap heap;
    struct fabric_memory heap_memory; /* the whole heap, as source of runs */
    bool heap_registered;
    struct keepalive keepalive;
    uint64_t rounded; /* bytes that short elements and pieces have counted beyond their own, since
                       * this process began (kinds/access.h) */
    struct teams teams;
    struct programs programs;
    struct offloads offloads;

    uint32_t *open_sessions;
    uint32_t open_count;
    uint32_t take_first; /* index in open_sessions of the context that the next step takes first */
    uint32_t *active;    /* peers that need progress */
    uint32_t active_count;
    struct due resting; /* peers that wait only for the time at which their acknowledgement is
                         * due */
    uint32_t *dirty;    /* sessions with something to publish */
    uint32_t dirty_count;
    uint32_t steps;     /* so far; it wraps */
    bool hasten;        /* acknowledgements leave at once: none waits to ride with records */
    bool published;     /* the last step published something */
    uint32_t spilling;  /* sessions with spilled events */
    bool sweep;         /* something that is leaving may make progress: run the sweep (sweep.h) */
    bool sweeping;      /* the sweep has not looked at all entries yet: the next step continues */
    bool *withdrawn;    /* by client: its regions are on their way out */
    uint32_t asks_left; /* REVOKEs that this sweep may still send */
    uint32_t ends_left; /* operations of dead flows that this sweep may still end */
    uint64_t drop_at;   /* ns: when to drop again the memory that the fabric has refused to drop;
                         * 0: there is none */
    bool rings_refused; /* some of that memory is rings of ledgers */
    bool unfenced;      /* clients rely on the daemon's fences (host->fence), but this process can't
                         * fence for them: it looks at their rings every LOOK_NS */
    bool armed;         /* engine_arm has armed the bells; since then some may have rung */
    bool fabric_failed;
    bool orphans;         /* the next sweep closes sessions and segments that were not attached */
    uint32_t chunks_keep; /* chunks that operations and spilled events leave to control records */

    struct engine_notice *notices;
    uint64_t notice_head, notice_tail;
    uint64_t notices_max;

    struct trace_ring *trace; /* NULL: no trace is on */
    uint64_t ordered_max; /* the fabric keeps the order of writes up to this length, so a payload
                           * is placed before the record behind it; 0: the fabric keeps none */
    uint32_t rails_shift; /* large payloads travel in at least 1 << this pieces */
    uint32_t piece_shift; /* a piece has at most 1 << this bytes */
    uint8_t *record;      /* room for one submission, or a record of a peer */
    uint8_t *next_record; /* room for the submission after it: the two may become one batch */
    uint32_t record_max;  /* bytes of the longest submission */

    struct engine_totals_view departed; /* sums of contexts that are gone */
    uint32_t departures;                /* odd while a context's counts move to `departed`
                                         * (view.c) */
};

/* Cookies of fabric operations: what a completion belongs to. */
enum cookie_kind {
    COOKIE_OP = 1,  /* cookie_of_op */
    COOKIE_RUN = 2, /* peer << 16 | run */
    COOKIE_HEAP = 3,
    COOKIE_RING = 4,    /* peer */
    COOKIE_NEXT = 5,    /* peer */
    COOKIE_PARTING = 6, /* peer, place */
    COOKIE_SEGMENT = 7, /* index */
};

static inline uint64_t cookie_of(uint32_t kind, uint64_t value)
{
    return (uint64_t)kind << 60 | value;
}

#define COOKIE_SLOTS ((UINT64_C(1) << 40) - 1) /* the bits of an index that a cookie carries */

/* The cookie of a fabric operation for the operation `slot` of a flow. cookie_op takes it apart
 * again, and gives the low bits of the slot. */
static inline uint64_t cookie_of_op(uint32_t flow, uint64_t slot)
{
    return cookie_of(COOKIE_OP, (uint64_t)flow << 40 | (slot & COOKIE_SLOTS));
}

static inline uint64_t cookie_op(uint64_t cookie, uint32_t *flow)
{
    *flow = (uint32_t)(cookie >> 40) & ((1u << 20) - 1);
    return cookie & COOKIE_SLOTS;
}

/* Arena transactions by their short names. */
static inline void set64(struct engine *e, uint64_t *field, uint64_t value)
{
    arena_set64(&e->arena, field, value);
}

static inline void set32(struct engine *e, uint32_t *field, uint32_t value)
{
    arena_set32(&e->arena, field, value);
}

static inline void set8(struct engine *e, uint8_t *field, uint8_t value)
{
    arena_set8(&e->arena, field, value);
}

static inline void commit(struct engine *e)
{
    arena_commit(&e->arena);
}

/* The fabric has failed to drop some memory: the sweep drops it again later. */
static inline void drop_later(struct engine *e)
{
    if (e->drop_at == 0)
        e->drop_at = e->now + DROP_RETRY_NS;
}

#endif
