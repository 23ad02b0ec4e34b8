/*
 * Remotes that are not bound: late ones, which their first use binds (pwc_bind_all), remotes that
 * are being bound (pwc_bind_start), and remotes that could not be bound.
 *
 * Such a remote has a constant in place of a pair, one for each state. This makes each call leave
 * its fast way (direct_choose, direct_leave); there the call binds the remote, or ends with an
 * error. A late remote has the length and rights that its owner gave, so calls can check ranges as
 * usual. A remote that is being bound, or could not be, has all rights and unlimited length, so
 * that these checks pass.
 *
 * Thread: the one that owns the context.
 */
#ifndef PWC_CLIENTLIB_UNBOUND_H
#define PWC_CLIENTLIB_UNBOUND_H

#include "clientlib/attach/context.h"

enum unbound_state { UNBOUND_LATE, UNBOUND_UNDER_WAY, UNBOUND_FAILED, UNBOUND_STATES };

/* Never written. */
extern const struct direct_pair unbound_pairs[UNBOUND_STATES];

static inline bool remote_is(const struct pwc_remote *remote, enum unbound_state state)
{
    return remote->pair == &unbound_pairs[state];
}

static inline bool remote_is_unbound(const struct pwc_remote *remote)
{
    return (uintptr_t)remote->pair - (uintptr_t)unbound_pairs < sizeof(unbound_pairs);
}

/* Sets a remote's state; for UNBOUND_UNDER_WAY and UNBOUND_FAILED also its length and rights. */
void unbound_set(struct pwc_remote *remote, enum unbound_state state);
/* Adds a remote with a state to the context's list of unbound remotes. */
void unbound_add(struct pwc_remote *remote);
/* Takes a remote off that list, and clears its state; the caller then frees it, or binds it. */
void unbound_forget(struct pwc_remote *remote);

#endif
