/*
 * Notified access: puts and gets that notify their target, which waits for the notification by
 * origin and tag, instead of for a separate message. Conventions as in pwc.h.
 *
 * A notification is the remote event of an operation with PWC_NOTIFY, so it appears when the data
 * of a put is placed, or when that of a get has been read (its buffer may be written again). A
 * target asks for notifications with a persistent request (pwc/request.h): pwc_notify_init, then
 * pwc_start, and pwc_test or a wait, as often as it likes.
 *
 * Matching:
 *   - a notification is given to the started request that matches it; where several match, to the
 *     request that was started first, whichever of them is tested;
 *   - a notification that matches no request is kept as unexpected; pwc_start looks at the
 *     unexpected first, from the oldest on;
 *   - a request ends after `count` notifications, and its status is that of the last notification:
 *     the origin, the id (pwc_notice) and the bytes that were moved;
 *   - notifications of one pair of contexts arrive in the order of submission, on every path;
 *     notifications of different origins in any order.
 * Every call that reads a context's rings matches the notifications it finds: probe, wait, test,
 * flush.
 *
 * A context keeps up to 65536 unexpected notifications (pwc_ctx_attr.unexpected). When so many are
 * kept and the next notification matches no started request, that notification and all remote
 * events, notifications and messages after it stay in their rings, their senders are held, and
 * nothing is lost. A wait that cannot continue then gives -ENOBUFS; starting a request that matches
 * makes room. Local events and replies continue.
 *
 * A window is only a convenience. pwc_put with PWC_NOTIFY and a pwc_notice does the same without a
 * window, and a probe for PWC_NOTIFICATION gives the notifications that no started request matches,
 * oldest first. A probe for PWC_REMOTE and PWC_NOTIFICATION keeps no order between the two kinds.
 *
 * The terms are those of Belli and Hoefler, "Notified Access: Extending Remote Memory Access
 * Programming Models for Producer-Consumer Synchronization" (2015).
 */
#ifndef PWC_NOTIFY_H
#define PWC_NOTIFY_H

#include <pwc/request.h>
#include <pwc/team.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct pwc_window pwc_window;

/* Wildcards of pwc_notify_init. */
#define PWC_ANY_RANK UINT32_MAX
#define PWC_ANY_TAG  UINT32_MAX

/* The remote completion id of a notification. Spaces below 65536 belong to the program; windows get
 * higher ones. */
static inline pwc_cid pwc_notice(uint32_t space, uint32_t tag)
{
    return pwc_cid_u64((uint64_t)space << 32 | tag);
}

/*
 * A window: the members of a team, or, where `team` is NULL, all ranks of the job, each with the
 * context and the region that it passes. A window has a space of its own. Ranks are those of the
 * team. `mine` may be NULL; then others can notify the rank, but not reach its memory. The caller
 * keeps the region; region and team must outlive the window, and pwc_team_free gives -EBUSY before
 * its end. Collective as pwc_exchange, and blocks. -EINVAL: a team of another context, or a region
 * of another client; -EHOSTDOWN, -EBADMSG: a broken team; -ENOTSUP: the region is local only, or
 * without a team: the job is open (pwc/open.h); -ECANCELED: another rank could not take part, and
 * pwc_error_text names it; -ENOSPC: all spaces are used up; else as pwc_exchange. A rank that
 * cannot take part ends the call at all ranks at once.
 */
PWC_API int pwc_window_create(pwc_ctx *ctx, pwc_team *team, pwc_region *mine, pwc_window **out);

/*
 * Ends a window: flushes its context, waits until all ranks have called this, and unbinds its
 * remotes. Notifications of its space that are unexpected or still in the rings are dropped. Free
 * its requests first. Collective, and blocks. On an error the window stays, and the call may be
 * made again: this goes on where the failed call stopped, so the other ranks call only once.
 * -EBUSY: a request of it is started, or an active message has been prepared; else as pwc_flush,
 * pwc_barrier and pwc_unbind. A barrier of the job that fails does so at all ranks. Where a rank
 * has ended, so that the team is broken or pwc_barrier gives -EHOSTDOWN, the call waits for nobody,
 * and ends the window.
 */
PWC_API int pwc_window_free(pwc_window *window);

/* The remote of a rank's region. The first call for a rank binds it, and so blocks; later ones
 * return at once. The remote belongs to the window: do not unbind it. -EINVAL: no such rank; else
 * as pwc_bind. */
PWC_API int pwc_window_remote(pwc_window *window, uint32_t rank, pwc_remote **out);

/* The rank of a status's peer; -ENOENT: no rank of the window has passed that context. */
PWC_API int pwc_window_rank(const pwc_window *window, pwc_peer peer);

/*
 * pwc_put and pwc_get to a rank of the window, with PWC_NOTIFY and a tag below PWC_ANY_TAG. The
 * first operation to a rank binds it, and so blocks, unless pwc_window_remote has done that. A
 * length of 0 is a notification alone. -EINVAL: also no such rank, or no such tag; -EDEADLK: inside
 * a handler, and the rank is not bound yet; else as pwc_put, pwc_get and pwc_bind.
 */
PWC_API int pwc_put_notify(pwc_window *window, uint32_t rank, uint64_t off, const void *src,
                           size_t len, uint32_t tag, pwc_cid lid, unsigned flags);
PWC_API int pwc_get_notify(pwc_window *window, uint32_t rank, uint64_t off, void *dst, size_t len,
                           uint32_t tag, pwc_cid lid, unsigned flags);

/*
 * A persistent request for `count` notifications, at least 1, from rank `source` (or PWC_ANY_RANK)
 * with this tag (or PWC_ANY_TAG). With a lid other than PWC_CID_NONE each end is a local event too.
 * Free it with pwc_request_free. -EINVAL: no such rank, a count of 0, an id over PWC_CID_MAX;
 * -ENOMEM.
 */
PWC_API int pwc_notify_init(pwc_window *window, uint32_t source, uint32_t tag, uint32_t count,
                            pwc_cid lid, pwc_request **out);

#ifdef __cplusplus
}
#endif
#endif
