/*
 * The engine: sessions, operations, ledgers, credits and protocols, as one pure state machine.
 *
 * The engine has no clock, socket, allocation, libuv or libfabric: the caller gives it an arena, a
 * fabric, a host (to wake clients and draw random bytes), and the time at each step. All its state
 * that must outlive the process stands in the arena. engine_open is the only constructor, for a
 * fresh arena and for one that a dead engine left.
 *
 * Thread: the progress thread makes every call here. Results that come later are notices
 * (engine_notice), identified by the caller's cookie or by the handle that the call returned.
 *
 * All results: 0 or more, or a negative errno.
 */
#ifndef PWC_ENGINE_ENGINE_H
#define PWC_ENGINE_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "daemon/engine/coll/table.h"
#include "daemon/engine/watch/histogram.h"
#include "daemon/fabric/fabric.h"
#include "proto/session_abi.h"
#include "views/rows.h"

#define ENGINE_JOB_MAX   60u /* a job's name, terminator included */
#define ENGINE_PEERS_MAX 16384u
#define ENGINE_TEAMS     1024u /* teams of an engine: a team's place is its handle modulo this */
#define ENGINE_PAIRS_MAX (1u << 20) /* binds, too: cookie_of_op has 20 bits for a flow */
/* Bytes of a chunk (engine_config.chunks_max). */
#define ENGINE_CHUNK_BYTES 16384u

struct engine;
struct trace_ring;
struct handler_image;

/* Which end of a flow: each end's engine has a number for it. */
enum engine_flow_end {
    ENGINE_FLOW_TARGET = 0,
    ENGINE_FLOW_ORIGIN = 1,
};

/* Calls that the engine makes to the outside; owned by the caller, outlives the engine. */
struct engine_host {
    void *context;
    /* Wake the client that sleeps on this session (mode: DOORBELL_FUTEX or DOORBELL_FD). Must not
     * block. */
    void (*wake)(void *context, uint32_t session, uint32_t mode);
    void (*random)(void *context, void *to, size_t size);
    /* Reads the clock that engine_step's time is from; called a few times in a step that has work.
     * NULL: all of a step happens at the step's time. */
    uint64_t (*clock)(void *context);
    /* How often the caller's thread was preempted: read when a handler has used up its time. NULL:
     * never. */
    uint64_t (*switches)(void *context);
    /* Fences for all clients that have registered for it; 0 or a negative errno. NULL: each side of
     * a doorbell fences for itself. */
    int (*fence)(void *context);
    /* Whether memory of this client has faulted since the last call (sigbus.h). NULL: never. */
    bool (*faulted)(void *context, uint32_t client);
    /* Whether the area of this open team has faulted since the last call. NULL: never. */
    bool (*area_faulted)(void *context, uint32_t team);
    /* Whether the memory of any client or any area has faulted. The engine calls this at each step,
     * so the host answers with one load. NULL: never. */
    bool (*any_faulted)(void *context);
    /* Makes another engine of this node call engine_wake(e, flow, end). NULL: there is no other
     * engine. */
    void (*wake_sibling)(void *context, uint32_t number, uint32_t flow, enum engine_flow_end end);
};

enum engine_protocol {
    ENGINE_PROTOCOL_AUTO = 0,       /* chosen by the fabric's ordering guarantee */
    ENGINE_PROTOCOL_ORDERED = 1,    /* payload and record are sent back to back on an ordered
                                     * fabric */
    ENGINE_PROTOCOL_REASSEMBLE = 2, /* payload and record are both announced, and matched at
                                     * the target by nonce */
    ENGINE_PROTOCOL_CHAIN = 3,      /* the record leaves after the payload's completion */
};

/* The most that packed_max may be, on any node: the length of a Medium's block has 16 bits. */
#define ENGINE_PACKED_MAX 65368u

/* Zero means the default. Numbers, table sizes and packed_max are fixed for the life of an arena;
 * everything else may differ at the next start. */
