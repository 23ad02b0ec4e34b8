/*
 * Remotes that are not bound: late ones, which their first use binds (pwc_bind_all), those that are
 * being bound (pwc_bind_start), and those that could not be.
 *
 * Such a remote has a constant of its state in the place of a pair, which leads each call off its
 * fast way (direct_choose, direct_leave); there the call binds the remote, or ends with an error. A
 * late one has the length and the rights that its owner has given, so that calls check ranges as
 * ever. One that is being bound, or could not be, has all rights and no end, so that these checks
 * pass.
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

/* Gives a remote its state; of the second and the third one, also its length and rights. */
void unbound_set(struct pwc_remote *remote, enum unbound_state state);
/* Puts a remote with a state among those of its context that are not bound. */
void unbound_add(struct pwc_remote *remote);
/* Takes it out, without a state; it is then the caller's to free, or to be bound. */
void unbound_forget(struct pwc_remote *remote);

#endif
