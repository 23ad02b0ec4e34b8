/*
 * Submission: an operation enters its flow. A session's intake (session/session_submit.c) and the
 * engine on its own both come here, with a draft: a struct submit_record, and after it lid, rid and
 * payload, each padded to 8. Thread: the progress thread.
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

/* Several operations in one transaction, which the caller commits: each enters its flow, then,
 * after the commit, op_entered sends those of each flow on their way. The draft is one that its
 * kind takes, and awaits no reply. 0, or -ENOBUFS with nothing changed. */
int op_enter(struct engine *e, uint32_t flow, const struct submit_record *draft);
void op_entered(struct engine *e, uint32_t flow);
/* The error with which this operation would end at once; 0: none. */
int op_check(struct engine *e, uint32_t flow, const struct submit_record *draft);

/*
 * The engine submits on its own: within a transaction, which it commits, so that the owner's own
 * stores before it count with the operation or not at all. The operation ends by the owner's
 * `ended`, with an error too, which may be before this returns. Without a client (owner.h) it
 * carries its bytes with it.
 *
 * Otherwise negative, the transaction is put back and nothing has been submitted: -EINVAL: the
 * draft is none; -EOPNOTSUPP: it awaits a reply, which only a session can take; -ENOBUFS: no memory
 * now.
 */
int op_submit(struct engine *e, uint32_t flow, const struct submit_record *draft);

#endif
