/*
 * The only way of tests into the engine's tables: views of entries (`peek_`), and changes that
 * bring about what a peer or a client cannot, such as memory that has run out (`poke_`). A test
 * reaches no field of daemon/engine/state/state.h on its own; it takes from there constants and
 * states only. Thread: the one that steps the engine.
 */
#ifndef PWC_TESTS_ENGINE_PEEK_H
#define PWC_TESTS_ENGINE_PEEK_H

#include <stdbool.h>
#include <stdint.h>
#include "daemon/engine/engine.h"
#include "daemon/engine/state/state.h"

/* ---- entries of tables ----------------------------------------------------------------------- */

struct peek_session {
    enum session_life state;
    uint64_t spill_bytes;
    uint32_t ends_due;  /* reports about peers that wait for room */
    bool replied;       /* a reply event has been posted */
    bool reply_dropped; /* reply event space was given back without an event */
    uint32_t chunks;    /* chunks that its flows' operations take */
};

struct peek_remote {
    enum remote_state state;
    uint32_t asked; /* BINDs that are not answered */
    bool revoke_due;
};

struct peek_flow {
    enum flow_state state;
    uint32_t peer;
    uint64_t started, staged;
    uint64_t posted; /* bytes that have left of the payload under way */
    bool held;
    uint32_t epoch; /* how often the flow was sent back */
    uint32_t replies_expected;
};

struct peek_inflow {
    enum inflow_state state;
    uint32_t peer;
    bool has_reply_flow;
};

struct peek_region {
    enum region_state state;
    uint32_t client;
    uint64_t cookie;
};

struct peek_peer {
    enum link_state link;
    uint64_t staged, posted, consumed, acked; /* positions in the ledgers */
    uint16_t runs;                            /* number of the next run */
    bool overtaken; /* a later inbound run has landed before the next one */
    uint32_t nonces_free, voids;
    uint64_t notes_waiting; /* control records that are not staged, verdicts not counted */
    uint32_t answers_owed;
    uint32_t rings_leaving; /* rings whose memory the fabric has not dropped yet */
    bool ring_offered;      /* a larger inbound ring is on offer */
    uint32_t drops;
    uint32_t pause_ns;
    uint64_t payload_bytes; /* bytes that are under way in both directions */
    uint32_t ledger_bytes;  /* bytes of both rings */
};

struct peek_session peek_session(const struct engine *e, uint32_t session);
struct peek_remote peek_remote(const struct engine *e, uint32_t remote);
struct peek_flow peek_flow(const struct engine *e, uint32_t flow);
struct peek_inflow peek_inflow(const struct engine *e, uint32_t inflow);
struct peek_region peek_region(const struct engine *e, uint32_t region);
struct peek_peer peek_peer(const struct engine *e, uint32_t peer);
enum segment_state peek_segment(const struct engine *e, uint32_t segment);

/* Whether the first grant is given, and whether its withdrawal is under way. */
bool peek_grant_given(const struct engine *e);
bool peek_grant_asked(const struct engine *e);

/* ---- counts ---------------------------------------------------------------------------------- */

/* How many entries of each table are in use. */
struct peek_census {
    uint32_t clients, sessions, segments, regions, grants, remotes, flows, inflows;
    uint32_t notes, sent, chunks;
    /* `letters`: those that wait or are not acknowledged; without any team also the units of team
     * memory in use, which must be 0. */
    uint32_t teams, letters;
    uint32_t programs, program_units; /* units of memory that images take */
    uint32_t offloads, gets;
    uint32_t busy;       /* references by segments, remotes and flows to operations of the fabric */
    uint32_t lost;       /* entries of tables that are neither in use nor on their free list */
    uint32_t miscounted; /* wrong counts: of what a client or user holds (state/held.h), of what
                            waits for a peer, of the entries in lists */
};

/* Counts the entries by their states; an entry that was never given counts as free unseen. */
struct peek_census peek_census(const struct engine *e);
/* Whether any entry of a table, or any chunk, is taken. Costs little, unlike a census. */
bool peek_in_use(const struct engine *e);
/* peek_offload_of returns the handle of the offload at an index of a context, or -1 without one;
 * peek_offload returns the entry of a handle. */
int peek_offload_of(const struct engine *e, uint32_t session, uint32_t index);
struct offload peek_offload(const struct engine *e, uint32_t offload);
/* The remote of a target of the offload of a handle, by number. */
uint32_t peek_target(const struct engine *e, uint32_t offload, uint32_t target);
/* The client of the last run of a handler, or UINT32_MAX: the next run changes clients. */
uint32_t peek_last_client(const struct engine *e);
/* How many gets the handlers of a session may send now. */
uint32_t peek_gets_room(const struct engine *e, uint32_t session);
/* Team memory that a team has taken. */
uint64_t peek_team_bytes(const struct engine *e, uint32_t team);
/* The lowest floor that a participant of the team waits for. 0: some may wait for a floor that is
 * already reached; UINT64_MAX: none waits. */
uint64_t peek_team_wanted(const struct engine *e, uint32_t team);
/* Bytes that collectives have copied or combined, and what counts as much. */
uint64_t peek_teams_moved(const struct engine *e);
/* How many instances of teams wait for letters of this peer. */
uint32_t peek_awaited(const struct engine *e, uint32_t peer);
/* Sessions whose submissions are taken. */
uint32_t peek_open_sessions(const struct engine *e);
/* Counts the peers that the next step looks at. */
uint32_t peek_active(const struct engine *e);
/* Returns a flow whose first operation stands behind the next one to be staged, or NONE: an
 * operation may leave only when it has been staged. */
