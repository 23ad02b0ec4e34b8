/*
 * A team area: memory shared by those members of a team that one engine serves. Through the area
 * they take part in collectives without a request to the daemon.
 *
 * The daemon creates the area (a sealed memfd) and passes it to each member. The area has a row for
 * each collective that may be under way, its *instance* s in row s mod window, and 8 data rows:
 *
 *     offset 0                          rows: window times                   page
 *     +--------+--------+----------+--- - - - - - - - - - - - ---+--------+--------------------+
 *     | header | broken | sleepers | row 0 | row 1 | ...         | 8 data | data of the 8 rows |
 *     |        |        |          |                             | counts |                    |
 *     +--------+--------+----------+--- - - - - - - - - - - - ---+--------+--------------------+
 *     0        64       128        256
 *
 *     row:   +--------+--------+------+----------+----------+- -     of 64 bytes each; members
 *            | counts | result | node | member 0 | member 1 | ...    in order of their team ranks
 *            +--------+--------+------+----------+----------+- -
 *
 *     data:  +---------------------------------------+------------------+
 *            | inputs, 124 KiB: member m's at        | result, 124 KiB  |   8 times
 *            | m * (its length, rounded up to 64)    |                  |
 *            +---------------------------------------+------------------+
 *
 * A member that calls writes its line, and, where the call needs more than the 40 bytes of a line,
 * its part of the inputs of a data row; then it counts itself in `arrived`. The member that makes
 * this count (s / window + 1) * members is the last to come and does the work: it combines the
 * members' inputs. Where one engine has the whole team, the last to come then writes the result and
 * `done`. Else it submits SUBMIT_COLLECTIVE, and only the engine writes the result and `done` of
 * this team's rows, also when no member here receives anything. A member that has taken its result
 * counts itself in `taken`; the row is free for the next lap when `taken` is (s / window + 1) *
 * members and `done` is s + 1. The calls that need a data row use the 8 rows in turn, and all
 * members count these calls alike. A data row has a `taken` of its own.
 *
 * N is the size of the team, M the number of members here. Data between engines is ordered by
 * participant, then by member: so are "N blocks". For a call with `length` L:
 *
 *     kind               L is            a member gives    the engine gives   the engine gets
 *     BARRIER            0               -                 -                  -
 *     BCAST              the data        L, the root       L, the root's      L
 *     REDUCE             the operand     L                 L                  L, the root's
 *     ALLREDUCE          the operand     L                 L                  L
 *     SCAN, EXSCAN       the operand     L                 L                  L: of earlier engines
 *     REDUCE_SCATTER     one block       N blocks          N blocks           M blocks
 *     GATHER             one block       L                 M blocks           N blocks, the root's
 *     SCATTER            one block       N blocks, root    N blocks, root's   M blocks
 *     ALLGATHER          one block       L                 M blocks           N blocks
 *     ALLTOALL           one block       N blocks          M times N blocks   M times N blocks
 *
 * For REDUCE, ALLREDUCE and REDUCE_SCATTER the last to come folds the inputs, in the order of
 * members, so that the engine gives one operand. For SCAN and EXSCAN the last to come replaces each
 * member's part by the fold of all parts up to it, so that the engine gives the last part. For
 * ALLTOALL the engine gives, and gets, N blocks for each member in turn. A call uses the lines when
 * none of its columns has more than 40 bytes at any engine, else a data row (team_way in
 * shm_ring/team.h). With lines, the data that the engine gives is packed in `node`, and the data
 * that it gets in `result`. With a data row, the data that the engine gives is in the inputs: for
 * GATHER, ALLGATHER and ALLTOALL it is each member's part, which begins at a multiple of 64 bytes;
 * for SCAN and EXSCAN the last member's part; else it begins at the first byte. The data that the
 * engine gets is packed in the row's result.
 *
 * At the root's engine, the root submits a BCAST or SCATTER as soon as it calls; at other engines
 * the last to come submits it. So `done` may be written before all members have arrived.
 *
 * SUBMIT_COLLECTIVE (session_abi.h): remote = team's handle, code = kind (TEAM_ALLGATHER for USER,
 * and for SCAN and EXSCAN where an engine's team ranks are not consecutive), offset = sequence,
 * length = L, lid = signature, rid = number of the data row or TEAM_LINES, segment = participant of
 * the root (0 without one), local_offset = 0. With code TEAM_MISMATCH: offset = sequence, segment
 * and local_offset = the team ranks of two members that called differently, lid and rid = their
 * signatures; or, where the area makes no sense to a member, segment = its team rank, local_offset
 * = 0xffffffff, lid = the signature of its oldest call or 0, rid = 0. An instance that was
 * submitted before, or whose row is not free, breaks the team with -EBADMSG, and quarantines no
 * client: a member can cause an honest one to submit it by what it has written here.
 *
 * All members belong to one user and one job: a member that writes wrong values here spoils its own
 * job's collectives, and nothing else. Each side reads a word once, checks it, and uses the copy.
 * shm_ring/team.h has the barriers.
 */
