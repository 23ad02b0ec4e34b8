/*
 * Links to peers: control records and positions in the arena, ledgers and rings of this process.
 *
 * Arena types hold indices and offsets only and are changed through arena_set* (arena.h). Private
 * types die with the process. Thread: the progress thread owns all of it.
 */
#ifndef PWC_ENGINE_LINKS_H
#define PWC_ENGINE_LINKS_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include "daemon/engine/engine.h"
#include "daemon/engine/state/queue.h"
#include "daemon/engine/state/ready_list.h"
#include "daemon/fabric/fabric.h"
#include "proto/wire_abi.h"

/* ---- in the arena ---------------------------------------------------------------------------- */

/*
 * Control records wait in two queues, in the order in which they were made. The records of one
 * client, or of nobody, are staged in that order, verdicts first. An acknowledgement must not pass
 * a verdict on a record that it covers; so verdicts have room of their own in the ledger. Without
 * that room, verdicts that wait for credit would hold back the acknowledgements that give the other
 * side credit, and the other side would hold back ours for the same reason.
 */
enum notes_queue {
    NOTES_VERDICTS = 0, /* FAIL, REFUSE, RESULT */
    NOTES_OTHERS = 1,
    NOTES_QUEUES
};

struct notes {
    struct queue queue; /* struct note, each with its span, kept until acknowledged */
    uint64_t staged;    /* index of the first that waits */
};

struct peer {
    uint64_t link_id;     /* ours: new when we dropped our state for this peer */
    uint64_t their_id;    /* theirs; 0: none */
    uint64_t tx_tail;     /* position after the last record staged */
    uint64_t tx_acked;    /* position consumed by the peer, by its last ACK */
    uint64_t rx_consumed; /* position after the last record consumed */
    struct queue sent;    /* struct sent: records staged and not acknowledged */
    struct notes notes[NOTES_QUEUES];
    uint32_t their_incarnation;
    uint32_t rx_preferred; /* ring size at the next link */
    uint32_t discarding;   /* operations under way are being dropped; a restart resumes that */
    uint32_t bound_owed;   /* BOUND notes that it has not acknowledged */
};

/* A record that stands in the ledger. */
struct sent {
    uint64_t end;   /* position after it */
    uint64_t slot;  /* of the operation, or of the note */
    uint32_t flow;  /* NONE: a note */
    uint32_t epoch; /* of the flow; of a note, enum notes_queue; or one of those below */
    uint32_t nonce; /* NONE, or to be freed */
    uint32_t part;  /* for a PACKET that others follow: bytes of the put up to its end; else 0 */
};
static_assert(sizeof(struct sent) == 32, "sent");
#define SENT_SHIFT  5u
#define SENT_NONCE  NOTES_QUEUES       /* a nonce alone */
#define SENT_LETTER (NOTES_QUEUES + 1) /* of a team: team/letters.h */

/* Notes are staged in turns (turn.h), so they leave in another order than they came. */
enum note_state {
    NOTE_WAITS = 0,
    NOTE_STAGED = 1,
    NOTE_DONE = 2, /* acknowledged, and one before it is not */
};

/* A control record in its queue: this entry, and those after it that its span counts, which hold
 * nothing but the rest of its body. */
#define NOTE_SHIFT 6u
#define NOTE_BODY  40u /* in the first entry */

struct note {
    uint64_t cause;          /* consumed position when it was made */
    uint32_t client;         /* that it is charged to; NONE: nobody's */
    uint32_t turn;           /* private in meaning, */
    uint32_t next;           /* and so is this: the low bits of the next index of its turn's list */
    uint8_t kind;            /* enum wire_kind */
    uint8_t words;           /* of the record, as in its head */
    uint8_t span;            /* entries */
    uint8_t state;           /* enum note_state */
    uint8_t body[NOTE_BODY]; /* the record after its head */
};
static_assert(sizeof(struct note) == 1u << NOTE_SHIFT, "note");

/* ---- private --------------------------------------------------------------------------------- */

