/*
 * Teams over the world's nodes: control's part of opening and closing them, and members that call
 * collectives through the area, each at its own pace, and compare each result with that of a plain
 * loop.
 *
 * Every member calls the same list of collectives, which a seed gives. Thread: one.
 */
#ifndef PWC_TESTS_ENGINE_TEAMS_H
#define PWC_TESTS_ENGINE_TEAMS_H

#include "shm_ring/team.h"
#include "tests/engine/world/world.h"

#define TEAM_RANKS_MAX 64u

/* One call of the list. */
struct teams_spec {
    uint32_t kind; /* enum team_kind */
    uint32_t root; /* rank of the root */
    uint32_t length;
};

struct teams_place {
    uint32_t node;
    void *base; /* mapping of the area */
    size_t bytes;
    struct team_area area;
    uint32_t handle;
    bool open, closed; /* closed: the area may be unmapped */
    uint32_t members;
    uint32_t first; /* number of members of the places before it */
};

struct teams_member {
    uint32_t client;
    uint32_t place, index;
    uint64_t called, taken; /* how many instances it has called, and taken */
    bool counted; /* `called` counts the member's arrival, but its submission is still to come */
    bool left, dead;
    int32_t status; /* why its team is broken, as the member has seen */
};

struct teams {
    struct world *world;
    struct sim_random random;
    uint64_t number;
    uint32_t window;
    uint32_t ranks;
    uint32_t places;
    const struct teams_spec *list;
    uint64_t count; /* length of the list */
    struct teams_place place[WORLD_NODES_MAX];
    struct teams_member member[TEAM_RANKS_MAX];
    uint32_t order[TEAM_RANKS_MAX]; /* ranks in the order of places, then of members */
    uint64_t submitted;
};

/* Opens a team of `ranks` clients on all their engines; rank i is client i of the world. */
void teams_open(struct teams *t, struct world *w, uint64_t number, uint32_t ranks, uint32_t window,
                const struct teams_spec *list, uint64_t count, uint64_t seed);
/* Lets every member continue, by chance, as far as it can. Returns whether any has. */
bool teams_turn(struct teams *t);
/* Lets every member continue as far as it can. */
void teams_hurry(struct teams *t);
/* Whether every living member has taken all results, or seen the team broken. */
bool teams_over(const struct teams *t);
/* Makes turns and rounds until the team is over; if it does not end, the world fails. */
void teams_run(struct teams *t, uint64_t rounds);
/* Lets a member report that it and the first one have made different calls. */
void teams_differ(struct teams *t, uint32_t rank);
/* Lets a member's client die. */
void teams_kill(struct teams *t, uint32_t rank);
/* Lets all members leave, and closes the areas of all engines. */
void teams_close(struct teams *t);

/* Draws a call that fits a team whose fullest engine has this many members. */
struct teams_spec teams_random_spec(struct sim_random *random, uint32_t ranks, uint32_t fullest);

/* Calls by the world: a new process has the node's arena; an engine has reported a team closed. */
void teams_attach(struct teams *t, uint32_t node);
void teams_closed(struct teams *t, uint32_t node, uint32_t handle);

#endif
