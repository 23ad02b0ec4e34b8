/* The block of an active message (proto/session_abi.h), submitted, staged and received.
 * Thread: the progress thread. */
#ifndef PWC_ENGINE_MESSAGE_H
#define PWC_ENGINE_MESSAGE_H

#include "daemon/engine/state/state.h"

/* Whether a block of `len` bytes makes sense; `m` is a copy of its head. */
bool message_valid(const struct message *m, uint64_t len);
/* A submitted message: whether its block and the record around it make sense. */
bool message_submitted_valid(const struct engine *e, const struct submit_record *r);
/* Fills in the daemon's words of a block that is being staged; `head_alone`: nothing follows its
 * head. */
void message_fill(const struct engine *e, uint32_t flow, const struct op *op, bool head_alone,
                  struct message *m);
/* The flags of the record that carries the message. */
uint8_t message_wire_flags(const struct flow *f, const struct op *op);

#endif
