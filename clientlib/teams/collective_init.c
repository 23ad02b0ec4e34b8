/*
 * Owns nothing: the persistent forms of collectives. Thread: the one that owns the context.
 */
#include "clientlib/teams/describe.h"

int pwc_team_barrier_init(pwc_team *t, pwc_cid lid, pwc_request **request)
{
    return team_make_again(t, describe_move(TEAM_BARRIER, NULL, NULL, 0, 0), lid, request);
}

int pwc_team_bcast_init(pwc_team *t, void *data, size_t len, uint32_t root, pwc_cid lid,
                        pwc_request **request)
{
    return team_make_again(t, describe_bcast(t, data, len, root), lid, request);
}

int pwc_team_reduce_init(pwc_team *t, const void *in, void *out, size_t count, enum pwc_type type,
                         enum pwc_atomic_op op, uint32_t root, pwc_cid lid, pwc_request **request)
{
    return team_make_again(t, describe_fold(TEAM_REDUCE, in, out, count, type, op, root), lid,
                           request);
}

int pwc_team_allreduce_init(pwc_team *t, const void *in, void *out, size_t count,
                            enum pwc_type type, enum pwc_atomic_op op, pwc_cid lid,
                            pwc_request **request)
{
    return team_make_again(t, describe_fold(TEAM_ALLREDUCE, in, out, count, type, op, 0), lid,
                           request);
}

int pwc_team_scan_init(pwc_team *t, const void *in, void *out, size_t count, enum pwc_type type,
                       enum pwc_atomic_op op, pwc_cid lid, pwc_request **request)
{
    return team_make_again(t, describe_fold(TEAM_SCAN, in, out, count, type, op, 0), lid, request);
}

int pwc_team_exscan_init(pwc_team *t, const void *in, void *out, size_t count, enum pwc_type type,
                         enum pwc_atomic_op op, pwc_cid lid, pwc_request **request)
{
    return team_make_again(t, describe_fold(TEAM_EXSCAN, in, out, count, type, op, 0), lid,
                           request);
}

int pwc_team_reduce_scatter_init(pwc_team *t, const void *in, void *out, size_t count,
                                 enum pwc_type type, enum pwc_atomic_op op, pwc_cid lid,
                                 pwc_request **request)
{
    return team_make_again(t, describe_fold(TEAM_REDUCE_SCATTER, in, out, count, type, op, 0), lid,
                           request);
}

int pwc_team_gather_init(pwc_team *t, const void *in, void *out, size_t len, uint32_t root,
                         pwc_cid lid, pwc_request **request)
{
    return team_make_again(t, describe_move(TEAM_GATHER, in, out, len, root), lid, request);
}

int pwc_team_gatherv_init(pwc_team *t, const void *in, size_t len, void *out, const size_t *lens,
                          const size_t *offsets, uint32_t root, pwc_cid lid, pwc_request **request)
{
    return team_make_again(t, describe_gatherv(TEAM_GATHERV, in, len, out, lens, offsets, root),
                           lid, request);
}

int pwc_team_scatter_init(pwc_team *t, const void *in, void *out, size_t len, uint32_t root,
                          pwc_cid lid, pwc_request **request)
{
    return team_make_again(t, describe_move(TEAM_SCATTER, in, out, len, root), lid, request);
}

int pwc_team_scatterv_init(pwc_team *t, const void *in, const size_t *lens, const size_t *offsets,
                           void *out, size_t len, uint32_t root, pwc_cid lid, pwc_request **request)
{
    return team_make_again(t, describe_scatterv(in, lens, offsets, out, len, root), lid, request);
}

int pwc_team_allgather_init(pwc_team *t, const void *in, void *out, size_t len, pwc_cid lid,
                            pwc_request **request)
{
    return team_make_again(t, describe_move(TEAM_ALLGATHER, in, out, len, 0), lid, request);
}

int pwc_team_allgatherv_init(pwc_team *t, const void *in, size_t len, void *out, const size_t *lens,
                             const size_t *offsets, pwc_cid lid, pwc_request **request)
{
    return team_make_again(t, describe_gatherv(TEAM_ALLGATHERV, in, len, out, lens, offsets, 0),
                           lid, request);
}

int pwc_team_alltoall_init(pwc_team *t, const void *in, void *out, size_t len, pwc_cid lid,
                           pwc_request **request)
{
    return team_make_again(t, describe_move(TEAM_ALLTOALL, in, out, len, 0), lid, request);
}

int pwc_team_alltoallv_init(pwc_team *t, const void *in, const size_t *in_lens,
                            const size_t *in_offsets, void *out, const size_t *out_lens,
                            const size_t *out_offsets, pwc_cid lid, pwc_request **request)
{
    return team_make_again(
        t, describe_alltoallv(in, in_lens, in_offsets, out, out_lens, out_offsets), lid, request);
}

int pwc_team_allreduce_user_init(pwc_team *t, const void *in, void *out, size_t count,
                                 size_t element, pwc_fold *fold, void *arg, pwc_cid lid,
                                 pwc_request **request)
{
    return team_make_again(t, describe_user(in, out, count, element, fold, arg), lid, request);
}
