/*
 * Links to peers: control records and positions in the arena, ledgers and rings of this process.
 *
 * Arena types hold indices and offsets only and are changed through arena_set* (arena.h). Some of
 * their fields are *private in meaning*: the next process does not use the values that it finds
 * there. Private types die with the process. Thread: the progress thread owns all of it.
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
    uint64_t staged;    /* index of the first note that waits; the tail: none does */
};

struct peer {
    uint64_t link_id;     /* ours: new when we dropped our state for this peer */
    uint64_t their_id;    /* state_id of the last offer from the peer; 0: none */
    uint64_t tx_tail;     /* position after the last record staged */
    uint64_t tx_acked;    /* position consumed by the peer, by its last ACK */
    uint64_t rx_consumed; /* position after the last record consumed */
    struct queue sent;    /* struct sent: records staged and not acknowledged */
    struct notes notes[NOTES_QUEUES];
    uint32_t their_incarnation;
    uint32_t unused;
    uint32_t discarding;   /* operations under way are being dropped; a restart resumes that */
    uint32_t answers_owed; /* BOUND and REVOKED notes that the peer has not acknowledged */
};

/* A record that stands in the ledger. */
struct sent {
    uint64_t end;   /* position after it */
    uint64_t slot;  /* of the operation, or of the note */
    uint32_t flow;  /* NONE: a note */
    uint32_t epoch; /* of the flow; for a note, enum notes_queue; or a SENT_ value */
    uint32_t nonce; /* to be freed with the record, or NONE */
    uint32_t part;  /* for a PACKET that others follow: bytes of the put up to its end; else 0 */
};
static_assert(sizeof(struct sent) == 32, "sent");
#define SENT_SHIFT  5u
#define SENT_NONCE  NOTES_QUEUES       /* the entry only frees a nonce */
#define SENT_LETTER (NOTES_QUEUES + 1) /* a letter of a team: team/letters.h */

/* Notes are staged in turns (turn.h), so they leave in another order than they came. */
enum note_state {
    NOTE_WAITS = 0,
    NOTE_STAGED = 1,
    NOTE_DONE = 2, /* acknowledged, but an earlier note is not */
};

/* A control record in its queue. Where `span` is more than 1, the entries after this one hold the
 * rest of the body. */
#define NOTE_SHIFT 6u
#define NOTE_BODY  40u /* in the first entry */

