/*
 * Active messages: a request runs a handler at its target, which may reply; the reply runs a
 * handler at the requester. Conventions as in pwc.h.
 *
 * Short, Medium and Long, request and reply are GASNet's terms (Bonachea and Hargrove, "GASNet
 * Specification", 1.8.1). A Short carries up to 16 arguments of 64 bits. A Medium carries a payload
 * too, which the handler sees in a buffer of the library that is used again when the handler
 * returns. A Long's payload is placed in a region of the target before the handler runs.
 *
 * Handlers run in the application, inside each call of the context that the message was sent to
 * that takes events, or waits for what others do: pwc_probe, pwc_wait, pwc_flush, pwc_unbind,
 * pwc_test and waits for requests, words and counters, operations with PWC_WAIT, pwc_exchange,
 * pwc_barrier, the ends of windows and teams, and others; and inside pwc_finalize of its client.
 * Handlers run on the calling thread, one at a time. Requests of one pair of contexts run in the
 * order of submission, and in order with the events of puts and gets between them; replies are
 * ordered among themselves.
 *
 * A handler may make every call that does not block, including puts, gets and requests to others
 * (after -EAGAIN, keep the operation, and try again after the handler). A request's handler may
 * reply once, before it returns. Calls that block, probe or wait give -EDEADLK there, on whatever
 * context or client: pwc_probe, pwc_yield, all waits, pwc_flush, operations with PWC_WAIT, and
 * calls that ask the daemon, as pwc_bind, pwc_unbind, pwc_alloc, pwc_exchange, pwc_ctx_destroy,
 * pwc_init, pwc_finalize and pwc_abort. pwc_test takes no events there.
 *
 * Handlers run regardless of the peer and kinds filters; a remote event before a message that does
 * not match these filters is kept, as by pwc_probe. With PWC_MESSAGE among the kinds, an event is
 * given for each handler that has run: its id is the index, its op the kind of message, its length
 * that of the payload. Its status is not 0 where no handler could run: -EKEYREJECTED: the region of
 * a Long has been withdrawn; -ENOSYS: the handler was taken away while the message was on its way.
 *
 * A request that may be replied to waits, with everything after it, until there is room for its
 * reply. Room becomes free without the program's help, unless this context does not take its local
 * events: when 1 MiB of them are kept, or when events of operations on its own node would fill a
 * local ring, no such request is handled until some are taken. Take them, or use PWC_NO_LCE.
 *
 * A reply never waits for a request: docs/active-messages.md explains how, and why a flood in all
 * directions always drains as long as every context is probed.
 */
#ifndef PWC_AM_H
#define PWC_AM_H

#include <pwc/pwc.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PWC_AM_HANDLERS      256 /* indices 0 to 255 */
#define PWC_AM_ARGUMENTS_MAX 16

/* Flags of active messages, which also take those of puts (enum pwc_flags) except PWC_NO_RCE and
 * PWC_NOTIFY. */
enum pwc_am_flags {
    /* The request gets no reply: its handler's reply fails with -EPERM. The request holds no room
     * for a reply, and the target sends nothing back: for many requests at full speed. */
    PWC_AM_NO_REPLY = 1 << 7,
};

enum pwc_am_kind {
    PWC_AM_SHORT = 1,
    PWC_AM_MEDIUM = 2,
    PWC_AM_LONG = 3,
};

/* The message that a handler is called for; valid until the handler returns. */
struct pwc_am {
    pwc_peer from;
    unsigned index;
    enum pwc_am_kind kind;
    int is_reply;
    unsigned count;            /* of arguments */
    const uint64_t *arguments; /* aligned to 8 */
    void *payload;  /* Medium: in the library's buffer, aligned to 8; Long: in our region */
    size_t length;  /* of the payload */
    uint64_t token; /* for pwc_am_reply_*, while the handler runs; 0 when there is nothing to reply
                       to */
    uint64_t reserved[4]; /* 0 */
};

typedef void (*pwc_am_handler)(pwc_ctx *ctx, const struct pwc_am *message, void *argument);

/*
 * Put a handler at an index of this context, or take it away (NULL). Do so before peers may send:
 * a message to an index without a handler ends with -ENOSYS at its sender. -EINVAL: no such index;
 * -ENOMEM.
 */
PWC_API int pwc_am_register(pwc_ctx *ctx, unsigned index, pwc_am_handler handler, void *argument);

/* Longest payload of a Medium, and of a Long. */
PWC_API size_t pwc_am_max_medium(const pwc_client *client);
PWC_API size_t pwc_am_max_long(const pwc_client *client);

