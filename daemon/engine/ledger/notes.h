/*
 * Notes: control records to a peer (FAIL, STOP, BIND, REVOKE, ...), kept in the arena until
 * acknowledged, so that a broken link or a restart loses none and keeps their order. Thread: the
 * progress thread.
 */
#ifndef PWC_ENGINE_NOTES_H
#define PWC_ENGINE_NOTES_H

#include "daemon/engine/state/state.h"

/* Most entries of a client's waiting notes. With more, operations whose events the client cannot
 * take are refused instead of spilled: unlike a STOP, a REFUSE holds back the acknowledgement of
 * its operation, so no more operations arrive. */
#define NOTES_CLIENT_MAX 256u

/* Within a transaction: appends a record of `size` bytes, a multiple of 8, in this client's turn
 * (turn.h), or in nobody's (NONE). -ENOBUFS when no chunk is left. */
int notes_push(struct engine *e, uint32_t peer, uint32_t client, const void *record, uint32_t size);
int notes_push_flow(struct engine *e, uint32_t peer, uint32_t client, uint8_t kind, uint32_t flow,
                    uint32_t sequence, int32_t status);
/* Within a transaction: as notes_push, for the answer to a BIND or a REVOKE. Returns 0; -EAGAIN: no
 * chunk is left; -EPROTO: the peer asks on, and acknowledges none of its answers. */
int notes_answer(struct engine *e, uint32_t peer, uint32_t client, const void *record,
                 uint32_t size);
/* Whether notes_push of that many bytes would find room, uncommitted pushes included: 0 or
 * -ENOBUFS. */
int notes_room(const struct engine *e, uint32_t peer, uint32_t size);
/* As notes_push, for a verdict for which notes_room has found room: cannot fail. */
void notes_append(struct engine *e, uint32_t peer, uint32_t client, const void *record,
                  uint32_t size);
/* Copies the record of a note, except for its head. */
void notes_body(const struct engine *e, const struct queue *queue, uint64_t index, void *to);
/* Whether there are notes. */
bool notes_pending(const struct engine *e, uint32_t peer);
/* The position that may be acknowledged: up to the record that caused the oldest verdict not staged
 * yet. */
uint64_t notes_unanswered(const struct engine *e, uint32_t peer);
/* Puts each note that has been pushed and committed into its client's turn. */
void notes_list(struct engine *e, uint32_t peer);
/* The link comes up, and the turns are empty: waiting notes are to be listed again. */
void notes_resume(struct engine *e, uint32_t peer);
/* Stages notes of this turn until its bytes are used up. 0, or -ENOSPC: the ledger is full. */
int notes_stage(struct engine *e, struct turn *turn, enum notes_queue which, int *work);
/* Called when there is no room for the next note or operation in turn: stages the verdicts that may
 * pass it, the oldest first. Returns the number staged. */
int notes_pass(struct engine *e, uint32_t peer);
/* Within a transaction, which it commits: the peer has acknowledged this note. */
void notes_acknowledged(struct engine *e, uint32_t peer, uint32_t which, uint64_t slot);
/* Within a transaction: this note is to be staged again. */
void notes_rewind(struct engine *e, uint32_t peer, uint32_t which, uint64_t slot);
/* Drops all notes, in transactions of its own. */
void notes_clear(struct engine *e, uint32_t peer);

/* After a restart: answers to BIND that name the old process's registrations become "ask again". */
void notes_inherit(struct engine *e, uint32_t peer);

#endif
