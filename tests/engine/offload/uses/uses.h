/*
 * The uses of handlers (examples/handlers) on 2 to 64 simulated nodes, with one client on each. A
 * run draws a use, nodes and troubles from its seed. In the end each operation's origin must know
 * what really happened, each handler must have run exactly once, and memory must be what a plain
 * computation says.
 *
 *     example.o --> image --> + a counter before each handler --> offloads of the clients
 *
 * The handlers are those of the object files, unchanged. In front of each stands a piece of code
 * that adds 1 to the counter of the handler's stage. A counter is part of a handler's transaction,
 * so it says how many runs have taken effect: neither a run that ends with AGAIN or FAIL nor a
 * daemon's death changes it.
 *
 * Files: image.c (images), uses.c (clients, offloads, time), operations.c (what clients submit and
 * get), troubles.c, and the uses themselves: messages.c, puts.c, logs.c,
 * array.c, paths.c, spread.c.
 * Thread: one.
 */
#ifndef PWC_TESTS_ENGINE_USES_H
#define PWC_TESTS_ENGINE_USES_H

#include "proto/handler_abi.h"
#include "tests/engine/world/messages/message_client.h"

enum {
    USES_PART = 512 * 1024, /* bytes of a client's region, and of its other memory */
    USES_STATE = 16 * 1024, /* the state of its handlers, at the start of the other memory */
    USES_OPS = 1024,
    USES_REPLY = 512, /* bytes of a reply's payload */
    USES_INDEX = 5,   /* index of the messages */
};

/* An operation of a client. */
struct use_op {
    uint32_t from, to; /* clients */
    uint64_t place;    /* place of a put, in the region */
    uint32_t length;
    uint64_t word[3]; /* words that the use gives it */
    uint32_t ends;
    int status;
    uint32_t arrivals; /* for the use: how often its effect has arrived */
    bool deferred;     /* for the use: its target's own client has had it, or the log has it */
};

struct use_reply {
    uint32_t from, to; /* clients of the request */
    uint32_t count;
    uint64_t argument[3];
    uint32_t length;
    uint8_t bytes[USES_REPLY];
};

struct use_client {
    struct message_client channel;
    int offload;                      /* handle, -1: none */
    uint32_t remote[WORLD_NODES_MAX]; /* remotes to the clients, UINT32_MAX: none */
    uint32_t targets;
    uint32_t target[WORLD_NODES_MAX]; /* targets of its offload, as clients */
    uint64_t source_at;               /* bytes of its other memory that its operations have used */
    bool silent;                      /* the client takes no events */
    bool dead;
    uint32_t events[16]; /* events of its offload, by enum offload_event; 0: of puts */
    uint32_t requests;   /* requests that its own handler has had */
};

/* How often each event of a run has happened in all runs. Where one of these stays 0, the runs have
 * not tested all that they claim to test. */
struct uses_counters {
    uint64_t operations, runs, reruns, failed, deferred;
    uint64_t cut; /* puts that were logged and have not ended */
    uint64_t breaks, cuts, deaths, ends, sleeps;
};

struct uses;

struct use {
    const char *name;   /* name of the use, in words */
    const char *object; /* name of the example */
    uint32_t least;     /* the least number of nodes */
    uint32_t flows;     /* the most flows that one handler sends to */
    bool replies;       /* clients reply to requests that handlers leave to them */
    /* Makes offloads and binds, before there is any trouble. */
    void (*open)(struct uses *u);
    /* Submits one more operation. Returns false if this is not possible now. */
    bool (*submit)(struct uses *u);
    /* A client's part of a round beside taking events, or NULL. */
    void (*turn)(struct uses *u);
    /* Takes a put that has arrived at a client, or a request that its own handler gets; or NULL. */
    void (*arrived)(struct uses *u, uint32_t client, const struct message_event *event);
    /* Checks the results, when nothing moves any more, and calls world_fail with what is wrong. */
    void (*check)(struct uses *u);
};

extern const struct use use_key_value, use_conditional_read;
extern const struct use use_ping_pong, use_accumulate, use_strided;
extern const struct use use_transaction_log, use_transaction_log_cut;
extern const struct use use_raid5;
extern const struct use use_shortest_paths, use_breadth_first;
extern const struct use use_broadcast, use_broadcast_past_dead;

struct uses {
    struct world *world;
    const struct use *use;
    struct sim_random random;
    struct handler_image *image;
    size_t image_bytes;
    uint32_t nodes, packet; /* bytes of a packet */
    uint32_t flags;         /* flags of offloads, enum engine_offload_flag, which the use draws */
    uint32_t more_flags;    /* more flags of offloads, which the use does not change */
    bool dies;              /* a daemon may die in the middle of a step */
    uint32_t doubts;        /* deaths of daemons while a handler may have been running */
    struct use_client client[WORLD_NODES_MAX];
    uint32_t wanted, count; /* how many operations the run wants, and has submitted */
    struct use_op op[USES_OPS];
    uint32_t replies;
    struct use_reply reply[USES_OPS];
    struct {
        uint32_t breaks, cuts, deaths, sleeps; /* each happens in so many of 1000 rounds */
        bool crowded;                          /* clients have other work, so handlers take turns */
        bool cut;
        uint32_t ends[2];    /* nodes of the link that is cut */
        uint64_t restore_at; /* round in which the link works again */
    } trouble;
    struct uses_counters *counters;
    _Alignas(8) uint8_t own[1 << 20]; /* memory of the use itself */
};

