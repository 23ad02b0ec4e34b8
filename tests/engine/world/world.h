/*
 * A whole cluster in one process, in virtual time: nodes with an engine each over the simulated
 * fabric, a control layer that only does what the real one does between engines and clients
 * (handshakes, notices), and clients that map their sessions and segments.
 *
 * Everything random comes from one seed. The first thing that goes wrong is kept in `failure` and
 * ends the run.
 *
 * Files: world.c (nodes, time), world_links.c (handshakes), world_control.c (control's calls),
 * world_clients.c (clients), world_requests.c (binds, withdrawals, notices), world_census.c (what
 * is left).
 * Thread: one.
 */
#ifndef PWC_TESTS_ENGINE_WORLD_H
#define PWC_TESTS_ENGINE_WORLD_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include "clientlib/channel/channel.h"
#include "daemon/engine/engine.h"
#include "daemon/fabric/sim/sim.h"
#include "daemon/fabric/sim/sim_random.h"
#include "daemon/fabric/sim/sim_timeline.h"

#define WORLD_NODES_MAX    64u
#define WORLD_CLIENTS_MAX  64u
#define WORLD_CONTEXTS_MAX 2u
#define WORLD_REQUESTS_MAX 512u
#define WORLD_JOB          "job"

struct world;
struct teams;
struct owner_kind;

/* When the clients of a path have a second context. */
enum world_second { WORLD_SECOND_NONE = 0, WORLD_SECOND_NOW, WORLD_SECOND_LATER };

struct world_options {
    uint64_t seed;
    uint32_t nodes;
    uint32_t protocol;     /* enum engine_protocol */
    uint32_t submit_bytes; /* of each session's rings; 0: 8 KiB */
    uint32_t local_bytes;
    uint32_t remote_bytes;
    uint32_t answer_bytes;
    uint32_t reply_bytes;
    uint32_t second_contexts;    /* enum world_second */
    uint64_t segment_bytes;      /* of each context's memory; 0: 64 KiB */
    struct engine_config limits; /* values that are not zero replace the world's small limits */
    uint32_t first_packed_max;   /* of node 0; 0: as the others' */
    struct sim_options sim;
    /* A row for an owner within the engines (own.h), or NULL; and the context that its hooks get.
     * */
    const struct owner_kind *owner;
    void *owner_context;
    FILE *trace;
};

/* A daemon: what dies with its process, and the arena, which does not. */
struct world_node {
    struct world *world;
    uint32_t number;
    bool alive;
    bool armed; /* engine_arm said that it may sleep */
    bool rung;  /* and a client was asked to ring since */
    struct engine *engine;
    struct engine_config config;
    struct fabric *fabric;
    struct engine_host host;
    struct sim_random random;
    void *arena, *memory;
    size_t arena_bytes, memory_bytes;
    uint64_t deadline;
    uint64_t steps, work;
    uint64_t reopen_at; /* round in which a new process takes the arena over; 0: not on its own */
    uint32_t budget_max;
    uint32_t deaths;
};

enum world_command_kind {
    WORLD_CLIENT_OPEN = 1,
    WORLD_CLIENT_CLOSE,
    WORLD_SESSION_OPEN,
    WORLD_SESSION_ATTACH,
    WORLD_SESSION_CLOSE,
    WORLD_SEGMENT_OPEN,
    WORLD_SEGMENT_ATTACH,
    WORLD_SEGMENT_CLOSE,
    WORLD_REGION_OPEN,
    WORLD_REGION_CLOSE,
    WORLD_BIND,
    WORLD_UNBIND,
};

/* One call into an engine: what its kind needs is filled in. */
struct world_command {
    enum world_command_kind kind;
    struct engine_client_info info;
    struct session_sizes sizes;
    uint32_t client, context, handle, remote, peer;
    uint64_t endpoint, cookie, offset, length;
    void *base;
    unsigned rights;
    bool has_key;
    struct engine_key key; /* of a region opened: the result */
    int result;
};

/* One request whose answer comes as a notice. */
struct world_request {
    bool used, done;
    bool withdrawal;
    uint32_t node, client, context;
    struct world_command command; /* to be asked again when the node has died */
    int status;
    uint32_t handle;
    uint64_t length;
    uint32_t rights;
};

struct world_context {
    bool open;    /* the engine may still use the mapping */
    bool closing; /* the engine was asked to let go of the session */
    uint32_t session;
    void *base;
    size_t size;
    struct channel channel;
    bool channel_open;
    /* Its part of the segment, with one region over it. */
    uint8_t *memory;
    uint64_t length, offset;
    bool region_open;
    struct engine_key key;
};

struct world_segment {
    bool open, ready, closing;
    uint32_t handle;
    uint8_t *memory;
    uint64_t length;
};

