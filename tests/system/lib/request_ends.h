/*
 * The ends of operations that were given requests, reported as the local events that they would
 * have had with ids: so the suite sees a path that submits with requests like any other path.
 *
 * Thread: the context's.
 */
#ifndef PWC_TESTS_SYSTEM_REQUEST_ENDS_H
#define PWC_TESTS_SYSTEM_REQUEST_ENDS_H

#include "pwc/request.h"
#include "tests/engine/world/paths/path.h"

struct request_end;

/* The operations of one context, in the order of submission. */
struct request_ends {
    struct request_end *first, **last;
    uint8_t id[PWC_CID_MAX]; /* id of the last event */
};

void request_ends_init(struct request_ends *ends);
/* Forgets all operations; the context has freed their requests. */
void request_ends_forget(struct request_ends *ends);

/* Makes a request for an operation that is to be submitted. Returns 0, or an error. */
int request_ends_add(struct request_ends *ends, pwc_ctx *ctx, const struct path_op *op,
                     pwc_request **out);
/* Drops the operation that was added last, because it could not be submitted. */
void request_ends_drop(struct request_ends *ends, pwc_request *request);
/* Takes the next end that a program would have seen. Returns 1 with the event, 0, or an error. */
int request_ends_take(struct request_ends *ends, struct pwc_event *out);

#endif