struct engine_config {
    uint32_t self;   /* our own number among the peers */
    uint32_t peers;  /* how many peers there are, or can be */
    uint32_t stride; /* default `peers`; if less, the numbers of one machine's engines differ by
                      * multiples of it. A peer takes memory once it is used */
    uint32_t clients_max;  /* 256 */
    uint32_t sessions_max; /* 512: contexts of all clients */
    uint32_t segments_max; /* 1024 */
    uint32_t regions_max;  /* 16384 */
    uint32_t remotes_max;  /* 65536: binds */
    uint32_t flows_max;    /* 65536: pairs (context here, context there), and one more for each pair
                            * that replies use; as many inbound */
    uint32_t chunks_max;   /* 4096 of 16 KiB: queued operations, spilled events */
    uint64_t ledger_bytes; /* 64 MiB: memory for staging and inbound rings */
    uint64_t team_bytes;   /* 16 times that of all chunks: for teams, touched as it is used */
    uint32_t program_bytes; /* 8 MiB: memory for the images of programs, touched as it is used */
    uint32_t ledger_start;  /* 16 KiB: size of a new ledger */
    uint32_t ledger_max;    /* 1 MiB: size up to which a ledger may grow */
    uint32_t packed_max;    /* 4096: longest packed payload, and that of a Medium */
    uint32_t spill_max;     /* 1 MiB: events kept for a context that does not drain its ring; events
                             * beyond that are refused */
    uint32_t ops_max;       /* 262144: operations in flight of one context */
    /* The quota of one client, and of all clients of one user (quota.h). Default: seven eighths of
     * the whole, and for chunks_client the whole. */
    uint32_t binds_client, binds_user;
    uint32_t pairs_client, pairs_user;
    uint32_t chunks_client, chunks_user;
    /* How many of ENGINE_TEAMS one user's teams may be, and their memory; the same default. */
    uint32_t teams_user;
    uint64_t team_bytes_user;
    uint32_t handler_units; /* 10000: units of work that one handler may do */
    uint32_t handler_us;    /* 50: microseconds that one handler may take */
    uint32_t handler_turn;  /* 2048: units of one client's turn */
    uint32_t handler_share; /* 25: percent of the time for all handlers, beside other work */
    uint32_t protocol;      /* enum engine_protocol */
    uint32_t stripe_min;    /* 64 KiB: payloads of this length or more travel over all rails at
                             * once */
    uint32_t piece_bytes;   /* 256 KiB: what one write or read of a payload moves, a power of 2 */
    uint32_t window_bytes;  /* 1 MiB: payloads on their way to and from one peer, roughly */
    struct coll_choices
        collectives;           /* of teams opened from now on; the same at all engines of a team */
    uint64_t keepalive_ns;     /* 1 s: a peer that something waits for is asked for a sign of life
                                * after this long without one; ENGINE_NO_KEEPALIVE: never */
    uint64_t peer_deadline_ns; /* 5 s: a peer that is silent for this long is given up; the interval
                                  is at most a fifth of this */
};
#define ENGINE_NO_KEEPALIVE UINT64_MAX

/* Fills in the defaults. -EINVAL: a value is out of range. */
int engine_config_check(struct engine_config *config);
/* Bytes that the arena and the private memory take. The arena must be page aligned and zeroed when
 * new. */
size_t engine_arena_bytes(const struct engine_config *config);
size_t engine_private_bytes(const struct engine_config *config);

/* How many memories the engine has registered with its fabric at most. */
uint32_t engine_memories_max(const struct engine_config *config);
/* Whether engine_open can take over this arena (engine_arena_bytes, mapped): it has this layout,
 * and is not new. */
bool engine_arena_fits(const struct engine_config *config, const void *arena);
/* The numbers of pairs and binds that an arena has room for. The first page must be mapped.
 * -EUCLEAN: the arena has another version. */
int engine_arena_sizes(const void *arena, uint32_t *pairs, uint32_t *binds);

/*
 * Opens a new or an inherited arena. `memory` (engine_private_bytes, zeroed) holds what dies with
 * the process. The fabric is new in both cases. After opening an inherited arena, and before the
 * first step, the caller reports what it has inherited itself:
 *
 *     the arena has       the caller has   the caller                  then
 *     a client            its connection   keeps it                    the client resumes
 *     a client            no connection    engine_client_close         the client ends
 *     a session, segment  its mapping      engine_*_inherit            the entry resumes
 *     a session, segment  no mapping       does nothing                the first step closes it
 *     a region            no answer yet    engine_region_close         the region ends
 *
 * engine_view_clients, engine_view_regions and engine_*_find list these entries.
 *
 * Until the first step a context whose session is not inherited cannot be opened again
 * (-EADDRINUSE). The caller repeats calls whose results the earlier process has not seen.
 */
