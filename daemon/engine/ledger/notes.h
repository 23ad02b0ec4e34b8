/*
 * Notes: control records to a peer (FAIL, STOP, BIND, REVOKE, ...), kept in the arena until
 * acknowledged, so that a broken link or a restart loses none and keeps their order. Thread: the
 * progress thread.
 */
#ifndef PWC_ENGINE_NOTES_H
#define PWC_ENGINE_NOTES_H

#include "daemon/engine/state/state.h"

/* Within a transaction: appends a record of `size` bytes, a multiple of 8. -ENOBUFS when no chunk
 * is left. */
int notes_push(struct engine *e, uint32_t peer, const void *record, uint32_t size);
int notes_push_flow(struct engine *e, uint32_t peer, uint8_t kind, uint32_t flow, uint32_t sequence,
                    int32_t status);
/* Copies the record of a note, but for its head. */
void notes_body(const struct engine *e, const struct queue *queue, uint64_t index, void *to);
/* Whether there are notes; whether one is not staged yet. */
bool notes_pending(const struct engine *e, uint32_t peer);
bool notes_waiting(const struct engine *e, uint32_t peer);
/* The position that may be acknowledged: up to the record that caused the oldest verdict not staged
 * yet. */
uint64_t notes_unanswered(const struct engine *e, uint32_t peer);
/* Stages what waits. The number staged. */
int notes_stage(struct engine *e, uint32_t peer);
/* Within a transaction, which it commits: the oldest note of this queue is acknowledged. */
void notes_acknowledged(struct engine *e, uint32_t peer, uint32_t which);
/* Within a transaction: from this one on they are staged again. */
void notes_rewind(struct engine *e, uint32_t peer, uint32_t which, uint64_t slot);
/* Drops all; transactions of its own. */
void notes_clear(struct engine *e, uint32_t peer);

/* After a restart: answers to BIND that name the old process's registrations become "ask again". */
void notes_inherit(struct engine *e, uint32_t peer);

#endif
