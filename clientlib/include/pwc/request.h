/*
 * Requests: what a program tests and waits for, instead of looking for the local event of each
 * operation by itself. Conventions as in pwc.h.
 *
 * A request made by pwc_request_create is plain. It is given to operations in the place of a local
 * completion id, by pwc_cid_request, to several of them if the caller likes. Their local events do
 * not appear; the request counts them. It is under way while an operation that it was given to has
 * not ended, and has ended when none is left: so give it to all operations of a group first, then
 * test. On one node an operation may end within its own call.
 *
 * A request belongs to its context: to that context's thread, and to operations of that context
 * alone. It ends with its context. Where a session is over, all requests under way end with
 * -ESHUTDOWN.
 *
 * The term is MPI's (MPI: A Message-Passing Interface Standard, version 4.0, 2021, chapter 3.7).
 * Photon has requests as well (Kissel and Swany, 2016).
 */
#ifndef PWC_REQUEST_H
#define PWC_REQUEST_H

#include <pwc/pwc.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct pwc_request pwc_request;

/* The size of a completion id that is a request. */
#define PWC_CID_REQUEST UINT64_MAX

/*
 * A local completion id that is a plain request: for put, get and active messages. An operation
 * that is given a request of another context, or no plain one, is refused with -EINVAL. PWC_NO_LCE
 * changes nothing for it. With PWC_LCE_SOURCE the operation counts as ended when its source may be
 * used again. It is no remote completion id.
 */
static inline pwc_cid pwc_cid_request(pwc_request *request)
{
    pwc_cid id;
    id.data = request;
    id.size = PWC_CID_REQUEST;
    return id;
}

/*
 * How a request has ended. Of a plain one: the first error among the operations that have ended
 * since a call last reported its end, and their number; the peer and the bytes are those of the
 * last of them.
 */
struct pwc_status {
    int status;     /* 0, or a negative errno */
    uint32_t count; /* of operations */
    pwc_peer peer;  /* the other side */
    uint64_t id;    /* 0 for a plain request */
    uint64_t bytes; /* that were moved, 0 after a failure */
};

/* A plain request that is not under way. Takes 64 bytes, from the context's pool. -ENOMEM. */
PWC_API int pwc_request_create(pwc_ctx *ctx, pwc_request **out);

/* Frees a request. -EBUSY: it is under way, or a wait of its context that is running is for it. */
PWC_API int pwc_request_free(pwc_request *request);

/*
 * 1: the request is not under way, and its status is in *out, which may be NULL. The answer is the
 * same as often as it is asked, until the request is under way again. 0: it is under way; then the
 * call takes what has come, as pwc_flush does: handlers of active messages run, and events stay for
 * later probes. Inside a handler the call only looks. Never blocks. -ENOBUFS: too many events are
 * kept, probe first; -ENOMEM: as pwc_probe.
 */
PWC_API int pwc_test(pwc_request *request, struct pwc_status *out);

/*
 * As pwc_test, but waits for the end: 1; 0 after timeout_ms without it. timeout_ms < 0 waits for
 * ever. Polls and sleeps as pwc_wait does. Errors as pwc_test; -EDEADLK inside a handler.
 */
PWC_API int pwc_request_wait(pwc_request *request, struct pwc_status *out, int timeout_ms);

#ifdef __cplusplus
}
#endif
#endif