int engine_open(const struct engine_config *config, void *arena, void *memory,
                struct fabric *fabric, const struct engine_host *host, uint64_t now,
                struct engine **out);

/* ---- clients, from the control thread's commands --------------------------------------------- */

struct engine_client_info {
    uint32_t uid;
    uint32_t pid;
    uint32_t rank;
    uint32_t size;
    char job[ENGINE_JOB_MAX];
};

/* Returns a client handle, or -EADDRINUSE (the rank is live), -ENOSPC, -EINVAL. */
int engine_client_open(struct engine *e, const struct engine_client_info *info);
/* Closes the client in order: revokes its regions, drains its flows, frees its entries.
 * ENGINE_CLIENT_CLOSED follows when none of its memory is in use. */
void engine_client_close(struct engine *e, uint32_t client);

/* Shows all sessions the number of the processor that the progress thread runs on. To be called
 * before the first session opens, and for each change. */
void engine_set_processor(struct engine *e, uint32_t processor);

/*
 * A context: `base` is the session's mapping (session_abi.h), which the caller makes and zeroes;
 * the engine fills in its header. `mark` is a number of the caller's, which engine_session_find
 * returns. Returns a session handle or an error.
 */
int engine_session_open(struct engine *e, uint32_t client, uint32_t context, void *base,
                        const struct session_sizes *sizes, uint32_t mark);
int engine_session_inherit(struct engine *e, uint32_t session, void *base);
/* Closes a context in order, for its client. ENGINE_SESSION_CLOSED follows when the mapping may
 * go. */
void engine_session_close(struct engine *e, uint32_t session);

/* A handle that is given again has the next of its generations, modulo this number. */
#define ENGINE_GENERATIONS 8u

/* Describe how a session or segment was made. -ENOENT: there is none. */
struct engine_session_found {
    uint32_t client, context;
    uint32_t generation;
    struct session_sizes sizes;
    uint32_t mark;
    uint32_t offloads; /* offloads of the context */
    bool closing;
};
int engine_session_find(const struct engine *e, uint32_t session, struct engine_session_found *out);
struct engine_segment_found {
    uint32_t client;
    uint32_t generation;
    uint64_t length;
    bool closing;
};
int engine_segment_find(const struct engine *e, uint32_t segment, struct engine_segment_found *out);

/* Opens a segment and registers it with the fabric; ENGINE_SEGMENT_READY has the result. Returns a
 * handle or an error. */
int engine_segment_open(struct engine *e, uint32_t client, void *base, uint64_t length);
int engine_segment_inherit(struct engine *e, uint32_t segment, void *base);
/* Closes a segment without regions (else -EBUSY). ENGINE_SEGMENT_CLOSED follows when the mapping
 * may go. */
int engine_segment_close(struct engine *e, uint32_t client, uint32_t segment);

struct engine_key {
    uint32_t node;
    uint32_t slot;
    uint32_t generation;
    uint32_t reserved;
    uint8_t secret[16];
};

enum engine_rights {
    ENGINE_REMOTE_WRITE = 1 << 0,
    ENGINE_REMOTE_READ = 1 << 1,
};

int engine_region_open(struct engine *e, uint32_t client, uint32_t segment, uint64_t offset,
                       uint64_t length, unsigned rights, struct engine_key *out);
/* Withdraws a region in two phases; ENGINE_REGION_CLOSED (with `cookie`) follows when no peer can
 * reach it any more. Returns 1 when it is being withdrawn already; its end is then reported with
 * this cookie instead. -EBUSY: the region is a window of an offload. */
int engine_region_close(struct engine *e, uint32_t client, uint32_t slot, uint32_t generation,
                        uint64_t cookie);

/* Binds the session to `endpoint` at `peer`, and to the region of `key` where that is given.
 * ENGINE_BOUND brings the handle. */