#define RUN_WINDOW   64u
#define NONCE_WINDOW 256u
/* Nonces that requests leave to replies. */
#define NONCES_FOR_REPLIES 32u
#define RAILS_MAX          4u  /* that one payload is spread over */
#define PIECE_LEAST        64u /* two pieces do not share a cache line */
/* The longest payload, 4 GiB, is cut into no more than 1 << this pieces. */
#define PIECES_SHIFT 15u

/* Outbound ledger of a link. */
struct ledger_out {
    uint8_t *staging;
    uint32_t size;
    uint16_t run;       /* number of the next run */
    uint16_t run_done;  /* oldest run whose write has not completed */
    uint16_t run_acked; /* oldest run that has not been acknowledged, all of it */
    uint64_t base;      /* position at which this ring began */
    uint64_t sent;      /* position up to which runs have been posted */
    uint64_t completed; /* position up to which their writes have completed */
    uint64_t done_bits; /* completed runs from run_done on */
    uint64_t run_end[RUN_WINDOW];
    uint64_t run_posted[RUN_WINDOW]; /* when, ns */
    uint64_t remote_address;
    uint64_t remote_key;
    bool owned;     /* traced: what is staged and not posted has an owner */
    uint32_t owner; /* uid; NONE: more than one */
    uint32_t run_owner[RUN_WINDOW];
    struct wire_offer next; /* a larger ring, to be switched to; bytes 0: none */
    uint8_t *next_staging;  /* taken before SWITCH is staged */
    bool switching;         /* SWITCH is staged */
    bool wanting;           /* WANT is staged since credit came last */
    bool urgent;            /* an ACK is staged: it may use the whole window of runs */
    /* ledger_waits: */
    bool batches;                  /* a batch is staged and not posted */
    bool prompt;                   /* a record that must not wait is staged and not posted */
    bool waits;                    /* the staged records have waited for an ACK */
    uint32_t patience;             /* how often it may do so without a gain */
    uint32_t acked_in;             /* the step in which the last ACK came */
    uint64_t operations;           /* position after the last operation staged, */
    uint64_t operations_sent;      /* and after the last one posted */
    uint32_t pass;                 /* bytes of verdicts that may pass what waits (ledger_pass) */
    uint64_t pass_at;              /* position up to which room had come back then */
    uint32_t nonces[NONCE_WINDOW]; /* a stack of free nonces; at its far end nonces to void */
    uint32_t nonces_free, voids;
};

/* Inbound ledger of a link. */
struct ledger_in {
    uint8_t *ring;
    uint32_t size;
    uint16_t run; /* number of the next run to consume */
    struct fabric_memory memory;
    bool registered;
    bool adding;
    bool dirty; /* something has arrived */
    bool ack_due;
    bool blocked; /* waits for a payload */
    uint64_t base;
    uint64_t run_end; /* end of the run being consumed; 0: none */
    uint64_t arrived; /* runs announced, from `run` on */
    uint64_t acked;   /* position of the last ACK staged */
    uint64_t ack_at;
    bool rides;         /* the last ACK had company, or would have had in the next step */
    uint32_t alone_in;  /* the step in which an ACK left alone last */
    uint64_t their_ack; /* of the record being consumed */
    uint32_t runs_unacked;
    uint16_t payloads[NONCE_WINDOW]; /* pieces announced, by nonce */
    uint8_t *next_ring;              /* growth: being registered, or offered */
    uint32_t next_size;
    struct fabric_memory next_memory;
    bool next_ready;
    bool next_offered;
    uint64_t grow_at; /* not before: the last was declined, ns */
    struct {
        uint64_t at, run_end; /* positions: of the next record, and the end of its run */
        uint16_t run;         /* number of the run behind */
    } ahead;                  /* how far ledger/ahead.h has looked */
    bool handlers_late; /* the next message to handlers is refused: there is too much behind */
    uint32_t part;      /* bytes of the next record that handlers have dealt with, a batch */
};

enum link_state {
    LINK_NONE = 0,
    LINK_PREPARING = 1, /* the inbound ring is being registered */
    LINK_OFFERED = 2,
    LINK_UP = 3,
    LINK_DRAINING = 4, /* down: fabric operations and ring are on their way out */
};