uint32_t peek_flow_ahead(const struct engine *e);
/* How many entries of a client's open flows were staged so far; an operation takes one or more. */
uint64_t peek_staged_of(const struct engine *e, uint32_t client);
/* The flow that a remote leads to; and how many pieces of the next put of that flow have left. */
uint32_t peek_flow_of(const struct engine *e, uint32_t remote);
uint32_t peek_pieces_posted(struct engine *e, uint32_t remote);
/* How many pieces have arrived under a nonce of a peer. */
uint32_t peek_payloads(const struct engine *e, uint32_t peer, uint32_t nonce);
/* The most bytes that one submitted record may have. */
uint32_t peek_record_max(const struct engine *e);
bool peek_traced(const struct engine *e);
/* The context that the host's hooks get. */
void *peek_host_context(const struct engine *e);
/* The first remote of an owner (state/flows.h), UINT32_MAX: none; and the word that the owner has
 * given a remote. */
uint32_t peek_remote_of(const struct engine *e, uint64_t owner);
uint64_t peek_word(const struct engine *e, uint32_t remote);

/* ---- records --------------------------------------------------------------------------------- */

/* peek_record: the record at a position of the outbound ledger. peek_last_note copies the control
 * record that was made last. */
const void *peek_record(const struct engine *e, uint32_t peer, uint64_t position);
void peek_last_note(const struct engine *e, uint32_t peer, enum notes_queue queue, void *record);
/* The offset in its chunk at which the next control record will stand; 0: at the start of a new
 * chunk. */
uint32_t peek_note_place(const struct engine *e, uint32_t peer, enum notes_queue queue);
/* How many chunks one more verdict, or one more spilled event, would take. */
uint32_t peek_verdict_growth(const struct engine *e, uint32_t peer);
uint32_t peek_spill_growth(const struct engine *e, uint32_t session);

/* ---- changes --------------------------------------------------------------------------------- */

/* The engine's own copy of its configuration, in which a test may change limits while the engine
 * runs. */
struct engine_config *poke_config(struct engine *e);
/* Sets the row of the tests' owner, OWNER_KINDS - 1; called before engine_open, with the engine's
 * memory. */
void poke_owner(void *memory, const struct owner_kind *row);
/* Sets the word that the owner has given a remote; the caller has a transaction open. */
void poke_word(struct engine *e, uint32_t remote, uint64_t word);
/* Leaves this many chunks of memory free. Returns how many were free. */
uint32_t poke_memory(struct engine *e, uint32_t chunks);
/* Makes operations and spilled events leave this many chunks to control records. */
void poke_chunks_keep(struct engine *e, uint32_t chunks);
/* Leaves this many entries of a table free. */
void poke_unused(struct engine *e, enum table table, uint32_t entries);
/* Makes the engine count this many chunks of the client's notes as waiting. */
void poke_notes(struct engine *e, uint32_t client, uint32_t chunks);
/* Sets how many replies the inflow's client owes. */
void poke_owed(struct engine *e, uint32_t inflow, uint32_t replies);
/* Empties the session's lists of flows and inflows, as in an arena that is not whole. */
void poke_lists(struct engine *e, uint32_t session);
/* Makes a flow without operations count on from this index. */
void poke_flow_index(struct engine *e, uint32_t flow, uint64_t index);
void poke_remote_length(struct engine *e, uint32_t remote, uint64_t length);
void poke_remote_state(struct engine *e, uint32_t remote, enum remote_state state);
void poke_revoke_due(struct engine *e, uint32_t remote, bool due);
/* Sets the bytes of event space that the session's operations hold, and the size of its reply ring.
 */
void poke_reserved(struct engine *e, uint32_t session, uint64_t bytes);
void poke_reply_ring(struct engine *e, uint32_t session, uint32_t bytes);
/* Marks the segment's memory as not mapped in this process, or as not registered yet. */
void poke_unmapped(struct engine *e, uint32_t segment);
void poke_unregistered(struct engine *e, uint32_t segment);
/* Lets another client seem to have had other work than handlers just now. */
void poke_other_work(struct engine *e);
/* poke_gets makes the client's handlers have this many gets under way, without entries in the table
 * of gets. poke_handler_debt makes the handlers owe this many units. */
void poke_gets(struct engine *e, uint32_t client, uint32_t gets);
void poke_handler_debt(struct engine *e, uint32_t client, uint32_t units);
void poke_uid(struct engine *e, uint32_t client, uint32_t uid);
/* Leaves this many nonces towards the peer free. Returns how many were free. */
uint32_t poke_nonces(struct engine *e, uint32_t peer, uint32_t free);
/* Sets whether the peer's ledger is being switched to another ring; meanwhile no record is staged.
 */
void poke_switching(struct engine *e, uint32_t peer, bool switching);
void poke_outstanding(struct engine *e, uint32_t peer, uint32_t operations);
void poke_runs_acknowledged(struct engine *e, uint32_t peer);
/* Makes the fabric keep the order of writes up to this many bytes. */
void poke_ordered(struct engine *e, uint64_t bytes);
/* Makes payloads from `least` bytes on travel in 1 << `shift` pieces. */
void poke_rails(struct engine *e, uint32_t shift, uint32_t least);
/* Makes the next step look at all entries that are leaving their tables. */
void poke_sweep(struct engine *e);

#endif
