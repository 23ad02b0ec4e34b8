/*
 * Collectives of a team: calls that all members make together. Conventions as in pwc.h.
 *
 * No call here blocks. Each ends by a local event (lid, op PWC_OP_COLLECTIVE) or by a request
 * (pwc/request.h), as operations do, and continues while no member makes a call: the last member of
 * a node to call combines the input of that node's members, within its call; between nodes the
 * daemons carry the data. To block, give the call a request and wait for it.
 *
 *     pwc_team_allreduce(team, &mine, &sum, 1, PWC_F64, PWC_ADD, pwc_cid_request(r), 0);
 *     compute();
 *     pwc_request_wait(r, &status, -1);
 *
 *   - Calls of one team are matched by their order: all members make the same calls, with the same
 *     count, type, operation and root. Where they do not, the team breaks with -EBADMSG (pwc/
 *     team.h). Calls of different teams are independent: members may make them in different orders,
 *     as long as they do not wait for one before they make the other.
 *   - Local events of a team appear in the order of its calls. The event says that this member's
 *     input may be used again and its output is there. Only a barrier says more: that every member
 *     has called it. At members that only send, as the root of a bcast does, a call may end before
 *     others have called.
 *   - As many collectives of a team may be under way as its window says (64 by default); a further
 *     call gives -EAGAIN. At most 8 calls with more than 40 bytes travel at once. A further one
 *     waits for its turn, and a call also waits while members have still to take earlier results:
 *     the call begins when this member probes, tests or waits.
 *   - In place: `in` NULL says that the input is in `out`, where the output will be; for gather,
 *     that this member's block is already at its place in `out`. For scatter, `out` NULL at the
 *     root leaves the root's block where it is. Alltoall and alltoallv cannot be in place
 *     (-EINVAL). Otherwise `in` and `out` must not overlap.
 *   - A team of one, and counts and lengths of 0, are ordinary cases.
 *   - Results are the same bits at every member, and in every run in which ranks are spread over
 *     nodes in the same way: values are combined in the order of ranks, never of arrival.
 *   - Types and operations are those of pwc/atomic.h, except for PWC_SET and PWC_READ.
 *
 * Sizes: a call is *small* where no member gives more than pwc_team_small_max bytes to one operand
 * or block, and neither the input of all members of the fullest node together nor the output of one
 * of its members is more than 124 KiB (62 KiB for a scan). A longer call is cut into slices of that
 * size, of which up to 8 are on their way at once. Later slices, and calls after them, begin only
 * when this member probes, tests or waits. For gatherv, scatterv and alltoallv the members find the
 * longest block first, and all blocks travel as slices of that length. `in` and `out` may be any
 * memory. They are read and written until the end, so do not change the input, not even of a small
 * call.
 *
 * Results of every call, after which nothing has begun:
 *     -EAGAIN      as many are under way as the window says, or there is no room for the call's
 *                  local event: probe, try again
 *     -EINVAL      unknown flags, no such root, type or operation, an id over PWC_CID_MAX
 *     -ENOTSUP     the team has so many members that 124 KiB have no room for a byte of each pair
 *     -EMSGSIZE    the counts are too large: nothing of that size can be moved
 *     -EHOSTDOWN, -EBADMSG   the team is broken
 *     -EBUSY       an active message has been prepared
 *     -ENOMEM, -ESHUTDOWN, -EPROTO
 * An end has the status 0, or -EHOSTDOWN or -EBADMSG where the team broke while the call was under
 * way, or -EPROTO where this member has found that the memory that members share makes no sense;
 * its peer is this context, its length the bytes that this member received. `flags`: 0 or
 * PWC_NO_LCE.
 *
 * The persistent forms (..._init) make a request that makes the same call, with the same memory,
 * whenever it is started; `lid` is as in pwc_notify_init. In the order of calls a start counts, not
 * the making of the request. pwc_start gives the errors of the call, and leaves the request idle
 * then.
 *
 * Names and meaning are those of MPI: A Message-Passing Interface Standard, version 4.0, chapter 6,
 * except that reduce_scatter is its block form, and that exscan leaves rank 0's output alone.
 */
#ifndef PWC_COLLECTIVE_H
#define PWC_COLLECTIVE_H