/* ---- image.c --------------------------------------------------------------------------------- */

/* Returns the image of an object file. Each of its handlers first adds 1 to the counter of its
 * stage, so that a test sees how often it has run. The caller frees the image. Returns NULL if the
 * file has no image, and prints why. */
struct handler_image *uses_image(const char *path, size_t *bytes);

/* ---- uses.c ---------------------------------------------------------------------------------- */

/* Makes one run. Returns NULL, or what went wrong, in `failure`. `folder` has the object files. */
const char *uses_run(const struct use *use, uint64_t seed, const char *folder, FILE *trace,
                     struct uses_counters *counters, char failure[400]);

/* These four functions are the parts of a run, for tests that set the values of a run themselves.
 * uses_begin opens the world, and the use in it. The caller sets `use`, `random`, `nodes`, `packet`
 * and `counters` before, and `wanted` before or after: some uses set `wanted` when they open.
 * Returns NULL, or what is wrong. */
const char *uses_begin(struct uses *u, const struct world_options *options, const char *folder);
/* Submits all operations, and runs until nothing moves any more. */
void uses_work(struct uses *u);
/* Lets the use check its results; then all clients leave. */
void uses_check(struct uses *u);
/* Closes the world. Returns NULL, or what went wrong, in `failure`. */
const char *uses_end(struct uses *u, char failure[400]);

static inline uint32_t uses_below(struct uses *u, uint32_t n)
{
    return (uint32_t)sim_random_below(&u->random, n);
}

/* Creates an offload of the client, with its targets: of what is put to its region, or of its
 * messages. The handlers' state has `state_bytes`. The offload is open on return. */
void uses_offload(struct uses *u, uint32_t client, bool puts, uint32_t state_bytes);
/* Ends the client's offload. */
void uses_offload_end(struct uses *u, uint32_t client);
/* Binds clients to others, `count` pairs at once, with a key to their regions or without. */
struct uses_pair {
    uint32_t from, to;
};
void uses_bind(struct uses *u, const struct uses_pair *pairs, uint32_t count, bool key);
/* Lets the client die. */
void uses_kill(struct uses *u, uint32_t client);

static inline uint8_t *uses_region(const struct uses *u, uint32_t client)
{
    return u->world->clients[client].contexts[0].memory;
}

static inline void *uses_state(const struct uses *u, uint32_t client)
{
    return u->world->clients[client].contexts[1].memory;
}

/* How many runs of the client's handlers at this stage have taken effect. */
uint64_t uses_counted(const struct uses *u, uint32_t client, enum handler_stage stage);
/* How many sends of the client's handlers have taken effect, and how many of these have failed. */
uint64_t uses_sent(const struct uses *u, uint32_t client);
uint64_t uses_sends_failed(const struct uses *u, uint32_t client);
/* Fails the run unless the handlers of a client have run so often. */
void uses_expect(struct uses *u, uint32_t client, uint64_t headers, uint64_t payloads);
void uses_expect_events(struct uses *u, uint32_t client, uint32_t event, uint32_t count);

/* ---- operations.c ---------------------------------------------------------------------------- */

/* The number of packets of a put of this length. */
static inline uint32_t uses_packets(const struct uses *u, uint32_t length)
{
    return length == 0 ? 1 : (length + u->packet - 1) / u->packet;
}

/* Returns the room for this many bytes of one more operation of this client, or NULL without room.
 */
uint8_t *uses_room(struct uses *u, uint32_t client, uint32_t length);
/* Submits the next operation: a put of the bytes in that room, with the completion id `id`. */
bool uses_put(struct uses *u, const struct use_op *op, const uint8_t *bytes, uint64_t id);
/* Submits the next operation: a message with the op's words as arguments. */
bool uses_message(struct uses *u, const struct use_op *op, uint32_t words, const uint8_t *bytes,
                  bool wants_reply);
/* Writes the bytes of operation `number`. */
void uses_fill(uint8_t *to, uint32_t number, uint32_t length);
/* Takes all events. Returns whether there were any. */
bool uses_look(struct uses *u);
/* Whether a handler may have run on the operation when a daemon died, so that its work may be done
 * or not. */
bool uses_in_doubt(const struct uses *u, const struct use_op *op);
/* Checks that each operation has ended once, with the status that `status` gives for it, or well if
 * `status` is NULL. As many operations as daemons have died may be in doubt instead. */
void uses_expect_ends(struct uses *u, int (*status)(const struct uses *u, const struct use_op *op));
/* Returns reply number `n` of the replies that handlers at client `to` gave to client `from`, or
 * NULL. */
const struct use_reply *uses_reply(const struct uses *u, uint32_t from, uint32_t to, uint32_t n);

/* ---- troubles.c ------------------------------------------------------------------------------ */

void uses_troubles_draw(struct uses *u);
/* Brings about the troubles of one round. */
void uses_trouble(struct uses *u);
/* Makes all links and nodes work again, and all clients take events. */
void uses_heal(struct uses *u);

#endif
