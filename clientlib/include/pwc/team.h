/*
 * Teams: ordered sets of contexts that make collective calls together (pwc/collective.h), and that
 * windows may be made over (pwc/notify.h). Conventions as in pwc.h.
 *
 * A team's members are numbered from 0: the team rank, which has nothing to do with the rank in the
 * job. Each member is one context of a rank; calls on a team are calls on that context, on its
 * thread. A context may be in many teams.
 *
 * Teams are made from teams, the first one from the job. All members of the parent make the same
 * calls in the same order, also those that get no team: the n-th call of one member over this
 * parent belongs to the n-th calls of the others. Calls of pwc_team_world belong together by
 * context number: each rank takes part with its context of that number. These calls block.
 *
 *     pwc_team_world      all ranks                    0 1 2 3 4 5 6 7
 *     split by color      one team for each color     [0 2 4 6] [1 3 5 7]
 *     split_strided       first 1, stride 3, count 2   [1 4]
 *     split_node          one team for each node      [0 1 2 3] [4 5 6 7]
 *     shrink              the members that are left   [0 1 2 4 5 6 7]
 *
 * A member that ends, whatever the reason, breaks its teams, and so do collective calls of its
 * members that do not match. Each collective that is under way in a broken team, and each later
 * call, then ends with -EHOSTDOWN or -EBADMSG at every member, once; pwc_team_error_text says why.
 * At some members the collective that was under way may have succeeded. pwc_team_shrink makes a new
 * team of the members that have neither ended nor freed the broken team.
 *
 * The term is OpenSHMEM's; a team is like MPI's communicator without point-to-point messages.
 */
#ifndef PWC_TEAM_H
#define PWC_TEAM_H

#include <pwc/pwc.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct pwc_team pwc_team;

/* A zeroed attr, or NULL, takes the defaults. */
struct pwc_team_attr {
    uint32_t window;      /* collectives that may be under way at once: a power of two up to 4096;
                             0: 64; the same at all members */
    uint32_t reserved[7]; /* 0 */
};

/*
 * A team of all ranks of the job, in their order, each with its context of the number that `ctx`
 * has. Blocks. -EINVAL: a window that is no power of two up to 4096, or not the same at all
 * members; -EDQUOT, -ENOSPC: too many teams, or too much memory for them, of some member's client,
 * user or daemon; -ENOTSUP: the job is open (pwc/open.h); -EPROTONOSUPPORT: library and daemon have
 * team memory of different versions; -EPROTO: the nodes of members have different algorithms
 * (`collective` in pwcd.conf); -EHOSTDOWN: a member has ended; -ETIMEDOUT: a member did not
 * make the call within the client's timeout; -ENOMEM, -EMFILE: no memory or descriptors;
 * pwc_error_text says why. An error of one member is the result at all members, except -ETIMEDOUT,
 * -ENOMEM and -EMFILE: after these the others may have the team, which is then broken.
 */
PWC_API int pwc_team_world(pwc_ctx *ctx, const struct pwc_team_attr *attr, pwc_team **out);

/*
 * A team of those members of `parent` that give the same color, ordered by key, then by their rank
 * in the parent. With a negative color a member is in no team, and *out is NULL. Blocks; errors as
 * pwc_team_world. The parent does not change, and may be freed before the new team.
 */
PWC_API int pwc_team_split(pwc_team *parent, int color, int key, const struct pwc_team_attr *attr,
                           pwc_team **out);

/* A team of the parent's ranks first, first + stride, ..., `count` of them, in this order; *out is
 * NULL at the others. The window is the parent's. -EINVAL: no members, or ranks that the parent
 * does not have; else as pwc_team_split. */
PWC_API int pwc_team_split_strided(pwc_team *parent, uint32_t first, int stride, uint32_t count,
                                   pwc_team **out);

/* A team of the parent's members on this node, in their order. Its window is the parent's. Errors
 * as pwc_team_split. */
PWC_API int pwc_team_split_node(pwc_team *parent, pwc_team **out);

/* A team of the same members, in the same order, with a window of its own; calls on the two teams
 * are independent. `ctx` is this member's context in the new team, another one of the same client;
 * or NULL: it stays the same. So several threads can have teams of the same ranks. The call uses
 * both contexts: no other thread may use `ctx` before the call returns. Errors as pwc_team_split;
 * -EINVAL: another client's. */
PWC_API int pwc_team_dup(pwc_team *team, pwc_ctx *ctx, pwc_team **out);

/* A team of the members of a broken team that are left, in their order; all of them call it. The
 * call waits for each member that is not known to have ended. Errors as pwc_team_split. */
PWC_API int pwc_team_shrink(pwc_team *broken, pwc_team **out);

/*
 * Leaves a team, and frees it. Collective, and blocks: in a team that is not broken it waits until
 * all members have called it, and takes events as pwc_flush does. On an error the team stays.
 * -EBUSY: a collective is under way, a persistent request of the team or a window over it is left,
 * or an active message is prepared; -ETIMEDOUT: not all members have called it within the client's
 * timeout. A member that ends without this call, also by pwc_ctx_destroy or pwc_finalize, breaks
 * the team.
 */
PWC_API int pwc_team_free(pwc_team *team);

/* This member's number, and the number of members. */
PWC_API uint32_t pwc_team_rank(const pwc_team *team);
PWC_API uint32_t pwc_team_size(const pwc_team *team);

/* The context that is member `rank`. -EINVAL: no such rank. */
PWC_API int pwc_team_peer(const pwc_team *team, uint32_t rank, pwc_peer *out);

/* The longest operand that travels in one piece through memory that the members of a node share:
 * 124 KiB divided by the number of members of the fullest node. See "Sizes" in pwc/collective.h. */
PWC_API size_t pwc_team_small_max(const pwc_team *team);

/* Why the team is broken, or why its last call failed: which member ended, or which calls of which
 * members do not match. As pwc_error_text; empty where nothing has failed. */
PWC_API size_t pwc_team_error_text(pwc_team *team, char *text, size_t size);

#ifdef __cplusplus
}
#endif
#endif