#include <pwc/atomic.h>
#include <pwc/request.h>
#include <pwc/team.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Ends when every member has called it. */
PWC_API int pwc_team_barrier(pwc_team *team, pwc_cid lid, unsigned flags);

/* Copies `len` bytes of the root to all others. */
PWC_API int pwc_team_bcast(pwc_team *team, void *data, size_t len, uint32_t root, pwc_cid lid,
                           unsigned flags);

/* Combines element by element: out[0] is in[0] of rank 0 op in[0] of rank 1 op ... Reduce gives
 * `out` to the root, and only the root uses `out`; allreduce gives it to all members. Reduce may be
 * in place at the root, allreduce at any member that passes `in` NULL. */
PWC_API int pwc_team_reduce(pwc_team *team, const void *in, void *out, size_t count,
                            enum pwc_type type, enum pwc_atomic_op op, uint32_t root, pwc_cid lid,
                            unsigned flags);
PWC_API int pwc_team_allreduce(pwc_team *team, const void *in, void *out, size_t count,
                               enum pwc_type type, enum pwc_atomic_op op, pwc_cid lid,
                               unsigned flags);

/* A scan combines the operands of ranks 0 to this one, an exscan those of ranks 0 to the rank
 * before this one. Rank 0's `out` of an exscan is not changed. */
PWC_API int pwc_team_scan(pwc_team *team, const void *in, void *out, size_t count,
                          enum pwc_type type, enum pwc_atomic_op op, pwc_cid lid, unsigned flags);
PWC_API int pwc_team_exscan(pwc_team *team, const void *in, void *out, size_t count,
                            enum pwc_type type, enum pwc_atomic_op op, pwc_cid lid, unsigned flags);

/* Reduces a block of `count` elements for each member; rank r gets block r of the result. In place:
 * the input is in `out`, which then has room for all blocks, and the result is the first block
 * there. */
PWC_API int pwc_team_reduce_scatter(pwc_team *team, const void *in, void *out, size_t count,
                                    enum pwc_type type, enum pwc_atomic_op op, pwc_cid lid,
                                    unsigned flags);

/* Collects a block of `len` bytes of each member in the root's `out`, by rank. */
PWC_API int pwc_team_gather(pwc_team *team, const void *in, void *out, size_t len, uint32_t root,
                            pwc_cid lid, unsigned flags);
/* As gather with blocks of different lengths: `len` is the length of this member's block. At the
 * root, block r has lens[r] bytes and is placed at offsets[r] of `out`; both arrays stay untouched
 * until the end. */
PWC_API int pwc_team_gatherv(pwc_team *team, const void *in, size_t len, void *out,
                             const size_t *lens, const size_t *offsets, uint32_t root, pwc_cid lid,
                             unsigned flags);

/* Sends block r, of `len` bytes, of the root's `in` to rank r. */
PWC_API int pwc_team_scatter(pwc_team *team, const void *in, void *out, size_t len, uint32_t root,
                             pwc_cid lid, unsigned flags);
PWC_API int pwc_team_scatterv(pwc_team *team, const void *in, const size_t *lens,
                              const size_t *offsets, void *out, size_t len, uint32_t root,
                              pwc_cid lid, unsigned flags);

/* Collects a block of `len` bytes of each member in every `out`, by rank. */
PWC_API int pwc_team_allgather(pwc_team *team, const void *in, void *out, size_t len, pwc_cid lid,
                               unsigned flags);
PWC_API int pwc_team_allgatherv(pwc_team *team, const void *in, size_t len, void *out,
                                const size_t *lens, const size_t *offsets, pwc_cid lid,
                                unsigned flags);

/* Block s of rank r's `in`, of `len` bytes, becomes block r of rank s's `out`. */
PWC_API int pwc_team_alltoall(pwc_team *team, const void *in, void *out, size_t len, pwc_cid lid,
                              unsigned flags);
PWC_API int pwc_team_alltoallv(pwc_team *team, const void *in, const size_t *in_lens,
                               const size_t *in_offsets, void *out, const size_t *out_lens,
                               const size_t *out_offsets, pwc_cid lid, unsigned flags);

