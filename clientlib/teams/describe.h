/*
 * Describes public calls as struct team_spec, for calls that begin at once and for their persistent
 * forms. Nothing is checked here: spec_settle does that.
 *
 * Thread: any.
 */
#ifndef PWC_CLIENTLIB_DESCRIBE_H
#define PWC_CLIENTLIB_DESCRIBE_H

#include "clientlib/teams/team.h"
#include "proto/word_abi.h"

/* The code of a fold; for a wrong type or operation, a code that spec_settle refuses. */
static inline uint8_t describe_code(enum pwc_type type, enum pwc_atomic_op op)
{
    return (unsigned)type < 16 && (unsigned)op < 16
               ? word_code((enum word_op)op, (enum word_type)type)
               : word_code(WORD_READ, WORD_U64);
}

/* A reduction; `root` is 0 if it has no root. */
static inline struct team_spec describe_fold(enum team_kind kind, const void *in, void *out,
                                             size_t count, enum pwc_type type,
                                             enum pwc_atomic_op op, uint32_t root)
{
    return (struct team_spec){
        .kind = (uint8_t)kind,
        .code = describe_code(type, op),
        .root = root,
        .count = count,
        .in = in,
        .out = out,
    };
}

/* A call that moves blocks of `len` bytes. */
static inline struct team_spec describe_move(enum team_kind kind, const void *in, void *out,
                                             size_t len, uint32_t root)
{
    return (struct team_spec){
        .kind = (uint8_t)kind,
        .root = root,
        .count = len,
        .length = len,
        .in = in,
        .out = out,
    };
}

/* gatherv and allgatherv, whose output is the blocks of all ranks. */
static inline struct team_spec describe_gatherv(enum team_kind kind, const void *in, size_t len,
                                                void *out, const size_t *lens,
                                                const size_t *offsets, uint32_t root)
{
    return (struct team_spec){
        .kind = (uint8_t)kind,
        .root = root,
        .own = len,
        .in = in,
        .out = out,
        .out_lens = lens,
        .out_offsets = offsets,
    };
}

static inline struct team_spec describe_scatterv(const void *in, const size_t *lens,
                                                 const size_t *offsets, void *out, size_t len,
                                                 uint32_t root)
{
    return (struct team_spec){
        .kind = TEAM_SCATTERV,
        .root = root,
        .own = len,
        .in = in,
        .out = out,
        .in_lens = lens,
        .in_offsets = offsets,
    };
}

static inline struct team_spec describe_alltoallv(const void *in, const size_t *in_lens,
                                                  const size_t *in_offsets, void *out,
                                                  const size_t *out_lens, const size_t *out_offsets)
{
    return (struct team_spec){
        .kind = TEAM_ALLTOALLV,
        .in = in,
        .out = out,
        .in_lens = in_lens,
        .in_offsets = in_offsets,
        .out_lens = out_lens,
        .out_offsets = out_offsets,
    };
}

static inline struct team_spec describe_bcast(const pwc_team *t, void *data, size_t len,
                                              uint32_t root)
{
    bool mine = root == t->rank;

    return describe_move(TEAM_BCAST, mine ? data : NULL, mine ? NULL : data, len, root);
}

static inline struct team_spec describe_user(const void *in, void *out, size_t count,
                                             size_t element, pwc_fold *fold, void *arg)
{
    return (struct team_spec){
        .kind = TEAM_USER,
        .count = count,
        .element = element,
        .in = in,
        .out = out,
        .fold = fold,
        .arg = arg,
    };
}

#endif
