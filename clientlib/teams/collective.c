/*
 * Owns nothing: collectives that begin at once. Thread: the one that owns the context.
 */
#include "clientlib/teams/describe.h"

int pwc_team_barrier(pwc_team *t, pwc_cid lid, unsigned flags)
{
    return team_call(t, describe_move(TEAM_BARRIER, NULL, NULL, 0, 0), lid, flags);
}

int pwc_team_bcast(pwc_team *t, void *data, size_t len, uint32_t root, pwc_cid lid, unsigned flags)
{
    return team_call(t, describe_bcast(t, data, len, root), lid, flags);
}

int pwc_team_reduce(pwc_team *t, const void *in, void *out, size_t count, enum pwc_type type,
                    enum pwc_atomic_op op, uint32_t root, pwc_cid lid, unsigned flags)
{
    return team_call(t, describe_fold(TEAM_REDUCE, in, out, count, type, op, root), lid, flags);
}

int pwc_team_allreduce(pwc_team *t, const void *in, void *out, size_t count, enum pwc_type type,
                       enum pwc_atomic_op op, pwc_cid lid, unsigned flags)
{
    return team_call(t, describe_fold(TEAM_ALLREDUCE, in, out, count, type, op, 0), lid, flags);
}

int pwc_team_scan(pwc_team *t, const void *in, void *out, size_t count, enum pwc_type type,
                  enum pwc_atomic_op op, pwc_cid lid, unsigned flags)
{
    return team_call(t, describe_fold(TEAM_SCAN, in, out, count, type, op, 0), lid, flags);
}

int pwc_team_exscan(pwc_team *t, const void *in, void *out, size_t count, enum pwc_type type,
                    enum pwc_atomic_op op, pwc_cid lid, unsigned flags)
{
    return team_call(t, describe_fold(TEAM_EXSCAN, in, out, count, type, op, 0), lid, flags);
}

int pwc_team_reduce_scatter(pwc_team *t, const void *in, void *out, size_t count,
                            enum pwc_type type, enum pwc_atomic_op op, pwc_cid lid, unsigned flags)
{
    return team_call(t, describe_fold(TEAM_REDUCE_SCATTER, in, out, count, type, op, 0), lid,
                     flags);
}

int pwc_team_gather(pwc_team *t, const void *in, void *out, size_t len, uint32_t root, pwc_cid lid,
                    unsigned flags)
{
    return team_call(t, describe_move(TEAM_GATHER, in, out, len, root), lid, flags);
}

int pwc_team_gatherv(pwc_team *t, const void *in, size_t len, void *out, const size_t *lens,
                     const size_t *offsets, uint32_t root, pwc_cid lid, unsigned flags)
{
    return team_call(t, describe_gatherv(TEAM_GATHERV, in, len, out, lens, offsets, root), lid,
                     flags);
}

int pwc_team_scatter(pwc_team *t, const void *in, void *out, size_t len, uint32_t root, pwc_cid lid,
                     unsigned flags)
{
    return team_call(t, describe_move(TEAM_SCATTER, in, out, len, root), lid, flags);
}

int pwc_team_scatterv(pwc_team *t, const void *in, const size_t *lens, const size_t *offsets,
                      void *out, size_t len, uint32_t root, pwc_cid lid, unsigned flags)
{
    return team_call(t, describe_scatterv(in, lens, offsets, out, len, root), lid, flags);
}

int pwc_team_allgather(pwc_team *t, const void *in, void *out, size_t len, pwc_cid lid,
                       unsigned flags)
{
    return team_call(t, describe_move(TEAM_ALLGATHER, in, out, len, 0), lid, flags);
}

int pwc_team_allgatherv(pwc_team *t, const void *in, size_t len, void *out, const size_t *lens,
                        const size_t *offsets, pwc_cid lid, unsigned flags)
{
    return team_call(t, describe_gatherv(TEAM_ALLGATHERV, in, len, out, lens, offsets, 0), lid,
                     flags);
}

int pwc_team_alltoall(pwc_team *t, const void *in, void *out, size_t len, pwc_cid lid,
                      unsigned flags)
{
    return team_call(t, describe_move(TEAM_ALLTOALL, in, out, len, 0), lid, flags);
}

int pwc_team_alltoallv(pwc_team *t, const void *in, const size_t *in_lens, const size_t *in_offsets,
                       void *out, const size_t *out_lens, const size_t *out_offsets, pwc_cid lid,
                       unsigned flags)
{
    return team_call(t, describe_alltoallv(in, in_lens, in_offsets, out, out_lens, out_offsets),
                     lid, flags);
}

int pwc_team_allreduce_user(pwc_team *t, const void *in, void *out, size_t count, size_t element,
                            pwc_fold *fold, void *arg, pwc_cid lid, unsigned flags)
{
    return team_call(t, describe_user(in, out, count, element, fold, arg), lid, flags);
}
