/*
 * Ledgers: the stream of records to a peer (out) and from it (in).
 *
 * Out: records are staged into a ring that mirrors the peer's, and leave as runs, one fabric write
 * each. The staging ring need not survive: records that were not consumed when a link breaks are
 * staged again from the operation queues and the notes. In: runs are consumed when announced, in
 * the order of their numbers; the consumed position is the only state, and it moves in the same
 * transaction as the effects of the record.
 *
 * Credit is space: ring size less (tail - acknowledged). A part of each ring is kept for control
 * records, so that acknowledgements and failures always find room. Thread: the progress thread.
 */
#ifndef PWC_ENGINE_LEDGER_H
#define PWC_ENGINE_LEDGER_H

#include "daemon/engine/state/state.h"

/* How far into the ring a record may go: each share leaves room for the records that free its own
 * space. */
enum ledger_share {
    LEDGER_OPERATION, /* leaves ledger_kept */
    LEDGER_NOTE,      /* leaves a 32nd and LEDGER_ACK_BYTES */
    LEDGER_VERDICT,   /* for a verdict, which passes waiting records (ledger_may_pass); leaves
                         LEDGER_ACK_BYTES */
    LEDGER_ACK,
};
#define LEDGER_ACK_BYTES 256u
/* A ring keeps at least this much for verdicts and ACKs: for the longest RESULT wherever the ring
 * wraps (padding up to that length may be lost), for notes about the ring itself, and for ACKs. */
#define LEDGER_KEPT_LEAST 1408u
static_assert(2 * WIRE_RESULT_BYTES_MAX + 64 + LEDGER_ACK_BYTES <= LEDGER_KEPT_LEAST,
              "the longest RESULT passes");

/* The bytes of a ring of this size that operations leave free for control records. */
static inline uint32_t ledger_kept(uint32_t ring_bytes)
{
    return ring_bytes / 8 > LEDGER_KEPT_LEAST ? ring_bytes / 8 : LEDGER_KEPT_LEAST;
}

/* Bytes of the longest record that an operation of ours can need. */
uint32_t record_longest(const struct engine_config *c);
/* Whether our records may go into a ring of so many bytes: a ring of ours, or a peer's, which its
 * own configuration decides. The longest record and the padding before it fit beside the room for
 * control records. */
bool ledger_fits(const struct engine_config *c, uint32_t bytes);

/* The source of a staged record: an operation of `flow`; or, with flow NONE, what `epoch` says: a
 * note of that queue, SENT_NONCE or SENT_LETTER. */
struct ledger_mark {
    uint32_t flow;
    uint32_t epoch;
    uint64_t slot;
    uint32_t nonce;
    uint32_t part; /* as in struct sent */
};

/*
 * Within a transaction, and within peer_step, which posts the record: makes room for a record of
 * `size` bytes, and fills in its head. NULL: there is no credit (or no chunk for the mark).
 */
void *ledger_stage(struct engine *e, uint32_t peer, uint8_t kind, uint32_t size,
                   enum ledger_share share, const struct ledger_mark *mark);
/* Where ledger_stage would put such a record, or NULL. Until it is staged, the peer does not get
 * these bytes. */
void *ledger_place(struct engine *e, uint32_t peer, uint32_t size, enum ledger_share share);
/* Part of ledger_waits: whether everything that is staged may wait. */
bool ledger_batches_wait(const struct engine *e, uint32_t peer);
/* Whether staged records wait for the ACK of records under way, so that more of them leave
 * together. */
static inline bool ledger_waits(const struct engine *e, uint32_t peer)
{
    const struct ledger_out *out = &e->peer_live[peer].out;

    return out->batches && !out->prompt && ledger_batches_wait(e, peer);
}
/* Posts what is staged, not yet sent, and need not wait. Returns 1: something was posted; 0:
 * nothing was; -EAGAIN: more remains to be posted. */
int ledger_post(struct engine *e, uint32_t peer);
/* The write of a run has completed. */
void ledger_written(struct engine *e, uint32_t peer, uint16_t run, int status);
/* The peer has consumed up to `consumed`. Takes out one record that is done, or several in a row
 * that are operations of one flow; returns how many, and the first in *done. The caller commits
 * their removal together with its consequences, and calls again until this returns 0 (no more) or
 * -EPROTO. */
int ledger_acknowledge(struct engine *e, uint32_t peer, uint64_t consumed, struct sent *done);
/* Whether an ACK up to `consumed` would end an operation, or give back room that is wanted. An ACK
 * of a few notes may come late. */
bool ledger_ack_awaited(const struct engine *e, uint32_t peer, uint64_t consumed);
/* The link begins again at `consumed`. Takes out the last staged record, as ledger_acknowledge
 * takes out the first, and the caller returns it to its queue. False: there is no record after
 * `consumed`. */