#ifndef PWC_PROTO_TEAM_ABI_H
#define PWC_PROTO_TEAM_ABI_H

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TEAM_MAGIC          UINT64_C(0x323030544d435750) /* "PWCMT002" */
#define TEAM_VERSION        2u
#define TEAM_VERSION_UNSENT 1u    /* of libraries and daemons that send none, to 0.6 */
#define TEAM_MEMBERS_MAX    1024u /* of one area */
#define TEAM_SIZE_MAX       (1u << 24)
#define TEAM_WINDOW         64u /* by default; a power of two */
#define TEAM_WINDOW_MAX     4096u
#define TEAM_LINE_BYTES     40u /* of data in a line */
#define TEAM_DATA_ROWS      8u
/* Bytes of a data row's inputs, and of its result: pages, and no more than a letter carries in two
 * packets of 64 KiB. */
#define TEAM_DATA_BYTES   (124u << 10)
#define TEAM_INPUT_MAX    TEAM_DATA_BYTES      /* bytes of one operand or block of a member */
#define TEAM_SCAN_MAX     (TEAM_INPUT_MAX / 2) /* for scans, of which engines hold two operands */
#define TEAM_LINES        UINT64_MAX           /* as number of a data row: the call uses lines */
#define TEAM_ROWS_OFFSET  256u
#define TEAM_DATA_ALIGNED 4096u

/* The kind of a collective, also in its signature. */
enum team_kind {
    TEAM_BARRIER = 1,
    TEAM_BCAST = 2,
    TEAM_REDUCE = 3,
    TEAM_ALLREDUCE = 4,
    TEAM_SCAN = 5,
    TEAM_EXSCAN = 6,
    TEAM_REDUCE_SCATTER = 7,
    TEAM_GATHER = 8,
    TEAM_SCATTER = 9,
    TEAM_ALLGATHER = 10,
    TEAM_ALLTOALL = 11,
    TEAM_GATHERV = 12, /* kinds from here on are in signatures only */
    TEAM_SCATTERV = 13,
    TEAM_ALLGATHERV = 14,
    TEAM_ALLTOALLV = 15,
    TEAM_USER = 16,
    TEAM_KINDS
};
#define TEAM_MISMATCH 255u /* the code of a submission: see above */

/* The kind as tools and messages print it, or NULL for a number that is no kind. */
static inline const char *team_kind_name(uint32_t kind)
{
    static const char *const names[TEAM_KINDS] = {
        [TEAM_BARRIER] = "barrier",
        [TEAM_BCAST] = "bcast",
        [TEAM_REDUCE] = "reduce",
        [TEAM_ALLREDUCE] = "allreduce",
        [TEAM_SCAN] = "scan",
        [TEAM_EXSCAN] = "exscan",
        [TEAM_REDUCE_SCATTER] = "reduce_scatter",
        [TEAM_GATHER] = "gather",
        [TEAM_SCATTER] = "scatter",
        [TEAM_ALLGATHER] = "allgather",
        [TEAM_ALLTOALL] = "alltoall",
        [TEAM_GATHERV] = "gatherv",
        [TEAM_SCATTERV] = "scatterv",
        [TEAM_ALLGATHERV] = "allgatherv",
        [TEAM_ALLTOALLV] = "alltoallv",
        [TEAM_USER] = "allreduce_user",
    };

    return kind < TEAM_KINDS ? names[kind] : NULL;
}

/*
 * The signature of a call, in 64 bits that are the same at all members:
 *
 *     63     56     48     40         16        0
 *     +------+------+------+----------+---------+
 *     | kind | op   | type | root     | count   |    a field that does not apply is 0
 *     +------+------+------+----------+---------+
 *
 * `count` is the call's count of elements, or else of bytes, up to 32767; a larger count is hashed
 * into 15 bits, and the high bit is set.
 */
static inline uint64_t team_count_folded(uint64_t count)
{
    if (count < 0x8000)
        return count;
    count *= UINT64_C(0x9e3779b97f4a7c15);
    return 0x8000 | count >> 49;
}

static inline uint64_t team_signature(enum team_kind kind, uint8_t op, uint8_t type, uint32_t root,
                                      uint64_t count)
{
    return (uint64_t)kind << 56 | (uint64_t)op << 48 | (uint64_t)type << 40 |
           (uint64_t)(root & (TEAM_SIZE_MAX - 1)) << 16 | team_count_folded(count);
}

static inline uint8_t team_signature_kind(uint64_t signature)
{
    return (uint8_t)(signature >> 56);
}

static inline uint8_t team_signature_op(uint64_t signature)
{
    return (uint8_t)(signature >> 48);
}

static inline uint8_t team_signature_type(uint64_t signature)
{
    return (uint8_t)(signature >> 40);
}

static inline uint32_t team_signature_root(uint64_t signature)
{
    return (uint32_t)(signature >> 16) & (TEAM_SIZE_MAX - 1);
}

static inline uint16_t team_signature_count(uint64_t signature)
{
    return (uint16_t)signature;
}

/*
 * Why the team is broken; written by the daemon alone, once, `status` last.
 *
 *     0        4       8         16         24         32           40
 *     +--------+-------+---------+----------+----------+------------+
 *     | status | -     | ranks 2 | sequence | signature of the two  |
 *     +--------+-------+---------+----------+----------+------------+
 */
