/*
 * Submission: an operation enters its flow. A session's intake (session/session_submit.c) and parts
 * of the engine come here with a draft: a struct submit_record, and after it lid, rid and payload,
 * each padded to 8. Thread: the progress thread.
 */
#ifndef PWC_ENGINE_SUBMIT_H
#define PWC_ENGINE_SUBMIT_H

#include "daemon/engine/state/state.h"

/* Entries that the draft's operation takes. */
static inline uint32_t op_span(const struct submit_record *draft)
{
    uint32_t bytes = draft->size - (uint32_t)sizeof(*draft);

    return bytes <= OP_SMALL
               ? 1
               : 1 + (bytes + (uint32_t)sizeof(struct op) - 1) / (uint32_t)sizeof(struct op);
}

/* Within a transaction, which it commits, and in which the flow's queue has grown by the draft's
 * `span`: fills these entries, and sends the operation on its way. `status` is 0, or the error with
 * which the operation ends. */
void op_enqueue(struct engine *e, uint32_t flow, const struct submit_record *draft, uint32_t span,
                int32_t status);

/* For several operations in one transaction, which the caller commits: op_enter puts an operation
 * into its flow; after the commit, op_entered sends the new operations of a flow on their way. The
 * draft must be one that its kind takes, and must await no reply. Returns 0, or -ENOBUFS with
 * nothing changed. */
int op_enter(struct engine *e, uint32_t flow, const struct submit_record *draft);
void op_entered(struct engine *e, uint32_t flow);
/* The error with which this operation would end at once; 0: none. */
int op_check(struct engine *e, uint32_t flow, const struct submit_record *draft);

/*
 * Submits an operation for an owner that is a part of the engine. Within a transaction, which this
 * commits, so that the owner's own stores before it take effect together with the operation or not
 * at all. The owner's `ended` reports the end, errors too, perhaps before this returns. An owner
 * without a client (owner.h) can only submit payloads that are inline.
 *
 * On a negative result the transaction is rolled back and nothing has been submitted. -EINVAL: the
 * draft is malformed; -EOPNOTSUPP: it awaits a reply, which only a session can take; -ENOBUFS:
 * there is no memory now.
 */
int op_submit(struct engine *e, uint32_t flow, const struct submit_record *draft);

#endif
