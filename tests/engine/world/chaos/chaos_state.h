/*
 * State that the parts of a random run share (chaos.h): chaos.c (operations, breaks, the run),
 * chaos_hostile.c, chaos_lives.c. Thread: one.
 */
#ifndef PWC_TESTS_ENGINE_CHAOS_STATE_H
#define PWC_TESTS_ENGINE_CHAOS_STATE_H

#include "tests/engine/world/chaos/chaos.h"
#include "tests/engine/world/model/model.h"
#include "tests/engine/world/paths/world_path.h"

#define SLOTS      8u
#define SLOT_BYTES 1024u
/* No operation uses this slot of the half that others reach, because the counters stand there. */
#define COUNTERS_SLOT (SLOTS - 1)
#define PACKED_MAX    256u
#define HOSTILE_MAX   2u
#define NO_SLOT       UINT32_MAX
/* The deadline is longer than any run. */
#define KEEPALIVE_NS UINT64_C(5000000)
#define DEADLINE_NS  UINT64_C(10000000000000)

enum chaos_remote_state { CHAOS_NONE, CHAOS_ASKED, CHAOS_BOUND, CHAOS_FAILED };

struct chaos_remote {
    enum chaos_remote_state state;
    int request;
    uint32_t handle;
    struct engine_key key;
};

/* The accidents of this run, by their chances in a turn, of 10000. */
struct chaos_plan {
    uint32_t operations;
    uint32_t link_breaks, link_cuts, blackouts, link_losses, crashes, states_lost, deaths, silences;
    uint32_t contexts_open, contexts_close, withdrawals, unbinds, flushes;
    uint32_t hostile;
    uint32_t crowd; /* most operations are notifications towards this end, plus 1 */
};

struct chaos {
    struct world_path path;
    struct world *world;
    struct model model;
    struct sim_random random;
    struct chaos_plan plan;
    uint32_t ends, clients, nodes; /* the upper half of the ends are second contexts */
    bool opened[MODEL_ENDS_MAX];
    int withdrawal[MODEL_ENDS_MAX]; /* request that withdraws its key, or -1 */
    struct chaos_remote remotes[MODEL_ENDS_MAX][MODEL_ENDS_MAX];
    uint32_t slots[MODEL_ENDS_MAX][2][SLOTS]; /* the operation that last used the slot, plus 1 */
    uint32_t silent;
    bool keepalive; /* false: no daemon asks its peers, and breaks are reported */
    uint64_t reopen_at[WORLD_NODES_MAX];
    uint64_t restore_at[WORLD_NODES_MAX][WORLD_NODES_MAX];
    uint32_t hostiles[HOSTILE_MAX];
    struct chaos_counters *counters;
};

static inline uint32_t below(struct chaos *c, uint32_t limit)
{
    return (uint32_t)sim_random_below(&c->random, limit);
}

static inline bool chance(struct chaos *c, uint32_t of_10000)
{
    return of_10000 && below(c, 10000) < of_10000;
}

static inline struct world_client *client_of(const struct chaos *c, uint32_t end)
{
    return &c->world->clients[end % c->clients];
}

static inline uint32_t context_number(const struct chaos *c, uint32_t end)
{
    return end / c->clients;
}

static inline struct world_context *context_of(const struct chaos *c, uint32_t end)
{
    return &client_of(c, end)->contexts[context_number(c, end)];
}

/* Whether the end's client may submit and probe. */
static inline bool end_lives(const struct chaos *c, uint32_t end)
{
    return c->opened[end] && !c->model.ends[end].dead && client_of(c, end)->live &&
           context_of(c, end)->channel_open;
}

static inline bool node_lives(const struct chaos *c, uint32_t end)
{
    return c->world->nodes[client_of(c, end)->node].alive;
}

void chaos_end_dies(struct chaos *c, uint32_t end);
const struct chaos_remote *chaos_remote_of(struct chaos *c, uint32_t from, uint32_t to);

/* ---- chaos_hostile.c */
void chaos_hostiles_open(struct chaos *c);
void chaos_hostile_turn(struct chaos *c, uint32_t i);

/* ---- chaos_lives.c: contexts, binds, flushes and withdrawals, by the plan's chances */
void chaos_lives_turn(struct chaos *c);
/* Looks for ended flushes of an end whose events have been taken. */
void chaos_flushes_look(struct chaos *c, uint32_t end);

#endif
