/*
 * Many real engines in one process, over the simulated fabric with its LogGP clock.
 *
 * The fleet steps an engine when the engine has something to do: an event of the fabric, a
 * submission, a deadline. Then the clock jumps to the next event. An engine's work takes no virtual
 * time except the model's o for each message; its real time is counted, too. The only work of
 * control threads is to bring links up. Nothing fails unless an engine works wrongly: the first
 * such failure is kept in `failure` and ends the run. (Runs that search for faults:
 * tests/engine/world.)
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

/* Calls into a row while the fleet runs; each may be NULL. */
struct fleet_hooks {
    void *context;
    /* The node's engine has worked, and its clients may have events. */
    void (*look)(void *context, struct fleet *f, uint32_t node);
    /* A frame of fleet_send has arrived, or the time of fleet_later. */
    void (*frame)(void *context, struct fleet *f, const struct sim_entry *frame);
};

struct fleet_options {
    uint32_t nodes;
    uint32_t peers;   /* in each engine's tables; 0: as many as nodes */
    uint32_t pairs;   /* pairs and binds in each engine's tables; 0: the engine's default */
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
    uint64_t due; /* its deadline in the agenda, ns; UINT64_MAX: none */
    bool queued;  /* to be stepped now */
};

/* Sums since the fleet was opened. */
struct fleet_count {
    uint64_t ns;
    uint64_t messages; /* writes and reads of the fabric */
    uint64_t bytes;
    uint64_t frames;  /* between control threads */
    uint64_t steps;   /* of engines that had work */
    uint64_t real_ns; /* real time of all steps */
};

struct fleet {
    struct fleet_options options;
    struct sim_world *sim;
    struct sim_timeline agenda;
    struct fleet_node *nodes;
    uint32_t *queue; /* nodes to be stepped now, circular */
    uint32_t queue_head, queue_count;
    uint8_t *up; /* nodes x nodes: the link of two nodes, in the row of the lower number */
    struct fleet_count count;
    bool failed;
    char failure[200];
};

/* ---- fleet.c --------------------------------------------------------------------------------- */

int fleet_open(const struct fleet_options *options, struct fleet **out);
void fleet_close(struct fleet *f);
/* Notes a failure; only the first is kept. */
__attribute__((format(printf, 2, 3))) void fleet_fail(struct fleet *f, const char *format, ...);
/* Lets the engine be stepped before time passes. */
void fleet_rouse(struct fleet *f, uint32_t node);
/* Runs until `over` returns true, or nothing is left to do, or a failure. `over` NULL: until
 * nothing is left to do. Returns false after a failure, or if `over` never returned true. */
bool fleet_run(struct fleet *f, bool (*over)(void *context), void *context);
struct fleet_count fleet_counted(const struct fleet *f);
/* The difference of two counts: what happened between them. */
struct fleet_count fleet_between(const struct fleet_count *from, const struct fleet_count *to);
/* Returns the bytes of the engine's arena and private memory that were touched. */
uint64_t fleet_resident(const struct fleet *f, uint32_t node);

/* ---- fleet_links.c --------------------------------------------------------------------------- */

/* Sends a frame between control threads: the receiver's hook gets an entry with `subject` (the
 * receiver), a and b. A frame takes as long as a message of the fabric; a frame to the sender
 * itself arrives at once. */
void fleet_send(struct fleet *f, uint32_t from, uint32_t to, uint32_t bytes, uint64_t a,
                uint64_t b);
/* Calls the hook `frame` when this much time has passed; the entry's `subject` is the node. */
void fleet_later(struct fleet *f, uint32_t node, uint64_t ns);
/* Does what a control thread would do with a notice of the engine. */
void fleet_notice(struct fleet *f, uint32_t node, const struct engine_notice *notice);
/* `what` of an entry of the agenda, and the meaning of the entry's other fields. */
enum fleet_entry {
    FLEET_DUE = 1,     /* `subject`: a node that has a deadline */
    FLEET_SHAKE = 2,   /* a frame of a handshake. `subject`: the receiver; `a`: the sender; `b`: how
                        * many more frames the handshake needs */
    FLEET_FRAME = 3,   /* a frame of fleet_send. `subject`: the receiver; `a` and `b`: as in the
                        * call. Or the end of fleet_later. `subject`: its node */
    FLEET_ARRIVES = 4, /* flag of both kinds of frames: the control thread has not read the frame */
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

/* The answer to a bind, or to an offload; its address is the cookie. The row owns it, and keeps it
 * until it is done. */
struct fleet_bind {
    bool done;
    int status;
    uint32_t remote; /* or the offload */
};

/* Attaches the rank: maps its memory, and opens its client in the engine. 0 or a negative errno. */
int fleet_rank_open(struct fleet *f, uint32_t node, uint32_t number, uint32_t ranks,
                    struct fleet_rank *out);
/* Opens the rank's channel: from now on the rank may submit and probe. */
int fleet_rank_talks(struct fleet_rank *rank);
void fleet_rank_close(struct fleet_rank *rank);
/* Asks the engine to bind `to`'s region for `from`. */
int fleet_bind(struct fleet *f, const struct fleet_rank *from, const struct fleet_rank *to,
               struct fleet_bind *bind);

/* ---- fleet_offloads.c ------------------------------------------------------------------------ */

#define FLEET_STATE 4096u /* the last bytes of a rank's region: the state of its handlers */

/* Handlers of puts to a rank's region. */
struct fleet_handlers {
    const char *object; /* the object file that clang has made */
    const void *state;  /* at the start */
    uint32_t state_bytes;
    uint32_t targets;
    const uint32_t *target; /* remotes of the rank's */
};

/* Runs the fleet until the bind, or the offload, is answered. False: it has failed. */
bool fleet_settled(struct fleet *f, const struct fleet_bind *bind);
/* Gives the rank's region an offload; `offload` is the caller's, and stays. 0 or a negative errno.
 */
int fleet_offload(struct fleet *f, const struct fleet_rank *rank, const struct fleet_handlers *h,
                  struct fleet_bind *offload);

#endif
