/*
 * Put with signal: checks the arguments, finds the memory, submits. Owns nothing.
 *
 * Thread: the one that owns the context. No system call unless the daemon or the target sleeps, or
 * the daemon waits for this processor (give_way.h), no allocation, no lock (except a copy of the
 * span table when a region was added or removed).
 */
#include "pwc/signal.h"

#include <errno.h>
#include "clientlib/calls/operation.h"
#include "clientlib/calls/room.h"
#include "clientlib/neighbours/direct.h"
#include "shm_ring/word.h"

enum {
    SIGNAL_FLAGS =
        PWC_NO_LCE | PWC_LCE_SOURCE | PWC_FENCE | PWC_UNORDERED | (unsigned)SUBMIT_PROTOCOL,
};

/* The word needs the right to write, so the call does, even without a payload. */
static int check(const struct pwc_ctx *ctx, const struct pwc_remote *dst, uint64_t off, size_t len,
                 const struct signal *s, const pwc_cid *lid, unsigned flags)
{
    int rc = operation_check(ctx, lid, flags, SIGNAL_FLAGS);

    if (rc == 0 && s->offset % sizeof(s->value) != 0)
        rc = -EINVAL;
    if (rc == 0)
        rc = operation_check_range(ctx, dst, off, len, PWC_REMOTE_WRITE);
    if (rc == 0)
        rc = operation_check_range(ctx, dst, s->offset, sizeof(s->value), PWC_REMOTE_WRITE);
    return rc;
}

static int signal_by_daemon(struct pwc_ctx *ctx, const struct pwc_remote *dst, uint64_t off,
                            const void *src, size_t len, const struct signal *s, const pwc_cid *lid,
                            unsigned flags)
{
    struct operation op = {
        .outbox = &ctx->channel.submit,
        .record = {.kind = SUBMIT_SIGNAL,
                   .flags = (uint16_t)flags,
                   .remote = dst->handle,
                   .offset = off,
                   .length = len,
                   .rid_len = sizeof(*s)},
        .rid = s,
    };

    operation_set_lid(&op, lid);
    return operation_submit_payload(ctx, &op, src);
}

/* `lid` is an event's id. */
static int put_signal(pwc_remote *dst, uint64_t off, const void *src, size_t len,
                      const struct signal *s, const pwc_cid *lid, unsigned flags)
{
    struct pwc_ctx *ctx = dst->ctx;
    int rc = check(ctx, dst, off, len, s, lid, flags);

    if (rc == 0 && dst->pair)
        rc = direct_choose(ctx, dst, false);
    if (rc == 1)
        return direct_signal(ctx, dst, off, src, len, s, lid, flags);
    return rc < 0 ? rc : signal_by_daemon(ctx, dst, off, src, len, s, lid, flags);
}

/* As put_signal, for a request. */
static int put_signal_for_request(pwc_remote *dst, uint64_t off, const void *src, size_t len,
                                  const struct signal *s, const pwc_cid *lid, unsigned flags)
{
    struct pwc_ctx *ctx = dst->ctx;
    struct pwc_request *r = operation_request(ctx, lid);
    const pwc_cid id = r ? request_cid(r) : *lid;
    int rc = check(ctx, dst, off, len, s, &id, flags);

    if (rc == 0 && dst->pair)
        rc = direct_choose(ctx, dst, false);
    if (rc == 1) {
        rc = direct_signal(ctx, dst, off, src, len, s, &id, flags | PWC_NO_LCE);
        if (rc == 0)
            request_end_at_once(r, 0, dst->peer, len);
    } else if (rc == 0) {
        rc = signal_by_daemon(ctx, dst, off, src, len, s, &id, operation_request_flags(flags));
        if (rc == 0)
            request_begin(r);
    }
    return rc;
}

/* `lid` is an event's id or a request. */
static int put_signal_now(pwc_remote *dst, uint64_t off, const void *src, size_t len,
                          const struct signal *s, const pwc_cid *lid, unsigned flags)
{
    return lid->size > PWC_CID_MAX ? put_signal_for_request(dst, off, src, len, s, lid, flags)
                                   : put_signal(dst, off, src, len, s, lid, flags);
}

static int put_signal_waiting(pwc_remote *dst, uint64_t off, const void *src, size_t len,
                              const struct signal *s, const pwc_cid *lid, unsigned flags)
{
    struct room room;
    int rc = room_begin(&room, dst, lid, flags);

    if (rc < 0)
        return rc;
    do
        rc = put_signal_now(dst, off, src, len, s, lid, flags & ~(unsigned)PWC_WAIT);
    while (room_wait(&room, &rc));
    return rc;
}

int pwc_put_signal(pwc_remote *dst, uint64_t off, const void *src, size_t len, uint64_t signal_off,
                   uint64_t value, enum pwc_atomic_op op, pwc_cid lid, unsigned flags)
{
    const struct signal s = {
        .offset = signal_off, .value = value, .code = word_code((enum word_op)op, WORD_U64)};

    static_assert((int)PWC_SET == (int)WORD_SET && (int)PWC_ADD == (int)WORD_ADD,
                  "operations pass to the daemon as they are");
    if (!dst || (op != PWC_SET && op != PWC_ADD))
        return -EINVAL;
    return flags & PWC_WAIT ? put_signal_waiting(dst, off, src, len, &s, &lid, flags)
                            : put_signal_now(dst, off, src, len, &s, &lid, flags);
}
