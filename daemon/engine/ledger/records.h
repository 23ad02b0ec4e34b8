/*
 * Records from a peer: one handler a kind. A peer has proved who it is, but what it writes is still
 * checked: a record that makes no sense breaks the link, never the daemon.
 * Thread: the progress thread.
 */
#ifndef PWC_ENGINE_RECORDS_H
#define PWC_ENGINE_RECORDS_H

#include "daemon/engine/state/state.h"

/*
 * The record's effects, left uncommitted for the caller to commit together with its consumption;
 * what is committed on the way may happen twice. 0; -EAGAIN: cannot be taken now (what is open is
 * put back, it stays); -EPROTO.
 */
int record_take(struct engine *e, uint32_t node, const struct wire_record *head,
                const uint8_t *record, uint32_t size);
/* The same for PUT, PLACED, GOT, NOTE and BATCH: record_op.c. */
int record_take_op(struct engine *e, uint32_t node, const struct wire_record *head,
                   const uint8_t *record, uint32_t size);
int record_take_void(struct engine *e, uint32_t node, const struct wire_record *head,
                     const uint8_t *record, uint32_t size);
/* Batches (record_batch.c). Copies the record, its puts to e->record: 0 or -EPROTO. */
int record_batch_parse(struct engine *e, const uint8_t *record, uint32_t size,
                       struct wire_batch *w);
/* Places the puts that stand there: all of them, or a status for all. */
int record_batch_place(struct engine *e, uint32_t session, const struct wire_batch *w);
/* After the commit: what takes transactions of its own. 0 or -EPROTO. */
int record_after(struct engine *e, uint32_t node, uint8_t kind);

#endif