enum world_segment_use {
    WORLD_MAIN, /* each context has a part of it */
    WORLD_SPARE,
    WORLD_SEGMENTS
};

/* The area of a team's members on a node. */
struct world_area {
    void *base;
    size_t bytes;
};

struct world_client {
    bool live;    /* the engine knows it, and it has not ended */
    bool open;    /* its end has not been confirmed */
    bool hostile; /* may be quarantined */
    bool quarantined;
    const char *reason; /* for that, in words */
    bool faulted;       /* the next answer of host->faulted, given once */
    uint32_t node, handle, rank;
    struct world_context contexts[WORLD_CONTEXTS_MAX];
    struct world_segment segments[WORLD_SEGMENTS];
};

/* Two nodes' control connection; for a == b a node's link to itself. */
struct world_link {
    uint32_t a, b;
    uint32_t generation; /* an event scheduled for an older generation is void */
    bool cut;            /* for control too */
    bool wanted, attempting, waiting;
    bool up[2], offered[2];
    bool lost_due[2]; /* the node died in engine_peer_lost, which is to be called again */
    struct engine_offer offers[2];
    uint32_t asks, silences, holes, gone; /* notices of the engines about each other, so far */
};

/* Runs one call into a node's engine; false: the node has died in it. */
typedef bool world_guard(void *context, struct world_node *node, void (*call)(void *argument),
                         void *argument);

struct world {
    struct world_options options;
    struct sim_world *sim;
    struct sim_random random;
    struct sim_timeline agenda;
    struct world_node nodes[WORLD_NODES_MAX];
    struct world_link links[WORLD_NODES_MAX * (WORLD_NODES_MAX + 1) / 2];
    uint32_t link_count;
    struct world_client clients[WORLD_CLIENTS_MAX];
    uint32_t client_count;
    struct world_request requests[WORLD_REQUESTS_MAX];
    uint64_t cookies;           /* given out so far */
    int offload_error;          /* that an offload may end with, beside -ESHUTDOWN */
    uint32_t offloads_given_up; /* ended while their targets were bound */
    uint64_t rounds;
    uint32_t reopen_rounds; /* rounds after which a node that died under the guard opens again */
    uint32_t idle;          /* rounds in a row in which nothing was done */
    world_guard *guard;     /* NULL: plain calls */
    void *guard_context;
    /* Called in the middle of engine calls, to change client memory under the reader. */
    void (*meddle)(void *context, struct world *w, uint32_t node);
    void *meddle_context;
    struct teams *teams; /* teams.h; NULL: none is open */
    struct world_area areas[WORLD_NODES_MAX];
    bool failed;
    char failure[400];
};

/* ---- world.c --------------------------------------------------------------------------------- */

int world_open(const struct world_options *options, struct world **out);
void world_close(struct world *w);
/* Keeps the first failure. */
__attribute__((format(printf, 2, 3))) void world_fail(struct world *w, const char *format, ...);
__attribute__((format(printf, 2, 3))) void world_log(struct world *w, const char *format, ...);

/* Every node takes a step, in random order, and time passes; when all are idle, time jumps. True:
 * there is or will be more to do without the clients' help. */
bool world_round(struct world *w);
/* Rounds until there is nothing left to do, at most `rounds`; false: still busy then, or failed. */
bool world_settle(struct world *w, uint64_t rounds);

/* A call into a node's engine, under the guard. False: the node is dead, now or before. */
bool world_call(struct world *w, struct world_node *n, void (*call)(void *argument),
                void *argument);
/* The daemon dies at once: its arena and its clients' memory stay. */
void world_node_crash(struct world *w, uint32_t node);
/* A new process takes the arena over. `fresh`: with a new arena, and without clients. */
void world_node_reopen(struct world *w, uint32_t node, bool fresh);

/* ---- world_links.c --------------------------------------------------------------------------- */

void world_links_open(struct world *w);
void world_link_wanted(struct world *w, uint32_t from, uint32_t to);
void world_link_offer_ready(struct world *w, uint32_t from, uint32_t to);
/* The control connection is lost; both ends hear of it, at different times. */
void world_link_break(struct world *w, uint32_t a, uint32_t b);
/* As above, but because an engine says so. */
void world_link_broken(struct world *w, uint32_t a, uint32_t b, int status);
struct world_link *world_link_of(struct world *w, uint32_t a, uint32_t b);
void world_link_node_gone(struct world *w, uint32_t node);
/* Cuts the fabric as well; world_link_restore lets handshakes succeed again. */
void world_link_cut(struct world *w, uint32_t a, uint32_t b);
void world_link_restore(struct world *w, uint32_t a, uint32_t b);
/* Both ends give the other up (engine_peer_lost). */
void world_link_lost(struct world *w, uint32_t a, uint32_t b);
/* Cuts the fabric alone: control's connection stays, and no engine is informed. */
void world_link_blackout(struct world *w, uint32_t a, uint32_t b);
/* The connection loses what `from` sends, and carries the other way, until world_link_carry or
 * until it starts over. */
