/*
 * A whole cluster in one process, in virtual time: nodes with an engine each over the simulated
 * fabric, a control layer that does only what the real control does between engines and clients
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

/* When the clients of a path get their second contexts. */
enum world_second { WORLD_SECOND_NONE = 0, WORLD_SECOND_NOW, WORLD_SECOND_LATER };

struct world_options {
    uint64_t seed;
    uint32_t nodes;
    uint32_t protocol;     /* enum engine_protocol */
    uint32_t submit_bytes; /* bytes of each session's rings; 0: 8 KiB */
    uint32_t local_bytes;
    uint32_t remote_bytes;
    uint32_t answer_bytes;
    uint32_t reply_bytes;
    uint32_t second_contexts;    /* enum world_second */
    uint64_t segment_bytes;      /* bytes of each context's memory; 0: 64 KiB */
    struct engine_config limits; /* values that are not zero replace the world's small limits */
    uint32_t first_packed_max;   /* packed_max of node 0; 0: that of all nodes */
    struct sim_options sim;
    /* The row of an owner within the engines (own.h), or NULL; and the context that its hooks get.
     */
    const struct owner_kind *owner;
    void *owner_context;
    FILE *trace;
};

/* A daemon: what dies with its process, and the arena, which does not. */
struct world_node {
    struct world *world;
    uint32_t number;
    bool alive;
    bool armed; /* engine_arm has said that the node may sleep */
    bool rung;  /* a client was asked to ring since */
    struct engine *engine;
    struct engine_config config;
    struct fabric *fabric;
    struct engine_host host;
    struct sim_random random;
    void *arena, *memory;
    size_t arena_bytes, memory_bytes;
    uint64_t deadline;
    uint64_t steps, work;
    uint64_t reopen_at; /* round in which a new process takes the arena over; 0: not by itself */
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

/* A call into an engine; what its kind needs is filled in. */
struct world_command {
    enum world_command_kind kind;
    struct engine_client_info info;
    struct session_sizes sizes;
    uint32_t client, context, handle, remote, peer;
    uint64_t endpoint, cookie, offset, length;
    void *base;
    unsigned rights;
    bool has_key;
    struct engine_key key; /* for a region that is opened: the result */
    int result;
};

/* A request whose answer comes as a notice. */
struct world_request {
    bool used, done;
    bool withdrawal;
    uint32_t node, client, context;
    struct world_command command; /* asked again when the node has died */
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
    /* The context's part of the client's segment WORLD_MAIN, with one region over it. */
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
    bool live;    /* the engine knows the client, which has not ended */
    bool open;    /* the client's end is not confirmed */
    bool hostile; /* its quarantine is no failure of the world */
    bool quarantined;
    const char *reason; /* reason of the quarantine, in words */
    bool faulted;       /* the next answer of host->faulted, given once */
    uint32_t node, handle, rank;
    struct world_context contexts[WORLD_CONTEXTS_MAX];
    struct world_segment segments[WORLD_SEGMENTS];
};

/* Two nodes' control connection; for a == b a node's link to itself. */
struct world_link {
    uint32_t a, b;
    uint32_t generation; /* an event scheduled for an older generation is void */
    bool cut;            /* the fabric is cut, and control's connection too */
    bool wanted, attempting, waiting;
    bool up[2], offered[2];
    bool lost_due[2]; /* the node died in engine_peer_lost, which must be called again */
    struct engine_offer offers[2];
    uint32_t asks, silences, holes, gone; /* notices of the two engines about each other, so far */
};

/* Makes one call into a node's engine. Returns false if the node has died in it. */
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
    uint64_t cookies;           /* cookies given out so far */
    int offload_error;          /* an error that an offload may end with, beside -ESHUTDOWN */
    uint32_t offloads_given_up; /* offloads that ended while their targets were being bound */
    uint64_t rounds;
    uint32_t reopen_rounds; /* rounds after which a node that died under the guard opens again */
    uint32_t idle;          /* rounds in a row in which nothing was done */
    world_guard *guard;     /* NULL: plain calls */
    void *guard_context;
    /* Called in the middle of engine calls, to change client memory while the engine reads it. */
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

/* Makes one round: every node takes a step, in random order, and time passes; when all are idle,
 * time jumps. Returns whether there is more to do without the clients. */
bool world_round(struct world *w);
/* Makes rounds until there is nothing left to do, at most `rounds`. Returns false if there still
 * is, or the world has failed. */
bool world_settle(struct world *w, uint64_t rounds);

/* Makes a call into a node's engine, under the guard. Returns false if the node is dead, before or
 * now. */
bool world_call(struct world *w, struct world_node *n, void (*call)(void *argument),
                void *argument);
/* Lets the daemon die at once: its arena and its clients' memory stay. */
void world_node_crash(struct world *w, uint32_t node);
/* Starts a new process that takes the arena over; `fresh`: with a new arena, and without clients.
 */
void world_node_reopen(struct world *w, uint32_t node, bool fresh);

/* ---- world_links.c --------------------------------------------------------------------------- */

void world_links_open(struct world *w);
void world_link_wanted(struct world *w, uint32_t from, uint32_t to);
void world_link_offer_ready(struct world *w, uint32_t from, uint32_t to);
/* Breaks the control connection; both ends notice that, at different times. */
void world_link_break(struct world *w, uint32_t a, uint32_t b);
/* As world_link_break, but because an engine has reported the link broken. */
void world_link_broken(struct world *w, uint32_t a, uint32_t b, int status);
struct world_link *world_link_of(struct world *w, uint32_t a, uint32_t b);
void world_link_node_gone(struct world *w, uint32_t node);
/* Cuts the fabric as well; world_link_restore lets handshakes succeed again. */
void world_link_cut(struct world *w, uint32_t a, uint32_t b);
void world_link_restore(struct world *w, uint32_t a, uint32_t b);
/* Makes both ends give the other up (engine_peer_lost). */
void world_link_lost(struct world *w, uint32_t a, uint32_t b);
/* Cuts the fabric alone: control's connection stays, and no engine is informed. */
void world_link_blackout(struct world *w, uint32_t a, uint32_t b);
/* Makes the fabric's connection lose what `from` sends, and carry what `to` sends, until
 * world_link_carry, or until the link begins again. */
void world_link_swallow(struct world *w, uint32_t from, uint32_t to);
void world_link_carry(struct world *w, uint32_t from, uint32_t to);
/* The engine of `from` asks for a sign of life, with this many bytes ahead of its own sign. */
void world_link_ask(struct world *w, uint32_t from, uint32_t to, uint64_t bytes);
/* The engine of `from` gives the peer up. */
void world_link_gone(struct world *w, uint32_t from, uint32_t to);
/* Repeats commands whose answers the node did not get before its restart. */
void world_links_resume(struct world *w, uint32_t node);
void world_link_step(struct world *w, const struct sim_entry *entry);

/* ---- world_control.c ------------------------------------------------------------------------- */

/* Makes a call. Returns false if the node is dead, before or now; then it is unknown whether the
 * command has been carried out. */
bool world_command(struct world *w, uint32_t node, struct world_command *c);
/* Makes a call, again when the node is back, until it is answered. Returns its result. */
int world_insist(struct world *w, uint32_t node, struct world_command *c);

/* ---- world_clients.c ------------------------------------------------------------------------- */

/* Opens a client with `contexts` contexts, and a segment with a region for each; its registration
 * is under way. Returns its index, or a negative errno with the failure kept. */
int world_client_open(struct world *w, uint32_t node, uint32_t rank, uint32_t contexts);
/* Ends a client, in order or by death: the engine sees no difference. */
void world_client_close(struct world *w, uint32_t client);
/* world_context_open opens one context more, with a region; world_context_close closes one, and its
 * region. A negative errno is no failure of the world. */
int world_context_open(struct world *w, uint32_t client, uint32_t context);
void world_context_close(struct world *w, uint32_t client, uint32_t context);
/* Opens a region over the context's memory, with these rights, and gives its key. */
int world_region_open(struct world *w, uint32_t client, uint32_t context, unsigned rights,
                      struct engine_key *out);
int world_spare_open(struct world *w, uint32_t client);
int world_spare_close(struct world *w, uint32_t client);
void world_client_gone(struct world_client *c);
void world_context_gone(struct world_context *x);
void world_segment_gone(struct world_segment *s);
struct world_client *world_client_by_handle(struct world *w, uint32_t node, uint32_t handle);
/* Gives the mappings to a new process that has opened the node's arena, and ends what that process
 * does not know. */
void world_clients_attach(struct world *w, uint32_t node);
/* The node's state is lost, and so are its clients. */
void world_clients_forget(struct world *w, uint32_t node);
void world_clients_free(struct world *w);
int world_submit(struct world *w, uint32_t client, uint32_t context,
                 const struct submit_record *record, const void *lid, const void *rid,
                 const void *payload);
/* world_submit_at_once submits a record that is no operation and has no local event, for example a
 * SUBMIT_COLLECTIVE; world_has_room says whether there is room for two such records. */
int world_submit_at_once(struct world *w, uint32_t client, const struct submit_record *record);
bool world_has_room(struct world *w, uint32_t client);
/* Called after a submission through a client's channel. `rc` is what the channel returned: 1 if the
 * client must ring, which this call then does; else 0. Fails the world if the daemon sleeps and the
 * client need not ring. Returns 0. */
int world_submitted(struct world *w, uint32_t client, int rc);
/* Whether the engine has taken everything that this context has submitted. */
bool world_taken(const struct world *w, uint32_t client, uint32_t context);

static inline uint64_t world_peer_of(const struct world *w, uint32_t client, uint32_t context)
{
    return pwc_peer_of(w->clients[client].rank, context);
}

/* ---- world_requests.c ------------------------------------------------------------------------ */

/* Begins a bind. Returns the index of the request. */
int world_bind(struct world *w, uint32_t client, uint32_t context, uint32_t to_client,
               uint32_t to_context, const struct engine_key *key);
int world_unbind(struct world *w, uint32_t client, uint32_t context, uint32_t remote);
/* Begins to withdraw the context's key. Returns the index of the request. */
int world_withdraw(struct world *w, uint32_t client, uint32_t context);
/* Makes rounds until the request is answered. Returns its status. */
int world_await(struct world *w, int request);
void world_request_free(struct world *w, int request);
void world_notice(struct world *w, struct world_node *n, const struct engine_notice *notice);
/* Repeats requests that were not answered before the node's restart. */
void world_requests_resume(struct world *w, uint32_t node);
/* Drops these requests, which get no answer any more; context WORLD_CONTEXTS_MAX: those of all of
 * the client's contexts. */
void world_requests_drop(struct world *w, uint32_t client, uint32_t context);

/* ---- world_census.c -------------------------------------------------------------------------- */

/* Lets all clients leave, and checks that each end is confirmed, and that every table of every node
 * is as at the start. An entry that is left over is a failure of the world. */
void world_leave(struct world *w);
/* Checks the counts that nodes keep of their tables' entries, also while these change. */
void world_check_counts(struct world *w);

#endif