struct note {
    uint64_t cause;          /* position consumed when the note was made */
    uint32_t client;         /* the client that it is charged to; NONE: nobody */
    uint32_t turn;           /* private in meaning: its turn */
    uint32_t next;           /* private in meaning: low bits of the index of the next note in its
                              * turn's list */
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
/* Nonces that only replies may take. */
#define NONCES_FOR_REPLIES 32u
#define RAILS_MAX          4u  /* rails that one payload is spread over, at most */
#define PIECE_LEAST        64u /* so that two pieces do not share a cache line */
/* The longest payload, 4 GiB, is cut into at most 1 << PIECES_SHIFT pieces. */
#define PIECES_SHIFT 15u

/* Outbound ledger of a link. */
struct ledger_out {
    uint8_t *staging;
    uint32_t size;
    uint16_t run;       /* number of the next run */
    uint16_t run_done;  /* oldest run whose write has not completed */
    uint16_t run_acked; /* oldest run that has not been acknowledged as a whole */
    uint64_t base;      /* position at which this ring began */
    uint64_t sent;      /* position up to which runs have been posted */
    uint64_t completed; /* position up to which their writes have completed */
    uint64_t done_bits; /* completed runs from run_done on */
    uint64_t run_end[RUN_WINDOW];
    uint64_t run_posted[RUN_WINDOW]; /* when, ns */
    uint64_t remote_address;
    uint64_t remote_key;
    bool owned;     /* for traces: what is staged and not posted has an owner */
    uint32_t owner; /* uid; NONE: several users */
    uint32_t run_owner[RUN_WINDOW];
    struct wire_offer next; /* a larger ring, to be switched to; bytes 0: none */
    uint8_t *next_staging;  /* taken before SWITCH is staged */
    bool switching;         /* SWITCH is staged */
    bool wanting;           /* WANT has been staged since credit last came */
    bool urgent;            /* an ACK is staged: it may use the whole window of runs */
    /* For ledger_waits: */
    bool batches;             /* a batch is staged and not posted */
    bool prompt;              /* a record that must not wait is staged and not posted */
    bool waits;               /* the staged records have waited for an ACK */
    uint32_t patience;        /* how often records may wait without a gain */
    uint32_t acked_in;        /* the step in which the last ACK came */
    uint64_t operations;      /* position after the last operation that was staged */
    uint32_t last;            /* offset of the record that was staged last */
    uint64_t operations_sent; /* position after the last operation that was posted */
    uint32_t pass;            /* bytes of verdicts that may pass a waiting record
                               * (ledger_may_pass) */
    uint64_t
        pass_at; /* how far the peer had given room back when `pass` was last brought up to date */
    uint32_t nonces[NONCE_WINDOW]; /* a stack of free nonces; nonces to void stand at its far end */
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
    bool blocked;     /* waits for a payload */
    bool more_follow; /* the last record was a part of a vector, and not its last part */
    bool left;        /* more records have arrived than the last step has consumed */
    bool waited;      /* an ACK that was due has waited for those */
    uint64_t base;
    uint64_t run_end; /* end of the run being consumed; 0: none */
    uint64_t arrived; /* a bit for each announced run, from `run` on */
    uint64_t acked;   /* position of the last ACK staged */
    uint64_t ack_at;
    bool rides;         /* the last ACK rode with records, or would have a step later */
    uint32_t alone_in;  /* the step in which an ACK last left alone */
    uint64_t their_ack; /* position in the last ACK that was taken */
    uint32_t runs_unacked;
    uint16_t payloads[NONCE_WINDOW]; /* pieces announced, by nonce */
    uint8_t *next_ring;              /* of a larger ring: being registered, or offered */
    uint32_t next_size;
    struct fabric_memory next_memory;
    bool next_ready;
    bool next_offered;
    uint64_t grow_at; /* ns: no larger ring is offered before this, because the last one was
                       * declined */
    struct {
        uint64_t at, run_end; /* positions: of the next record, and the end of its run */
        uint16_t run;         /* number of the run after that */
    } ahead;                  /* how far ledger/ahead.h has looked */
    bool handlers_late; /* the next message to handlers is refused, because too much waits after
                         * it */
    uint32_t part;      /* for a batch: bytes of the next record that handlers have dealt with */
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
#define DROP_RETRY_NS UINT64_C(100000000) /* ns after the first refusal: all are dropped again */
/* A link has one ring, and two while it changes to a larger one. */
#define PARTING_RINGS 2u

/* After two clients have staged something for a peer, they share its link for so long. */
#define SHARED_NS 10000000u

/* A client with few operations, which uses the link until this time, ns (ops/burst.h). */
struct sparse_client {
    uint32_t client;
    uint64_t until;
};
#define SPARSE_CLIENTS 2

struct peer_live {
    uint32_t link;
    uint32_t outstanding; /* fabric operations towards it */
    bool wanted;          /* a handshake has been asked for */
    bool offer_asked;
    bool active;               /* on the active list */
    bool broken;               /* reported to the caller already */
    bool known;                /* peer_know has made its entries */
    bool sibling;              /* another engine of this machine: our clients share memory */
    struct ready_list ready;   /* turns of clients that have something to stage */
    struct ready_list blocked; /* turns of clients with flows that wait for its window */
    uint32_t turns;            /* list of all turns towards it */
    uint32_t staged_last;      /* client that has staged last */
    uint64_t shared_until;     /* ns: until then clients share the link to this peer */
    struct ready_list paused;  /* turns whose flows pause (burst.h) */
    struct sparse_client sparse[SPARSE_CLIENTS]; /* the latest first */
    int64_t used;                                /* units that all turns have used lately */
    uint32_t halvings;                           /* how often `used` has been halved */
    bool unlisted;                 /* notes have been pushed that are not on their turns' lists */
    uint64_t listed[NOTES_QUEUES]; /* index up to which notes are on their turns' lists */
    uint32_t drops;                /* ring withdrawals on their way */
    struct parting_ring parting[PARTING_RINGS];
    uint32_t latency;  /* index of latencies; 0: the entry that peers without their own share */
    uint32_t gone;     /* flow that dies with the record being consumed, or NONE */
    uint32_t back;     /* session that the record being consumed has sent PEER_BACK, or NONE */
    uint32_t letters;  /* letters of teams that wait or are not acknowledged */
    uint32_t awaited;  /* instances of teams that wait for a letter, or a floor, from it */
    uint32_t pause_ns; /* ns between tries of what the fabric refuses; 0: it has refused nothing */
    uint64_t again_at; /* ns: the next try */
    bool watched;      /* keepalive.h, also for the fields up to `bytes_theirs` */
    uint32_t waiting_flow;  /* where peer_flow_waits looks first */
    uint32_t silence;       /* intervals in which nothing has arrived from it */
    uint32_t silence_at_up; /* intervals of `silence` before this link */
    uint32_t stuck;         /* intervals in which something has been missing at `stuck_at` */
    uint64_t stuck_at;      /* position in the inbound ledger */
    bool heard;             /* something has arrived through this link */
    bool asked;             /* the peer has asked for a sign of life, in this interval */
    uint64_t bytes;         /* bytes of our payloads and reads on their way */
    uint64_t bytes_theirs;  /* the peer's bytes on their way, as its last ping said */
    struct ledger_out out;
    struct ledger_in in;
    uint64_t runs_out, runs_in, records_out, records_in, bytes_out, bytes_in, starved, grown,
        pauses;
};

/* The share that a client, or nobody, may stage towards a peer before another does (turn.h). */
struct turn {
    uint32_t client; /* NONE: what is nobody's */
    uint32_t peer;
    uint32_t flows;                          /* flows that belong to it */
    uint32_t next;                           /* the next in its peer's turns, or in the free list */
    uint32_t notes;                          /* entries that its waiting notes take */
    bool listed;                             /* on its peer's list */
    struct ready_list waiting[NOTES_QUEUES]; /* notes: the low bits of their indices */
    struct ready_list letters;               /* letters of teams: their numbers (teams.h) */
    struct ready_list ready[2];              /* flows, by enum flow_traffic */
    struct ready_list blocked; /* flows that wait for the window; not empty: on its peer's list */
    int64_t left;              /* bytes; a negative rest is taken off the next turn */
    /* For bursts (burst.h): */
    int64_t burst;       /* units that its flows may still stage in this burst */
    uint64_t burst_from; /* position in the ledger at which this burst began */
    int64_t spent;       /* units that it has used since it was listed */
    int64_t used;        /* units that it has used lately */
    uint32_t halvings;   /* its peer's count when `used` was last halved */
    bool soon;           /* the ACK of the record that has used up the burst comes soon */
    bool paused;         /* on its peer's list `paused` */
};

/* How long operations towards a peer have taken. A peer gets an entry with its first link. Peers
 * without one share entry 0: no entry was left, or no link was up yet. */
struct latency {
    struct histogram steps[ENGINE_LATENCIES];
};
#define LATENCIES_MAX 1024u

/* The watch over peers that something waits for (keepalive.h). */
struct keepalive {
    uint32_t *watched;
    uint32_t count;
    uint32_t next;     /* index at which the last look has ended */
    uint64_t at;       /* of the next look, ns */
    uint64_t interval; /* ns */
    uint64_t deadline; /* intervals */
    uint64_t bytes;    /* bytes that the slowest fabric carries in an interval */
};

#endif