int engine_bind(struct engine *e, uint32_t session, uint32_t peer, uint64_t endpoint,
                const struct engine_key *key, uint64_t cookie);
int engine_unbind(struct engine *e, uint32_t session, uint32_t remote);

/* Where a bind leads, in numbers of the engine that the endpoint belongs to. */
struct engine_way {
    uint32_t inflow; /* the flow's inflow at that engine; UINT32_MAX: the remote is not bound */
    uint32_t has_key;
    uint32_t slot, generation; /* of the region */
};

/* The target end of a way, for a context that reaches the target without the engines. */
struct engine_neighbour {
    uint32_t session; /* of the endpoint; UINT32_MAX: it is not here */
    uint32_t segment; /* of the region; UINT32_MAX: bound without a key */
    uint64_t offset;  /* of the region */
};

/* Called at the endpoint's engine, for a way from the engine `origin`. Returns 0, or -ENOENT when
 * the way leads nowhere any more. The handles are valid until the next call or step. */
int engine_neighbour(const struct engine *e, uint32_t origin, const struct engine_way *way,
                     struct engine_neighbour *out);
/* The next step wakes the context at this end of a flow from or to a sibling, if the context
 * sleeps. */
void engine_wake(struct engine *e, uint32_t flow, enum engine_flow_end end);

/* ---- programs, from the control thread's commands -------------------------------------------- */

/* Limits for the programs of all clients together; an image takes a multiple of the unit. */
#define ENGINE_PROGRAMS_MAX 1024u
#define ENGINE_PROGRAM_UNIT 1024u

/* The bytes of memory that an image of `bytes` takes. */
uint32_t engine_program_room(uint32_t bytes);

/* Keeps a copy of an image that image_check (daemon/handlers/image.h) has let pass, and that nobody
 * else can write to. The program is unloaded with its client at the latest. Returns a program
 * handle, or -ENOSPC (no entry or no memory is left), -EINVAL. */
int engine_program_load(struct engine *e, uint32_t client, const struct handler_image *image,
                        uint32_t bytes);
/* Frees the program. Returns the bytes that became free; -EBUSY: an offload runs it; -EINVAL: this
 * client has no such program. */
int engine_program_unload(struct engine *e, uint32_t client, uint32_t program);

/* ---- offloads, from the control thread's commands -------------------------------------------- */

#define ENGINE_OFFLOAD_TARGETS 1024u

enum engine_offload_flag {
    ENGINE_OFFLOAD_QUIET = 1 << 0, /* no event for messages that its handlers deal with */
    ENGINE_OFFLOAD_REPEATABLE =
        1 << 1,                      /* the handler that ran when the daemon died may run again */
    ENGINE_OFFLOAD_KEEP = 1 << 2,    /* a fault does not disable the offload, unless by units or
                                      * time */
    ENGINE_OFFLOAD_PLACED = 1 << 3,  /* puts are placed in the region, and handled there */
    ENGINE_OFFLOAD_OBSERVE = 1 << 4, /* the header handler runs on gets of peers, too */
    ENGINE_OFFLOAD_FLAGS = (1 << 5) - 1,
};

/* A part of a region of the client's, at a multiple of 64 bytes of its segment. */
struct engine_range {
    uint32_t slot, generation; /* the region's */
    uint64_t offset, length;   /* length 0: none */
};
#define ENGINE_OFFLOAD_STATE_MAX (UINT64_C(1) << 20)

#define ENGINE_OFFLOADS_MAX 1024u /* of all clients */

struct engine_offload_info {
    uint32_t program;         /* handle */
    enum offload_takes takes; /* messages; or puts, to the whole region of `host` */
    uint32_t index;           /* of the context's active messages */
    uint32_t flags;           /* enum engine_offload_flag */
    uint32_t target_count;
    const uint32_t *targets; /* remotes that the context has bound, to contexts or to regions, and
                              * keeps until ENGINE_OFFLOAD_READY */
    uint64_t cookie;         /* the client's own word, which each of its events has */
    struct engine_range state, host, scratch; /* the windows of the same names */
};