struct team_broken {
    _Alignas(64) _Atomic int32_t status; /* 0, -EHOSTDOWN or -EBADMSG */
    uint32_t unused;
    uint32_t rank[2];  /* -EHOSTDOWN: rank[0] has ended; if it is no rank of the team, a node is
                          lost. -EBADMSG: the two ranks called differently */
    uint64_t sequence; /* -EBADMSG: the instance; `signature`: of the two ranks' calls */
    uint64_t signature[2];
};
static_assert(sizeof(struct team_broken) == 64, "team_broken");
static_assert(offsetof(struct team_broken, sequence) == 16, "team_broken.sequence");

struct team_shared {
    uint64_t magic;
    uint32_t members;
    uint32_t window;
    struct team_broken broken;
    /* Bit m % 64 of word m / 64: member m sleeps. Set by the member; cleared by the member, or by
     * the daemon when it wakes the member. */
    _Alignas(64) _Atomic uint64_t sleepers[TEAM_MEMBERS_MAX / 64];
};
static_assert(offsetof(struct team_shared, broken) == 64, "team.broken");
static_assert(offsetof(struct team_shared, sleepers) == 128, "team.sleepers");
static_assert(sizeof(struct team_shared) == TEAM_ROWS_OFFSET, "team_shared");

/* Counts of members over all laps. */
struct team_counts {
    _Alignas(64) _Atomic uint64_t arrived;
    _Atomic uint64_t taken;
};
static_assert(sizeof(struct team_counts) == 64, "team_counts");

struct team_result {
    _Alignas(64) _Atomic uint64_t done; /* sequence + 1, written last */
    int32_t status;                     /* 0 or a negative errno */
    uint32_t length;                    /* bytes that the engine got */
    uint8_t data[TEAM_LINE_BYTES];      /* if the call uses the lines */
};
static_assert(sizeof(struct team_result) == 64, "team_result");
static_assert(offsetof(struct team_result, data) == 16, "team_result.data");

/* This engine's data for the others, if the call uses the lines. */
struct team_node {
    _Alignas(64) uint32_t length;
    uint32_t unused;
    uint8_t data[TEAM_LINE_BYTES];
};
static_assert(sizeof(struct team_node) == 64, "team_node");
static_assert(offsetof(struct team_node, data) == 8, "team_node.data");

/* A member's call, with its data if the call uses the lines. */
struct team_line {
    _Alignas(64) _Atomic uint64_t sequence; /* the instance's + 1 */
    uint64_t signature;
    uint32_t length;
    uint32_t unused;
    uint8_t data[TEAM_LINE_BYTES];
};
static_assert(sizeof(struct team_line) == 64, "team_line");
static_assert(offsetof(struct team_line, data) == 24, "team_line.data");

struct team_row {
    struct team_counts counts;
    struct team_result result;
    struct team_node node;
    struct team_line lines[]; /* one for each member */
};
static_assert(offsetof(struct team_row, lines) == 192, "team_row.lines");

/* How often members have taken the result of a data row, over all laps. */
struct team_data_counts {
    _Alignas(64) _Atomic uint64_t taken;
};
static_assert(sizeof(struct team_data_counts) == 64, "team_data_counts");

struct team_data {
    uint8_t inputs[TEAM_DATA_BYTES];
    uint8_t result[TEAM_DATA_BYTES];
};

/* ---- layout of an area ----------------------------------------------------------------------- */

static inline bool team_shape_valid(uint32_t members, uint32_t window)
{
    return members >= 1 && members <= TEAM_MEMBERS_MAX && window >= 1 &&
           window <= TEAM_WINDOW_MAX && (window & (window - 1)) == 0;
}

static inline uint64_t team_row_bytes(uint32_t members)
{
    return sizeof(struct team_row) + (uint64_t)members * sizeof(struct team_line);
}

static inline uint64_t team_row_offset(uint32_t members, uint32_t row)
{
    return TEAM_ROWS_OFFSET + row * team_row_bytes(members);
}

static inline uint64_t team_data_counts_offset(uint32_t members, uint32_t window)
{
    return team_row_offset(members, window);
}

static inline uint64_t team_data_offset(uint32_t members, uint32_t window)
{
    uint64_t end =
        team_data_counts_offset(members, window) + TEAM_DATA_ROWS * sizeof(struct team_data_counts);

    return (end + TEAM_DATA_ALIGNED - 1) & ~(uint64_t)(TEAM_DATA_ALIGNED - 1);
}

/* Bytes of an area; 0 where no area may have this many members, or this window. */
static inline uint64_t team_area_bytes(uint32_t members, uint32_t window)
{
    if (!team_shape_valid(members, window))
        return 0;
    return team_data_offset(members, window) + TEAM_DATA_ROWS * sizeof(struct team_data);
}

/* Bytes from one member's part of a data row's inputs to the next member's part. */
static inline uint64_t team_stride(uint64_t given)
{
    return (given + 63) & ~UINT64_C(63);
}

#endif