/*
 * An operation of the program's own: combines `count` elements at `into`, of lower ranks, with the
 * elements at `from`, of the next rank, and leaves the result at `into`. `arg` is the caller's. The
 * function runs in the program, inside probe, test or wait of this context, or inside the
 * collective call itself; as in a handler (pwc/am.h), calls that block, probe or wait give -EDEADLK
 * there. The operation need not be commutative, but every member has to give the same result for
 * the same bits.
 */
typedef void pwc_fold(void *into, const void *from, size_t count, void *arg);

/* Allreduce of `count` elements of `element` bytes by an operation of the program's own. -EMSGSIZE:
 * the input of all members together is more than 1 MiB, or one element of each member together more
 * than 124 KiB. */
PWC_API int pwc_team_allreduce_user(pwc_team *team, const void *in, void *out, size_t count,
                                    size_t element, pwc_fold *fold, void *arg, pwc_cid lid,
                                    unsigned flags);

/* ---- persistent forms ------------------------------------------------------------------------ */

PWC_API int pwc_team_barrier_init(pwc_team *team, pwc_cid lid, pwc_request **request);
PWC_API int pwc_team_bcast_init(pwc_team *team, void *data, size_t len, uint32_t root, pwc_cid lid,
                                pwc_request **request);
PWC_API int pwc_team_reduce_init(pwc_team *team, const void *in, void *out, size_t count,
                                 enum pwc_type type, enum pwc_atomic_op op, uint32_t root,
                                 pwc_cid lid, pwc_request **request);
PWC_API int pwc_team_allreduce_init(pwc_team *team, const void *in, void *out, size_t count,
                                    enum pwc_type type, enum pwc_atomic_op op, pwc_cid lid,
                                    pwc_request **request);
PWC_API int pwc_team_scan_init(pwc_team *team, const void *in, void *out, size_t count,
                               enum pwc_type type, enum pwc_atomic_op op, pwc_cid lid,
                               pwc_request **request);
PWC_API int pwc_team_exscan_init(pwc_team *team, const void *in, void *out, size_t count,
                                 enum pwc_type type, enum pwc_atomic_op op, pwc_cid lid,
                                 pwc_request **request);
PWC_API int pwc_team_reduce_scatter_init(pwc_team *team, const void *in, void *out, size_t count,
                                         enum pwc_type type, enum pwc_atomic_op op, pwc_cid lid,
                                         pwc_request **request);
PWC_API int pwc_team_gather_init(pwc_team *team, const void *in, void *out, size_t len,
                                 uint32_t root, pwc_cid lid, pwc_request **request);
PWC_API int pwc_team_gatherv_init(pwc_team *team, const void *in, size_t len, void *out,
                                  const size_t *lens, const size_t *offsets, uint32_t root,
                                  pwc_cid lid, pwc_request **request);
PWC_API int pwc_team_scatter_init(pwc_team *team, const void *in, void *out, size_t len,
                                  uint32_t root, pwc_cid lid, pwc_request **request);
PWC_API int pwc_team_scatterv_init(pwc_team *team, const void *in, const size_t *lens,
                                   const size_t *offsets, void *out, size_t len, uint32_t root,
                                   pwc_cid lid, pwc_request **request);
PWC_API int pwc_team_allgather_init(pwc_team *team, const void *in, void *out, size_t len,
                                    pwc_cid lid, pwc_request **request);
PWC_API int pwc_team_allgatherv_init(pwc_team *team, const void *in, size_t len, void *out,
                                     const size_t *lens, const size_t *offsets, pwc_cid lid,
                                     pwc_request **request);
PWC_API int pwc_team_alltoall_init(pwc_team *team, const void *in, void *out, size_t len,
                                   pwc_cid lid, pwc_request **request);
PWC_API int pwc_team_alltoallv_init(pwc_team *team, const void *in, const size_t *in_lens,
                                    const size_t *in_offsets, void *out, const size_t *out_lens,
                                    const size_t *out_offsets, pwc_cid lid, pwc_request **request);
PWC_API int pwc_team_allreduce_user_init(pwc_team *team, const void *in, void *out, size_t count,
                                         size_t element, pwc_fold *fold, void *arg, pwc_cid lid,
                                         pwc_request **request);

#ifdef __cplusplus
}
#endif
#endif