/* The contents of a request or a reply. Start from a zeroed struct; calls read it only until they
 * return. */
struct pwc_am_send {
    unsigned index;            /* the handler at the receiver */
    unsigned count;            /* of arguments, up to PWC_AM_ARGUMENTS_MAX */
    const uint64_t *arguments; /* copied at submission */
    const void *src;           /* payload of a Medium or a Long; a Short has none */
    size_t len;                /* bytes at src */
    pwc_cid lid;               /* of the local event */
    unsigned flags;            /* enum pwc_flags, enum pwc_am_flags: as each call says */
    uint32_t reserved[3];      /* 0 */
};

/*
 * Send a request to the peer of `dst`, which for Short and Medium may be bound without a key. The
 * local event (lid) says that the message has reached its target, not that its handler has run;
 * with PWC_LCE_SOURCE, only that the payload's memory may be reused (at once for a Short or a
 * Medium, which are copied). A Long's payload goes to offset `off` of the region behind `dst`, from
 * any memory, as with pwc_put. The call is one on the context that `dst` is bound in. Never blocks,
 * except where pwc_put does.
 *
 * Errors as for pwc_put, and: -EAGAIN also when no room is left for one more reply, probe and try
 * again; -EINVAL: no such index, no `dst`, a Short with a payload, a reserved word that is not 0;
 * -E2BIG: over 16 arguments; -EMSGSIZE: the payload is too long, or a Medium is over a quarter of a
 * small submission ring; -EKEYREJECTED: also for a Long of no bytes. The status of the local event
 * may also be -ENOSYS: the target has no handler at that index.
 */
PWC_API int pwc_am_short(pwc_remote *dst, const struct pwc_am_send *send);
PWC_API int pwc_am_medium(pwc_remote *dst, const struct pwc_am_send *send);
PWC_API int pwc_am_long(pwc_remote *dst, uint64_t off, const struct pwc_am_send *send);

/*
 * Negotiated payload: gives room for a Medium of up to `len` bytes and `count` arguments in the
 * submission ring itself (aligned to 8), so that the payload is not copied. The caller writes the
 * payload there, then calls pwc_am_commit with its length, or pwc_am_cancel. In between only
 * replies may be submitted on this context: puts, gets, requests, pwc_flush of one peer and
 * pwc_unbind give -EBUSY. PWC_WAIT is refused. Errors as for pwc_am_medium. Errors of
 * pwc_am_commit, which may be tried again: -EINVAL: nothing is prepared, or no such index;
 * -EMSGSIZE: longer than prepared; -ESHUTDOWN, -EPROTO: the session is over. pwc_am_cancel gives
 * -EINVAL where nothing is prepared.
 */
PWC_API int pwc_am_prepare(pwc_remote *dst, size_t len, unsigned count, pwc_cid lid, unsigned flags,
                           void **payload);
PWC_API int pwc_am_commit(pwc_ctx *ctx, unsigned index, size_t len, const uint64_t *arguments);
PWC_API int pwc_am_cancel(pwc_ctx *ctx);

/*
 * Reply to the request whose handler is running, at most once. Never returns -EAGAIN: a handler
 * runs only when there is room for its reply. `dst` of a Long must be bound to the requester in
 * this context, by a bind that has ended, or -EINVAL. The payload of a Long over pwc_packed_max
 * must be in a region of this client, or -EFAULT, because a reply never waits, and so cannot be
 * sent in pieces. Flags are those of put except PWC_NO_RCE, PWC_NOTIFY, PWC_FENCE and PWC_WAIT.
 * -ESTALE: the token is not that of the running handler; -EALREADY: the handler has replied;
 * -EPERM: the request wants no reply, or is a reply itself; other errors as above. After an error
 * the handler may try again. The status of the local event may also be -EHOSTUNREACH: a Long to a
 * requester of the same node whose memory could not be mapped here. Where a handler does not reply,
 * the requester gets no event. pwc_flush waits for the ends of replies with PWC_ANY only.
 */
PWC_API int pwc_am_reply_short(pwc_ctx *ctx, uint64_t token, const struct pwc_am_send *send);
PWC_API int pwc_am_reply_medium(pwc_ctx *ctx, uint64_t token, const struct pwc_am_send *send);
PWC_API int pwc_am_reply_long(pwc_ctx *ctx, uint64_t token, pwc_remote *dst, uint64_t off,
                              const struct pwc_am_send *send);

#ifdef __cplusplus
}
#endif
#endif
