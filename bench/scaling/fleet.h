/*
 * Many real engines in one process, over the simulated fabric with its LogGP clock.
 *
 * The fleet steps an engine when it has something to do: an event of the fabric, a submission, a
 * deadline. Then the clock jumps to what comes next. An engine's own work takes no virtual time
 * beyond the model's o of each message; what it takes in real time is counted beside. Control only
 * brings links up. Nothing ever fails, unless an engine does wrong: the first such thing is kept in
 * `failure` and ends the run. (For runs that search for faults: tests/engine/world.)
 *
 * Files: fleet.c (engines, time), fleet_links.c (links), fleet_ranks.c (ranks and their binds),
 * fleet_offloads.c (their handlers).
 * Thread: one.
 */
#ifndef PWC_BENCH_FLEET_H
#define PWC_BENCH_FLEET_H

#include <stdbool.h>
#include <stdint.h>
#include "clientlib/channel/channel.h"
#include "daemon/engine/engine.h"
#include "daemon/fabric/sim/sim.h"
#include "daemon/fabric/sim/sim_random.h"
#include "daemon/fabric/sim/sim_timeline.h"

struct fleet;

/* A row's own work in between; each may be NULL. */
struct fleet_hooks {
    void *context;
    /* The node has done something, which its clients may see. */
    void (*look)(void *context, struct fleet *f, uint32_t node);
    /* A frame of fleet_send has arrived, or the time of fleet_later. */
    void (*frame)(void *context, struct fleet *f, const struct sim_entry *frame);
};

struct fleet_options {
    uint32_t nodes;
    uint32_t peers;   /* of each engine's tables; 0: nodes */
    uint32_t pairs;   /* and binds, of the same; 0: the engine's default */
    uint32_t segment; /* bytes of each rank's region, whole pages; 0: one page */
    struct loggp loggp;
    struct fleet_hooks hooks;
};

struct fleet_node {
    struct fleet *fleet;
    struct engine *engine;
    struct fabric *fabric;
    struct engine_config config;
    struct engine_host host;
    struct sim_random random;
    struct loggp_end control; /* of its control thread */
    void *arena, *memory;
    size_t arena_bytes, memory_bytes;
    uint64_t due; /* deadline that stands in the agenda, ns; UINT64_MAX: none */
    bool queued;  /* to be stepped now */
};

/* Sums since the fleet was opened. */
struct fleet_count {
    uint64_t ns;
    uint64_t messages; /* writes and reads of the fabric */
    uint64_t bytes;
    uint64_t frames;  /* of control */
    uint64_t steps;   /* of engines that had work */
    uint64_t real_ns; /* that all steps took */
};

struct fleet {
    struct fleet_options options;
    struct sim_world *sim;
    struct sim_timeline agenda;
    struct fleet_node *nodes;
    uint32_t *queue; /* nodes to be stepped now, circular */
    uint32_t queue_head, queue_count;
    uint8_t *up; /* nodes x nodes: the link of a pair, at the lower number's row */
    struct fleet_count count;
    bool failed;
    char failure[200];
};

/* ---- fleet.c --------------------------------------------------------------------------------- */

int fleet_open(const struct fleet_options *options, struct fleet **out);
void fleet_close(struct fleet *f);
/* Keeps the first failure. */
__attribute__((format(printf, 2, 3))) void fleet_fail(struct fleet *f, const char *format, ...);
/* The engine is stepped before time passes. */
void fleet_rouse(struct fleet *f, uint32_t node);
/* Runs until `over` says so, or nothing is left to do, or something fails. `over` NULL: until
 * nothing is left to do. False: it has failed, or `over` never said so. */
bool fleet_run(struct fleet *f, bool (*over)(void *context), void *context);
struct fleet_count fleet_counted(const struct fleet *f);
/* The difference of two counts: what happened between them. */
struct fleet_count fleet_between(const struct fleet_count *from, const struct fleet_count *to);
/* Bytes of the engine's arena and private memory that were touched. */
uint64_t fleet_resident(const struct fleet *f, uint32_t node);

/* ---- fleet_links.c --------------------------------------------------------------------------- */

/* Sends a frame of control: the hook gets an entry with `subject` the receiver, and a and b. As a
 * message of the fabric, but of the control threads; to the sender itself at once. */
void fleet_send(struct fleet *f, uint32_t from, uint32_t to, uint32_t bytes, uint64_t a,
                uint64_t b);
/* The hook is called with the node as the entry's `subject` when this much time has passed. */
void fleet_later(struct fleet *f, uint32_t node, uint64_t ns);
/* Control's part: carries out the request of a notice. */
void fleet_notice(struct fleet *f, uint32_t node, const struct engine_notice *notice);
/* An entry of the agenda, whose kind is the sender's. */
enum fleet_entry {
    FLEET_DUE = 1,     /* subject: a node that has a deadline */
    FLEET_SHAKE = 2,   /* subject: the receiver, a: the sender, b: frames that are still to come */
    FLEET_FRAME = 3,   /* subject: the receiver, a, b: the sender's */
    FLEET_ARRIVES = 4, /* with one of these two: the control thread has not read it yet */
};
void fleet_link_step(struct fleet *f, const struct sim_entry *entry);

/* ---- fleet_ranks.c --------------------------------------------------------------------------- */

/* A client with one context and one region. */
struct fleet_rank {
    uint32_t node, number;
    uint32_t handle, session, segment;
    uint8_t *session_base, *memory; /* of one mapping */
    size_t bytes, segment_bytes;
    struct engine_key key;
    struct channel channel;
};

/* The answer to a bind, or to an offload whose cookie is its address. The row's, until it is done.
 */
struct fleet_bind {
    bool done;
    int status;
    uint32_t remote; /* or the offload */
};

/* Attaches the rank: its memory is mapped, and the engine knows it; 0 or a negative errno. */
int fleet_rank_open(struct fleet *f, uint32_t node, uint32_t number, uint32_t ranks,
                    struct fleet_rank *out);
/* The rank submits and probes from now on. */
int fleet_rank_talks(struct fleet_rank *rank);
void fleet_rank_close(struct fleet_rank *rank);
/* Asks the engine for a way to the other's region. */
int fleet_bind(struct fleet *f, const struct fleet_rank *from, const struct fleet_rank *to,
               struct fleet_bind *bind);

/* ---- fleet_offloads.c ------------------------------------------------------------------------ */

#define FLEET_STATE 4096u /* the last bytes of a rank's region: the state of its handlers */

/* Handlers of what is put to a rank's region. */
struct fleet_handlers {
    const char *object; /* clang's file */
    const void *state;  /* at first */
    uint32_t state_bytes;
    uint32_t targets;
    const uint32_t *target; /* remotes of the rank's */
};

/* Runs the fleet until the bind, or the offload, is there. False: it is not. */
bool fleet_settled(struct fleet *f, const struct fleet_bind *bind);
/* Gives the rank's region an offload; `offload` is the caller's, and stays. 0 or a negative errno.
 */
int fleet_offload(struct fleet *f, const struct fleet_rank *rank, const struct fleet_handlers *h,
                  struct fleet_bind *offload);

#endif