/*
 * Joins a program to an index of a context's messages, or to a region: the program's handlers get
 * what arrives there. Puts to such a region travel as packets of one record each; gets from it are
 * as usual; all else that writes to it ends with -EOPNOTSUPP.
 * ENGINE_OFFLOAD_READY comes with `cookie` when the offload has bound its targets in its own name.
 * Until then messages fail with -ESHUTDOWN; after a restart the caller repeats the call. From then
 * on, binds by contexts of this node get no way to this client besides that through the engines.
 * The offload holds the program and the regions, which cannot be closed meanwhile. Returns a
 * handle, or -EADDRINUSE (the index or the region has an offload), -EBUSY (a context of this node
 * has bound the context, or some context has bound the region), -EDQUOT (binds of its targets),
 * -EINVAL (no such program, context or target; a region without the right to write), -ERANGE
 * (memory), -ENOSPC.
 */
int engine_offload_create(struct engine *e, uint32_t session,
                          const struct engine_offload_info *info, uint64_t cookie);
/* Ends an offload. Messages that arrive from now on go to the client's own handler; puts to the
 * region end with -ESHUTDOWN, until the region has another offload. Messages and puts that handlers
 * have begun, or that wait for room, end in the same way; a put is cut. -EAGAIN: there are many
 * puts to cut, which takes some steps; the caller repeats the call, and nothing begins meanwhile.
 * After a restart the offload ends even if the call is not repeated (ENGINE_OFFLOAD_CLOSED).
 * -EINVAL: this context has no such offload, or ENGINE_OFFLOAD_READY has not come yet. */
int engine_offload_destroy(struct engine *e, uint32_t session, uint32_t offload);
/* Disabled: operations that arrive fail with -ESHUTDOWN, and puts that handlers have begun are cut.
 * -EAGAIN as above, but the offload becomes disabled even if the call is not repeated. Enabled:
 * handlers run on them again. */
int engine_offload_disable(struct engine *e, uint32_t session, uint32_t offload);
int engine_offload_enable(struct engine *e, uint32_t session, uint32_t offload);

/* ---- teams, from the control thread's commands ----------------------------------------------- */

/* An engine that has members of a team, this engine included; numbered by its lowest team rank. */
struct engine_team_participant {
    uint32_t peer;    /* the number of its node and engine */
    uint32_t members; /* at least 1 */
};

/* A member that is a context here. */
struct engine_team_member {
    uint32_t rank; /* in the team */
    uint32_t session;
};

struct engine_team_info {
    uint64_t number; /* the team's number, never 0, and unique among the teams of an engine */
    uint32_t size;   /* ranks in all: the sum of the participants' members */
    uint32_t window; /* a power of two, up to TEAM_WINDOW_MAX */
    uint32_t me;     /* the number of the participant that is this engine */
    uint32_t participants, members;
    const struct engine_team_participant *list; /* by number */
    const struct engine_team_member *local;     /* by rank; as many as list[me].members */
    const struct coll_choices *choices;         /* algorithms of its collectives; NULL: those of the
                                                 * engine */
};

/*
 * Opens a team. `area` is the mapping that its members here share (team_abi.h), formatted for as
 * many members and that window. The engine sets aside all memory that the team's letters may need,
 * so that no letter ever lacks memory. Every engine of the team must have opened it before any
 * member may use it. The arrays of `info` are copied. All members are of one user. Returns a team
 * handle, or -ENOSPC (1024 teams are open), -ENOMEM (no memory, or the team needs more than one
 * team may have), -EDQUOT (the user has its teams_user), -ENOBUFS (the user's teams have their
 * team_bytes_user), -EADDRINUSE (the number is in use), -EINVAL.
 */
int engine_team_open(struct engine *e, const struct engine_team_info *info, void *area);
/* After a takeover, before the first step: gives an open team its area. The first step breaks a
 * team that got none. -EINVAL: there is no such team. */
int engine_team_inherit(struct engine *e, uint32_t team, void *area);
/* Describes how the team in entry `index` of 1024 was opened. -ENOENT: there is none. */
struct engine_team_found {
    uint32_t handle;
    uint64_t number;
    uint32_t size, window, me;
    uint32_t participants, members;
    struct coll_choices choices; /* of its algorithms */
    int32_t status;              /* 0, or the error with which it broke */
};
int engine_team_find(const struct engine *e, uint32_t index, struct engine_team_found *out);
/* A participant of an open team, by an index below their number. */
struct engine_team_participant engine_team_participant(const struct engine *e, uint32_t team,
                                                       uint32_t index);