void world_link_swallow(struct world *w, uint32_t from, uint32_t to);
void world_link_carry(struct world *w, uint32_t from, uint32_t to);
/* The engine asks for a sign of life, with this many bytes ahead of its own. */
void world_link_ask(struct world *w, uint32_t from, uint32_t to, uint64_t bytes);
/* The engine gives the peer up. */
void world_link_gone(struct world *w, uint32_t from, uint32_t to);
/* After a restart: commands whose answers the node did not get. */
void world_links_resume(struct world *w, uint32_t node);
void world_link_step(struct world *w, const struct sim_entry *entry);

/* ---- world_control.c ------------------------------------------------------------------------- */

/* False: the node is dead, now or before, and it is not known whether the command was heard. */
bool world_command(struct world *w, uint32_t node, struct world_command *c);
/* Asks again, when the node is back, until it is answered; its result. */
int world_insist(struct world *w, uint32_t node, struct world_command *c);

/* ---- world_clients.c ------------------------------------------------------------------------- */

/* A client with `contexts` contexts, a segment and a region in it for each; its registration is
 * under way. Index, or a negative errno with the failure kept. */
int world_client_open(struct world *w, uint32_t node, uint32_t rank, uint32_t contexts);
/* Ends a client, in order or by death: the engine sees no difference. */
void world_client_close(struct world *w, uint32_t client);
/* One context more, with a region; or one less, without its region. Negative errno without a
 * failure. */
int world_context_open(struct world *w, uint32_t client, uint32_t context);
void world_context_close(struct world *w, uint32_t client, uint32_t context);
/* A key to the context's memory, with these rights. */
int world_region_open(struct world *w, uint32_t client, uint32_t context, unsigned rights,
                      struct engine_key *out);
int world_spare_open(struct world *w, uint32_t client);
int world_spare_close(struct world *w, uint32_t client);
void world_client_gone(struct world_client *c);
void world_context_gone(struct world_context *x);
void world_segment_gone(struct world_segment *s);
struct world_client *world_client_by_handle(struct world *w, uint32_t node, uint32_t handle);
/* A new process has opened the node's arena: gives it the mappings again, and ends what it does not
 * know. */
void world_clients_attach(struct world *w, uint32_t node);
/* The node's state is lost: so are its clients. */
void world_clients_forget(struct world *w, uint32_t node);
void world_clients_free(struct world *w);
int world_submit(struct world *w, uint32_t client, uint32_t context,
                 const struct submit_record *record, const void *lid, const void *rid,
                 const void *payload);
/* A record without ids that is done at once, as SUBMIT_COLLECTIVE; and whether there is room for
 * it. */
int world_submit_at_once(struct world *w, uint32_t client, const struct submit_record *record);
bool world_has_room(struct world *w, uint32_t client);
/* A client's channel call that submits gave `rc`, 0 or 1: 0. */
int world_submitted(struct world *w, uint32_t client, int rc);
/* The engine has taken all that this context has submitted. */
bool world_taken(const struct world *w, uint32_t client, uint32_t context);

static inline uint64_t world_peer_of(const struct world *w, uint32_t client, uint32_t context)
{
    return pwc_peer_of(w->clients[client].rank, context);
}

/* ---- world_requests.c ------------------------------------------------------------------------ */

/* Request index. */
int world_bind(struct world *w, uint32_t client, uint32_t context, uint32_t to_client,
               uint32_t to_context, const struct engine_key *key);
int world_unbind(struct world *w, uint32_t client, uint32_t context, uint32_t remote);
/* Takes the context's key back. */
int world_withdraw(struct world *w, uint32_t client, uint32_t context);
/* Runs the world until the request is answered; its status. */
int world_await(struct world *w, int request);
void world_request_free(struct world *w, int request);
void world_notice(struct world *w, struct world_node *n, const struct engine_notice *notice);
/* After a restart: what was not answered is asked again. */
void world_requests_resume(struct world *w, uint32_t node);
/* These requests get no answer any more; context WORLD_CONTEXTS_MAX: those of all of the client's
 * contexts. */
void world_requests_drop(struct world *w, uint32_t client, uint32_t context);

/* ---- world_census.c -------------------------------------------------------------------------- */

/* All clients leave: each end is confirmed, and then every table of every node is as it was at the
 * start. An entry that is left over becomes the world's failure. */
void world_leave(struct world *w);
/* Counts that nodes keep of their tables' entries are right, also while these change. */
void world_check_counts(struct world *w);

#endif
