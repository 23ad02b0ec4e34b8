/*
 * Notes: control records to a peer (FAIL, STOP, BIND, REVOKE, ...), kept in the arena until
 * acknowledged, so that a broken link or a restart loses none. Answers (FAIL, REFUSE) and the
 * others keep their order each; answers go first, into room of their own, because ACKs wait for
 * them: what else is to be said must never hold an ACK back. Thread: the progress thread.
 */
#ifndef PWC_ENGINE_NOTES_H
#define PWC_ENGINE_NOTES_H

#include "state.h"

/* Within a transaction: appends a record of `size` bytes (at most 248). -ENOBUFS when no chunk is
 * left. */
int notes_push(struct engine *e, uint32_t node, const void *record, uint32_t size);
int notes_push_flow(struct engine *e, uint32_t node, uint8_t kind, uint32_t flow, uint32_t sequence,
                    int32_t status);
/* What may be acknowledged: all before the record that caused the oldest answer not staged yet. */
uint64_t notes_unanswered(const struct engine *e, uint32_t node);
/* Whether anything waits to be staged; or is not acknowledged. */
bool notes_waiting(const struct engine *e, uint32_t node);
bool notes_kept(const struct engine *e, uint32_t node);
/* Stages what waits, answers first. The number staged. */
int notes_stage(struct engine *e, uint32_t node);
/* Within a transaction, which it commits: the oldest note of this kind is acknowledged. */
void notes_acknowledged(struct engine *e, uint32_t node, uint32_t kind);
/* The peer's state is lost: drops all, in transactions of their own. */
void notes_discard(struct engine *e, uint32_t node);

/* After a restart: answers to BIND that name the old process's registrations become "ask again". */
void notes_inherit(struct engine *e, uint32_t node);

#endif