/* Whether a member of an open team has left, by an index below their number. */
bool engine_team_has_left(const struct engine *e, uint32_t team, uint32_t index);
/* Breaks the team everywhere: each call that has not ended ends once, with -EHOSTDOWN. A second
 * break has no effect. */
void engine_team_break(struct engine *e, uint32_t team);
/* The member leaves in order, after all of its calls have ended. ENGINE_TEAM_CLOSED comes when all
 * members have left and the area may go. A session that ends without this call breaks the team with
 * -EHOSTDOWN, and then counts as one that has left. */
void engine_team_leave(struct engine *e, uint32_t team, uint32_t session);
/* The member leaves because it could not take part, which breaks the team with -EHOSTDOWN. */
void engine_team_abandon(struct engine *e, uint32_t team, uint32_t session);

/* ---- peers, from the handshake --------------------------------------------------------------- */

/* The data that an engine adds to its node's side of the handshake, which authenticates it. */
struct engine_offer {
    uint32_t peer; /* the number of the engine that offers */
    uint32_t incarnation;
    uint64_t state_id;
    uint64_t peer_state_id; /* the receiver's state_id as we remember it; 0: we do not */
    uint64_t consumed;      /* ledger position up to which we have consumed the receiver's
                             * records */
    uint64_t ring_address;  /* our inbound ring for the receiver */
    uint64_t ring_key;
    uint32_t ring_bytes;
    uint32_t flags;
    struct fabric_address address;
};

/* Makes our offer for the handshake that ENGINE_WANT_PEER has asked for. -EAGAIN: the ring is being
 * registered; call again after ENGINE_OFFER_READY, or ask anew after ENGINE_PEER_BROKEN, where
 * there is no ring. -ENOMEM, or the fabric's error: there is no ring now. */
int engine_offer(struct engine *e, uint32_t peer, struct engine_offer *out);
/* The handshake has succeeded. -EPROTO, -EINVAL: the peer's offer makes no sense. -EMSGSIZE: its
 * ring is longer than our ledger_max, or too short for our packed_max. */
int engine_peer_up(struct engine *e, uint32_t peer, const struct engine_offer *theirs);
/* The link is gone; the engine keeps unfinished operations and asks for a link again
 * (ENGINE_WANT_PEER). */
void engine_peer_down(struct engine *e, uint32_t peer);
/* The peer is given up: everything towards it ends. */
void engine_peer_lost(struct engine *e, uint32_t peer);
/*
 * Gives the peer the sign of life that it has asked for, through the fabric. On entry *bytes is the
 * number of the peer's bytes that may precede the sign of life that came with its question; on
 * return, the number of our bytes that may precede ours. -EAGAIN: enough is on its way to the peer
 * already; -ENOTCONN: there is no link.
 */
int engine_beat(struct engine *e, uint32_t peer, uint64_t *bytes);
/* The peer has answered our ping, and has named the bytes that may precede its sign of life. */
void engine_peer_answered(struct engine *e, uint32_t peer, uint64_t bytes);

/* ---- progress -------------------------------------------------------------------------------- */

/*
 * One round of progress. `budget` bounds it: about four budgets of records from each context, one
 * budget from each peer, and from all peers together one for each context, up to sixteen. Returns
 * the work done (0: there was nothing to do). *deadline becomes the time (ns) of the next timed
 * action, or UINT64_MAX.
 */
int engine_step(struct engine *e, uint64_t now, int budget, uint64_t *deadline);
/* The parts of a step, and what its caller does between two steps. */
enum engine_part {
    ENGINE_COMMANDS = 1, /* the caller's */
    ENGINE_INTAKE = 2,   /* taking submissions */
    ENGINE_PEERS = 3,    /* records, operations and events, to and from peers */
    ENGINE_POLL = 4,     /* the fabric's poll */
    ENGINE_SWEEP = 5,    /* the sweep of entries that leave */
};
/* The part of the last step that took longest, and its time, where the step has ended at `now`. The
 * engine reads the clock only after a part with much to do; the time of other parts counts for the
 * part after them. */
