/*
 * The local ends of operations that were given requests, as the events that the same operations
 * would have had: so a path that submits with requests is seen by the suite as any other.
 *
 * Thread: that of the context.
 */
#ifndef PWC_TESTS_SYSTEM_REQUEST_ENDS_H
#define PWC_TESTS_SYSTEM_REQUEST_ENDS_H

#include "pwc/request.h"
#include "tests/engine/world/paths/path.h"

struct request_end;

/* The operations of one context, in the order of submission. */
struct request_ends {
    struct request_end *first, **last;
    uint8_t id[PWC_CID_MAX]; /* of the last event */
};

void request_ends_init(struct request_ends *ends);
/* Forgets all; their requests have gone with the context. */
void request_ends_forget(struct request_ends *ends);

/* Makes a request for an operation that is to be submitted: 0, or an error. */
int request_ends_add(struct request_ends *ends, pwc_ctx *ctx, const struct path_op *op,
                     pwc_request **out);
/* The operation that was added last has not been submitted after all. */
void request_ends_drop(struct request_ends *ends, pwc_request *request);
/* The next end that the program would have seen: 1 with its event, 0, or an error. */
int request_ends_take(struct request_ends *ends, struct pwc_event *out);

#endif
