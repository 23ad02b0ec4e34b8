/*
 * State that the files of the simulated fabric share: sim.c (the world and its connections),
 * sim_operation.c (the life of an operation), sim_network.c (its life with the LogGP clock),
 * sim_memory.c (registered memory).
 *
 * Thread: the owner of the sim_world owns all of it.
 */
#ifndef PWC_FABRIC_SIM_STATE_H
#define PWC_FABRIC_SIM_STATE_H

#include "daemon/fabric/sim/sim.h"
#include "daemon/fabric/sim/sim_random.h"
#include "daemon/fabric/sim/sim_timeline.h"

#define SIM_NODES_MAX    1024u
#define SIM_SLOT_BITS    16u /* of a memory's index, for its slot; above: the generation */
#define SIM_ADDRESS_MASK UINT64_C(0x7ffffffff000)
#define SIM_NO_OP        UINT32_MAX

enum step {
    STEP_TRANSMIT = 1,
    STEP_PIECE, /* a: offset, b: length */
    STEP_LANDED,
    STEP_COMPLETE,
    /* Only with the LogGP clock, where a is the time in ps, also in STEP_LANDED. */
    STEP_ARRIVES,
    STEP_RETURNS,
    STEP_SEEN,
    STEP_ADDED, /* subject: node, a: instance, b: memory index */
    STEP_DROPPED,
    STEP_BREAK, /* subject: node, a: peer, b: the side's generation */
};

struct sim_op {
    bool used, read, announce, placed, ordered;
    bool transmitted, doomed, landed, reported;
    uint32_t source_node, target_node, memory, immediate;
    uint32_t entries; /* in the timeline */
    uint32_t next_free;
    uint64_t number;     /* in the order of posts */
    uint64_t generation; /* of the origin's side, when it was posted */
    uint64_t cookie, length, remote_address, remote_key;
    uint8_t *local; /* source or destination */
    uint8_t *bytes; /* the copy of a write's source, after STEP_TRANSMIT */
};

struct sim_memory {
    bool used, live, dropping;
    uint32_t index;
    uint32_t generation;
    unsigned access;
    uint8_t *base;
    uint64_t length, address, key, cookie;
};

/* One end of a connection. */
struct sim_side {
    bool connected, severed;
    uint64_t generation;
    uint32_t outstanding;
    uint64_t last_landing; /* when the last ordered write lands */
    uint64_t landed_number;
};

struct sim_fabric {
    struct fabric fabric; /* first */
    struct sim_world *world;
    uint32_t node;
};

struct sim_node {
    bool open;
    bool roused;       /* on the list of roused nodes */
    uint64_t instance; /* incremented by each open */
    struct loggp_end end;
    struct sim_fabric handle;
    struct sim_side *sides;
    struct sim_memory *memories;
    uint32_t memory_room;
    struct fabric_event *queue; /* circular */
    uint32_t queue_head, queue_count, queue_room;
};

struct sim_world {
    struct sim_options options;
    struct sim_random random;
    struct sim_timeline timeline;
    struct sim_counters counters;
    uint64_t now;
    struct sim_node *nodes;
    bool *cut;        /* nodes x nodes */
    uint32_t *roused; /* nodes with an event that sim_roused has not named */
    uint32_t roused_count;
    struct sim_op *ops;
    uint32_t op_room, op_free;
    uint64_t posted;
    FILE *trace;
    bool faulted;
    char fault[256];
};

/* The content of a fabric_address. */
struct sim_address {
    uint32_t node;
    uint32_t reserved;
    uint64_t instance;
};

static inline struct sim_side *sim_side(struct sim_world *w, uint32_t node, uint32_t peer)
{
    return &w->nodes[node].sides[peer];
}

static inline struct sim_world *sim_world_of(struct fabric *fabric, uint32_t *node)
{
    struct sim_fabric *f = (struct sim_fabric *)fabric;

    *node = f->node;
    return f->world;
}

/* ---- sim.c ----------------------------------------------------------------------------------- */

__attribute__((format(printf, 2, 3))) void sim_fail(struct sim_world *w, const char *format, ...);
__attribute__((format(printf, 2, 3))) void sim_log(struct sim_world *w, const char *format, ...);
uint64_t sim_some_delay(struct sim_world *w);
void sim_schedule(struct sim_world *w, uint64_t time, enum step what, uint32_t subject, uint64_t a,
                  uint64_t b);
/* Queues an event for the node's poll. */
void sim_push(struct sim_world *w, uint32_t node, const struct fabric_event *event);
void sim_pass_time(struct sim_world *w);

/* ---- sim_operation.c ------------------------------------------------------------------------- */

int sim_write(struct fabric *fabric, const struct fabric_write *write);
int sim_read(struct fabric *fabric, const struct fabric_read *read);
/* Schedules a step of the operation at this time. */
void sim_schedule_op(struct sim_world *w, uint64_t time, enum step what, uint32_t index, uint64_t a,
                     uint64_t b);
/* Carries out the operation's step that a timeline entry names. */
void sim_operation_step(struct sim_world *w, const struct sim_entry *entry);
/* Dooms this share (per mille) of the operations under way from one node to another. */
void sim_doom_flight(struct sim_world *w, uint32_t from, uint32_t to, uint32_t per_mille);
/* Called when the origin disconnects or closes: its operations may still land, or not. */
void sim_release_flight(struct sim_world *w, uint32_t from, uint32_t to);
/* Ends this share of the origin's operations with an error; returns how many. */
uint32_t sim_end_flight(struct sim_world *w, uint32_t from, uint32_t to, int status,
                        uint32_t per_mille);
/* Called when the origin is gone: its operations get no events. */
void sim_orphan_flight(struct sim_world *w, uint32_t from);

/* ---- sim_network.c --------------------------------------------------------------------------- */

/* Whether the world uses the LogGP clock. */
bool sim_has_loggp(const struct sim_world *w);
/* Schedules the first steps of an operation that was just accepted. */
void sim_network_post(struct sim_world *w, uint32_t index);
/* Carries out STEP_ARRIVES and STEP_RETURNS. */
void sim_network_step(struct sim_world *w, const struct sim_entry *entry);
/* Continues after the last byte of a write is placed. */
void sim_network_landed(struct sim_world *w, uint32_t index, uint64_t at);

/* ---- sim_memory.c ---------------------------------------------------------------------------- */

struct sim_memory *sim_memory_of(struct sim_node *n, uint32_t index);
int sim_mem_add(struct fabric *fabric, void *base, uint64_t length, unsigned access,
                uint64_t cookie);
int sim_mem_drop(struct fabric *fabric, uint32_t memory, uint64_t cookie);
/* Carries out STEP_ADDED and STEP_DROPPED. */
void sim_memory_step(struct sim_world *w, const struct sim_entry *entry);

#endif
