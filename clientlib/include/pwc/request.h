/*
 * Requests: objects that a program tests and waits for, instead of taking the local event of each
 * operation. Conventions as in pwc.h.
 *
 * A request made by pwc_request_create is plain. A plain request is given to one or several
 * operations in place of a local completion id, by pwc_cid_request. The local events of these
 * operations do not appear; the request counts them. The request is under way as long as one of its
 * operations has not ended: so give it to all operations of a group first, then test. On one node
 * an operation may end within its own call.
 *
 * A persistent request is made by a call of its kind (..._init), is idle until pwc_start, and may
 * be started again when it has ended. A persistent request cannot be given to operations. If it was
 * made with a lid, each end is also shown as a PWC_LOCAL event of PWC_OP_REQUEST.
 *
 * Handlers of active messages may start and cancel requests; inside a handler a test takes no
 * events, and waits give -EDEADLK. pwc_fd works for requests as for events: probe until 0, then
 * test, then poll. Where a program has called pwc_fd, a loop of tests has to probe now and then:
 * new neighbours of this node wait for the next probe.
 *
 * A request belongs to its context: use it on that context's thread, and only with operations of
 * that context. The request is freed with its context. When the session is over, all requests under
 * way end with -ESHUTDOWN.
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
 * A local completion id that is a plain request, for any operation that takes a local id: put and
 * get, vectors, signals, atomics, active messages, collectives of a team. An operation that is
 * given a request of another context, or one that is not plain, is refused with -EINVAL. PWC_NO_LCE
 * has no effect with a request. With PWC_LCE_SOURCE the operation counts as ended when its source
 * may be used again. A request cannot be a remote completion id.
 */
static inline pwc_cid pwc_cid_request(pwc_request *request)
{
    pwc_cid id;
    id.data = request;
    id.size = PWC_CID_REQUEST;
    return id;
}

/*
 * How a request has ended. A plain one reports the first error among the operations that have ended
 * since a call last reported its end, and their number; the peer and the bytes are those of the
 * operation that ended last.
 */
struct pwc_status {
    int status;     /* 0, or a negative errno */
    uint32_t count; /* how many operations have ended */
    pwc_peer peer;  /* the other side */
    uint64_t id;    /* 0 for a plain request */
    uint64_t bytes; /* how many were moved; 0 after a failure */
};

/* Makes a plain request that is not under way. It takes 64 bytes of the context's pool. -ENOMEM. */
PWC_API int pwc_request_create(pwc_ctx *ctx, pwc_request **out);

/* Frees a request. -EBUSY: it is under way, or a call that is running in its context waits for it
 * (a handler has called this). */
PWC_API int pwc_request_free(pwc_request *request);

/*
 * 1: the request is not under way, and its status is in *out, which may be NULL. Further calls give
 * the same answer until the request is under way again. 0: it is under way; the call takes the
 * events that have arrived, as pwc_flush does: handlers of active messages run, and events stay for
 * later probes. Inside a handler the call takes no events. Never blocks. -ENOBUFS: too many events
 * are kept, probe first; -ENOMEM: as pwc_probe.
 */
PWC_API int pwc_test(pwc_request *request, struct pwc_status *out);

/*
 * As pwc_test, but waits for the end: 1; or 0 after timeout_ms. timeout_ms < 0 waits for ever.
 * Polls and sleeps as pwc_wait does. Errors as pwc_test; -EDEADLK inside a handler.
 */
PWC_API int pwc_request_wait(pwc_request *request, struct pwc_status *out, int timeout_ms);

/*
 * Waits until one of `n` requests has ended, and reports an end that no call has reported before:
 * 1, with the request's index in *which and its status in *out, which may be NULL; 0 after
 * timeout_ms without one. Entries that are NULL, and requests that have nothing new to report, are
 * passed over. -ENOENT: there are no other entries; -EINVAL: requests of different contexts, or
 * over INT32_MAX of them. Other errors as pwc_request_wait. The call looks at all requests only
 * once, at its begin.
 */
PWC_API int pwc_wait_any(pwc_request *const *requests, size_t n, size_t *which,
                         struct pwc_status *out, int timeout_ms);

/*
 * As pwc_wait_any, but reports all ends that are there, and returns their number. `which` has room
 * for `n` indices, and `out`, if it is not NULL, for `n` statuses.
 */
PWC_API int pwc_wait_some(pwc_request *const *requests, size_t n, size_t *which,
                          struct pwc_status *out, int timeout_ms);

/*
 * Waits until none of `n` requests is under way, also of those that a handler starts meanwhile: 1,
 * whatever their statuses are (pwc_test gives them); 0 after timeout_ms, and then no end counts as
 * reported. Entries may be NULL. Errors as pwc_wait_any, without -ENOENT.
 */
PWC_API int pwc_wait_all(pwc_request *const *requests, size_t n, int timeout_ms);

/*
 * Starts a persistent request that is not under way. Never blocks. -EBUSY: it is under way;
 * -EINVAL: it is a plain one; -EAGAIN: there is no room for its local event, take some first;
 * -ENOMEM; -ESHUTDOWN, -EPROTO: the session is over. For the request of a collective also the
 * errors of its call (pwc/collective.h), after which the request is idle.
 */
PWC_API int pwc_start(pwc_request *request);

/*
 * Cancels a request that waits for notifications: it ends with the status -ECANCELED, and
 * notifications that it has matched before stay taken. -EALREADY: nothing can be cancelled: the
 * request's operations are submitted, or it is not under way.
 */
PWC_API int pwc_cancel(pwc_request *request);

#ifdef __cplusplus
}
#endif
#endif