enum engine_part engine_slowest(const struct engine *e, uint64_t now, uint64_t *ns);
/* The progress thread will sleep soon: acknowledgements leave at once instead of waiting for a
 * record. */
void engine_hasten(struct engine *e, bool hasten);
/* Whether the last step has shown something to a client. If so, and if the client shares our core,
 * the caller lets it run. */
bool engine_published(const struct engine *e);
/* Before sleeping: arms the doorbells of all sessions. -EAGAIN: work has appeared, and no doorbell
 * is armed. */
int engine_arm(struct engine *e);
/* Before polling for a while: clients that submit need not ring the doorbell. */
void engine_disarm(struct engine *e);

enum engine_notice_kind {
    ENGINE_WANT_PEER = 1,      /* peer */
    ENGINE_OFFER_READY = 2,    /* peer */
    ENGINE_SEGMENT_READY = 3,  /* handle, status */
    ENGINE_SEGMENT_CLOSED = 4, /* handle */
    ENGINE_REGION_CLOSED = 5,  /* cookie */
    ENGINE_BOUND = 6,          /* cookie, status, handle, length, rights */
    ENGINE_SESSION_CLOSED = 7, /* handle */
    ENGINE_CLIENT_CLOSED = 8,  /* handle */
    ENGINE_QUARANTINED = 9,    /* handle (client), reason: the caller closes the client */
    ENGINE_PEER_BROKEN =
        10, /* peer, status: the fabric or the peer's records failed; drop the link */
    ENGINE_PEER_SILENT = 11,    /* peer, length: ask it for a sign of life (engine_beat there);
                                   `length` bytes of ours may precede our own */
    ENGINE_PEER_GONE = 12,      /* peer: silent for the whole deadline; give it up */
    ENGINE_FABRIC_FAILED = 13,  /* status: the fabric no longer delivers anything, from any peer */
    ENGINE_TEAM_CLOSED = 14,    /* handle: its area may go */
    ENGINE_OFFLOAD_READY = 15,  /* handle, cookie, status: on an error the offload is gone */
    ENGINE_OFFLOAD_CLOSED = 16, /* handle (context): an offload that was to be destroyed has gone */
    ENGINE_LEDGERS_FAILED =
        17, /* status: the ledgers' memory is not registered: no link can begin */
};

struct engine_notice {
    uint32_t kind;
    int32_t status;
    uint32_t handle;
    uint32_t peer;
    uint64_t cookie;
    uint64_t length;
    uint32_t rights;
    const char *reason; /* a constant string */
    /* For ENGINE_BOUND: where the bind leads, and to which session if the endpoint is a client of
     * this engine. */
    struct engine_way way;
    struct engine_neighbour neighbour;
};

/* Returns 1 with the next notice, 0 when there is none. */
int engine_notice(struct engine *e, struct engine_notice *out);
bool engine_notice_pending(const struct engine *e);

/* ---- looking inside -------------------------------------------------------------------------- */
/*
 * Each call fills up to `room` rows from `*from` on, moves `*from`, and returns the number of rows.
 *
 * Any thread may look while the progress thread runs, which does not wait for it. Each word of a
 * row is whole, but the words may be of different moments, and a row may describe something that is
 * just beginning or ending. No thread may unmap a session's memory while another thread looks.
 */

/* Sums over all contexts since this process opened the engine, closed contexts included. */
struct engine_totals_view {
    uint64_t put_ops, get_ops, am_ops, put_bytes, get_bytes, am_bytes;
    uint64_t atomic_ops, atomic_bytes;
    uint64_t errors, delivered, spilled;
};

/* Teams, and the collectives that members here have called since this process began. Only teams of
 * several engines count: members of one engine do without it. */
struct engine_teams_view {
    uint64_t teams;        /* open now, those of one engine included */
    uint64_t broken;       /* teams that have broken */
    uint64_t calls, bytes; /* calls that have ended; bytes of one member's operand, summed */
    uint64_t failed;       /* calls that were under way when their team broke */
    uint64_t under_way, oldest_ns; /* calls now, and how long the oldest one has been */
};