bool ledger_rewind(struct engine *e, uint32_t peer, uint64_t consumed, struct sent *undone);
void ledger_free_nonce(struct engine *e, uint32_t peer, uint32_t nonce);
/* `pieces` pieces of the payload with this nonce are on their way, and the record does not follow
 * now. The next step stages a VOID for the peer, before any operation: then both sides have the
 * nonce back. */
void ledger_void(struct engine *e, uint32_t peer, uint16_t nonce, uint32_t pieces);
/* Stages the VOIDs that wait: 0, or -ENOSPC while some are left. */
int ledger_stage_voids(struct engine *e, uint32_t peer);

/* The longest record that its head can describe, in bytes. */
#define LEDGER_RECORD_MAX (8u * UINT16_MAX)
/* The longest record for which a ring full of operations gets room sooner or later, wherever the
 * ring wraps, and which no run cuts. */
uint32_t ledger_record_most(const struct engine *e, uint32_t peer);

/* Whether the ACK of the record that was staged last comes soon. `asked`: asks the peer for that
 * where the record is a part of a vector, whose ACK may come late. */
bool ledger_acked_soon(struct engine *e, uint32_t peer, bool asked);
/* Whether a verdict of this many bytes may pass the record that is next in turn and finds no
 * room. */
bool ledger_may_pass(struct engine *e, uint32_t peer, uint32_t bytes);

/* Free bytes for operations. */
uint64_t ledger_credit(const struct engine *e, uint32_t peer);

/* Whether a run without an ACK may leave: the last runs of the window are kept for ACKs. */
bool ledger_runs_free(const struct engine *e, uint32_t peer);

/* An announced write has arrived. */
int ledger_arrived(struct engine *e, uint32_t immediate);
/* The state that the sender of a record keeps until its ACK; an ACK waits longer for the cheap
 * ones. */
enum ledger_wait {
    LEDGER_WAIT_NONE = 0,
    LEDGER_WAIT_LETTER,    /* memory that is set aside: the ACK may come very late */
    LEDGER_WAIT_NOTE,      /* a little memory: the ACK may come late */
    LEDGER_WAIT_PART,      /* a part of an operation, whose client waits for the last one */
    LEDGER_WAIT_OPERATION, /* an operation, whose client waits */
};

/* A record that has arrived: a copy of its head, and where it stands in the ring. */
struct ledger_record {
    struct wire_record head;
    const uint8_t *at;
    uint32_t size;
};
/* Whether ledger_next may find a record. */
static inline bool ledger_announced(const struct ledger_in *in)
{
    return in->run_end != 0 || in->arrived & UINT64_C(1) << (in->run % RUN_WINDOW);
}
/* The next announced record, if it need not wait for a payload. Returns 1, 0 or -EPROTO. */
int ledger_next(struct engine *e, uint32_t peer, struct ledger_record *next);
/* Commits the record's effects together with its consumption. Returns its cost in the step's
 * budget. */
int ledger_consumed(struct engine *e, uint32_t peer, const struct ledger_record *record,
                    enum ledger_wait wait);
/* Called after ledger_consumed, for a record whose sender waits for the ACK: makes the ACK due as
 * early as that of an operation. */
void ledger_ack_soon(struct engine *e, uint32_t peer);
/* Stages an ACK if one is due now (or rides along with what is staged). */
void ledger_stage_ack(struct engine *e, uint32_t peer);
/* Repeats the last acknowledgement, as a sign of life. Returns whether there was room. */
bool ledger_beat(struct engine *e, uint32_t peer);
/* The link begins, perhaps again: stages a sign of life ahead of everything else, which
 * acknowledges what was consumed before. */
void ledger_greet(struct engine *e, uint32_t peer);
/* The part of ledger_nudge where other fabric operations than runs are under way. */
bool ledger_nudge_idle(struct engine *e, uint32_t peer, uint64_t *deadline);
/*
 * Where daemons cannot sleep on the fabric, they look at it now and then. A read, or a payload that
 * has not arrived as a whole, shows the peer's daemon nothing, so each step of it would wait for
 * the next look. While such an operation is under way, this stages an ACK (of what is acknowledged
 * already) whenever no run has left for a while, and both sides stay awake. Returns whether it did.
 */
static inline bool ledger_nudge(struct engine *e, uint32_t peer, uint64_t *deadline)
{
    const struct peer_live *live = &e->peer_live[peer];

    return live->outstanding > (uint16_t)(live->out.run - live->out.run_done) &&
           ledger_nudge_idle(e, peer, deadline);
}

#endif