/* A ring on its way out of the fabric's registration. */
struct parting_ring {
    uint8_t *ring; /* NULL: free */
    uint32_t size;
    uint32_t memory;
    bool refused; /* the fabric could not let go of it: asked again later */
};
#define DROP_RETRY_NS UINT64_C(100000000) /* after the first refusal all are asked again */
/* A link has one ring, and a second while it changes. */
#define PARTING_RINGS 2u

struct peer_live {
    uint32_t link;
    uint32_t outstanding; /* fabric operations towards it */
    bool wanted;          /* a handshake has been asked for */
    bool offer_asked;
    bool active;                   /* on the active list */
    bool broken;                   /* reported to the caller already */
    bool known;                    /* peer_know has made its entries */
    bool sibling;                  /* another engine of this machine: our clients share memory */
    struct ready_list ready;       /* turns of clients that have something to stage */
    struct ready_list blocked;     /* turns of clients with flows that wait for its window */
    uint32_t turns;                /* list of all of them */
    uint32_t staged_last;          /* client that has staged last */
    uint64_t shared_until;         /* before that, clients share the way to this peer */
    bool unlisted;                 /* notes have been pushed that are not on their turns' lists */
    uint64_t listed[NOTES_QUEUES]; /* index up to which they are */
    uint32_t drops;                /* ring withdrawals on their way */
    struct parting_ring parting[PARTING_RINGS];
    uint32_t latency;  /* index of latencies; 0: the one of all peers that have none of their own */
    uint32_t gone;     /* flow that dies with the record being consumed, or NONE */
    uint32_t letters;  /* of teams, that wait or are not acknowledged */
    uint32_t awaited;  /* instances of teams that wait for a letter, or a floor, of its */
    uint32_t pause_ns; /* between tries of what the fabric refuses; 0: it refused nothing */
    uint64_t again_at; /* the next */
    bool watched;      /* keepalive.h, and so are these: */
    uint32_t waiting_flow;  /* where peer_flow_waits looks first */
    uint32_t silence;       /* intervals in which nothing has arrived from it */
    uint32_t silence_at_up; /* intervals of `silence` before this link */
    uint32_t stuck;         /* intervals in which something has been missing at `stuck_at` */
    uint64_t stuck_at;      /* position in the inbound ledger */
    bool heard;             /* something has arrived through this link */
    bool asked;             /* the peer has asked for a sign of life, in this interval */
    uint64_t bytes; /* of payloads and reads on their way: ours, and theirs by its last ping */
    uint64_t bytes_theirs;
    struct ledger_out out;
    struct ledger_in in;
    uint64_t runs_out, runs_in, records_out, records_in, starved, grown;
};

/* The share that a client, or nobody, may stage towards a peer before another does (turn.h). */
struct turn {
    uint32_t client; /* NONE: what is nobody's */
    uint32_t peer;
    uint32_t flows;                          /* that belong to it */
    uint32_t next;                           /* the next in its peer's turns, or in the free list */
    uint32_t notes;                          /* entries of the notes that wait */
    bool listed;                             /* on its peer's list */
    struct ready_list waiting[NOTES_QUEUES]; /* notes: the low bits of their indices */
    struct ready_list letters;               /* of teams: their numbers (teams.h) */
    struct ready_list ready[2];              /* flows, by enum flow_traffic */
    struct ready_list blocked; /* flows that wait for the window; not empty: on its peer's list */
    int64_t left;              /* bytes; less than none is taken off the next turn */
};

/* How long operations towards a peer have taken. A peer gets an entry with its first link. Entry 0
 * is shared by peers without one: all were given, or no link was up yet. */
struct latency {
    struct histogram steps[ENGINE_LATENCIES];
};
#define LATENCIES_MAX 1024u

/* Peers that are waited for (keepalive.h). */
struct keepalive {
    uint32_t *watched;
    uint32_t count;
    uint32_t next;     /* where the last look has ended */
    uint64_t at;       /* of the next look, ns */
    uint64_t interval; /* ns */
    uint64_t deadline; /* intervals */
    uint64_t bytes;    /* that the slowest of fabrics carries in one */
};

#endif