/* Offloads, and what handlers have done since this process began, also for offloads that are
 * gone. */
struct engine_offloads_view {
    uint64_t offloads, disabled; /* now */
    uint64_t runs, units;        /* of handlers */
    uint64_t messages, bytes;    /* messages that have ended; bytes of their payloads */
    uint64_t dropped;            /* how many of these bytes were dropped */
    uint64_t deferred, failed;   /* messages left to their clients; messages that failed */
    uint64_t faults;
    uint64_t sends, sends_failed; /* sends by handlers; those that ended with an error */
};

enum { ENGINE_REGION_OPEN = 1 }; /* the region's state in a view: not being withdrawn */

/* Steps of operations whose time is counted (latency.h), if the operation succeeds. */
enum engine_latency {
    ENGINE_LATENCY_QUEUED = 0, /* from taken to posted */
    ENGINE_LATENCY_FABRIC = 1, /* for an operation of the fabric: from posted to completed */
    ENGINE_LATENCY_LOCAL = 2,  /* from taken to its local completion */
    ENGINE_LATENCIES
};

/* The latencies of a peer that has had operations, in nanoseconds, since this process began. 1023
 * peers have a row of their own; all others share one. */
#define ENGINE_LATENCY_SHARED UINT32_MAX
struct engine_latency_view {
    uint32_t peer;
    const struct histogram *steps; /* ENGINE_LATENCIES of them; the engine's own memory, which it
                                    * keeps changing */
};

/* Records what happens from now on into a ring of the caller's (trace_ring.h); NULL: stops. */
void engine_trace(struct engine *e, struct trace_ring *ring);

int engine_view_clients(const struct engine *e, uint32_t *from, struct view_client *rows, int room);
/* In a row `session` is the context's handle + 1, and the counts of operations through pairs are
 * missing: the caller adds them. `now` is of the clock of engine_step, which the clients use
 * too. */
int engine_view_sessions(const struct engine *e, uint64_t now, uint32_t *from,
                         struct counters_session *rows, int room);
/* In a row `node` is the peer's number + 1. */
int engine_view_peers(const struct engine *e, uint32_t *from, struct counters_peer *rows, int room);
int engine_view_regions(const struct engine *e, uint32_t *from, struct view_region *rows, int room);
/* The programs of all clients; `bytes` is the memory that a program takes. */
int engine_view_programs(const struct engine *e, uint32_t *from, struct view_program *rows,
                         int room);
/* Copies the image of a program, and names its client. Returns the image's bytes, or -ENOENT. The
 * copy may be torn when the program is being unloaded; image_check then refuses it. */
int engine_view_image(const struct engine *e, uint32_t program, void *to, uint32_t size,
                      uint32_t *client);
int engine_view_offloads(const struct engine *e, uint32_t *from, struct view_offload *rows,
                         int room);
/* The row of one offload: 0, or -ENOENT: this session has no such offload. */
int engine_view_offload(const struct engine *e, uint32_t session, uint32_t offload,
                        struct view_offload *row);
void engine_view_offload_sums(const struct engine *e, struct engine_offloads_view *out);
/* The rows of the table of collectives that are in force, or have had calls. */
int engine_view_collectives(const struct engine *e, uint32_t *from, struct view_collective *rows,
                            int room);
/* `now` is of the clock of engine_step. */
void engine_view_teams(const struct engine *e, uint64_t now, struct engine_teams_view *out);
/* How long the oldest call of this team has been under way; 0: none is. */
uint64_t engine_view_oldest_call(const struct engine *e, uint32_t team, uint64_t now);
/* A place in the operations of all flows; 0: before the first one. */
struct engine_ops_at {
    uint32_t flow;
    uint64_t slot;
};
/* Operations of one flow and so of one client, the oldest first; the next call goes on behind them,
 * in this flow or the next. 0: there are no more. */
int engine_view_ops(const struct engine *e, struct engine_ops_at *at, struct view_op *rows,
                    int room);
/* False: contexts are ending at this moment; the caller looks again. */
bool engine_view_totals(const struct engine *e, struct engine_totals_view *out);
int engine_view_latencies(const struct engine *e, uint32_t *from, struct engine_latency_view *rows,
                          int room);

#endif
