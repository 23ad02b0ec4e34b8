/*
 * The protocol of a team area (team_abi.h), for its members and for the daemon; and how many bytes
 * a collective moves.
 *
 * Each side has a private view with the sizes that the daemon gave. From the area it reads only
 * data, and counts, which it checks.
 *
 * Paired barriers (each atomic here and in team.c cites its letter):
 *
 *     J  member: line and inputs written, then itself counted in `arrived` (release)
 *        last to come: counted (acquire), then lines and inputs read
 *     K  the side that ends an instance: result written, then `done` stored (release)
 *        member: `done` loaded (acquire), then the result read
 *     L  member: result read, then itself counted in `taken` (release)
 *        member that calls a lap later: `taken` loaded (acquire), then line and inputs written
 *     M  sleeper: its bit set, then a look at `done`, `taken` and what broke the team
 *        the side that ends an instance, takes the last result or breaks the team: first stores
 *          that, then loads the bits. All are sequentially consistent, so either the sleeper's look
 *          sees the store, or the load sees the sleeper's bit.
 *     N  daemon: what broke the team written, then its status (release)
 *        member: status loaded (acquire), then the rest read
 *
 * Thread: any, by the rules of team_abi.h; nothing here blocks, allocates or makes a system call.
 */
#ifndef PWC_SHM_RING_TEAM_H
#define PWC_SHM_RING_TEAM_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "proto/team_abi.h"

/* Writes the header of a new, zeroed mapping of team_area_bytes. */
void team_area_format(void *base, uint32_t members, uint32_t window);

/* A private view of an area. */
struct team_area {
    struct team_shared *shared;
    uint8_t *rows;
    struct team_data_counts *data_counts;
    struct team_data *data;
    uint64_t row_bytes;
    uint32_t members;
    uint32_t row_mask;
    uint32_t row_shift; /* instance >> this: its lap */
};

/* A view of a mapping of `size` bytes. -EPROTO: the mapping holds no area for this many members and
 * rows. */
int team_area_view(struct team_area *a, void *base, size_t size, uint32_t members, uint32_t window);

static inline struct team_row *team_row(const struct team_area *a, uint64_t sequence)
{
    return (struct team_row *)(void *)(a->rows + (sequence & a->row_mask) * a->row_bytes);
}

/* The data row of the call that is number `turn` among the calls that need a data row. */
static inline struct team_data *team_data(const struct team_area *a, uint64_t turn)
{
    return &a->data[turn % TEAM_DATA_ROWS];
}

/* ---- a member's call ------------------------------------------------------------------------- */

/* Whether the row of an instance is free: 0; -EAGAIN: the instance of the lap before has not ended,
 * or not all have taken its result; -EPROTO: its counts make no sense. */
int team_row_room(const struct team_area *a, uint64_t sequence);
/* team_row_room for a data row. `before`: the instance that used the data row last; ignored in the
 * first lap. */
int team_data_room(const struct team_area *a, uint64_t turn, uint64_t before);

/* Writes a member's line; `bytes` of data are at most TEAM_LINE_BYTES. */
void team_line_write(const struct team_area *a, uint64_t sequence, uint32_t member,
                     uint64_t signature, const void *data, uint32_t bytes);

/* Counts a member as arrived, after it has written its line and inputs. 1: it is the last to come;
 * 0: others are missing; -EPROTO: the count makes no sense. */
int team_arrive(const struct team_area *a, uint64_t sequence);

/* Whether all members have arrived, for an instance that this member takes part in. This does not
 * allow reading the others' parts. */
static inline bool team_have_come(const struct team_area *a, uint64_t sequence)
{
    return atomic_load_explicit(&team_row(a, sequence)->counts.arrived, memory_order_relaxed) >=
           ((sequence >> a->row_shift) + 1) * a->members;
}

/* For the last to come: whether all members have made the same call. 0: yes; -EBADMSG: no, with the
 * first member that differs, and its signature; -EPROTO: a line makes no sense. */
int team_compare(const struct team_area *a, uint64_t sequence, uint64_t signature, uint32_t *member,
                 uint64_t *other);

/* ---- the end of an instance ------------------------------------------------------------------ */

/* Ends an instance whose result is written. */
void team_end(const struct team_area *a, uint64_t sequence, int32_t status, uint32_t length);

/* Whether an instance whose row was free has ended: 1, 0; -EPROTO. The row's status and data may
 * then be read. */
static inline int team_ended(const struct team_area *a, uint64_t sequence)
{
    uint64_t done =
        atomic_load_explicit(&team_row(a, sequence)->result.done, memory_order_acquire); /* K */

    if (done == sequence + 1)
        return 1;
    return done <= sequence ? 0 : -EPROTO;
}

/* Counts a member as one that has taken its result. True: it is the last one, and the row is free.
 */
bool team_take(const struct team_area *a, uint64_t sequence);
/* team_take for a data row. */
bool team_take_data(const struct team_area *a, uint64_t turn);

/* ---- sleepers -------------------------------------------------------------------------------- */

/* team_sleep: the member is about to sleep, and must look once more after this call; team_awake:
 * the member is awake again. */
void team_sleep(const struct team_area *a, uint32_t member);
void team_awake(const struct team_area *a, uint32_t member);

/* After a store that a sleeper may wait for: whether members other than this one sleep. */
bool team_others_sleep(const struct team_area *a, uint32_t member);
/* For the daemon, which then wakes them: the sleepers among the 64 members from 64 * word on. From
 * now on these count as awake. */
uint64_t team_take_sleepers(const struct team_area *a, uint32_t word);

/* ---- broken teams ---------------------------------------------------------------------------- */

/* Why a team is broken, copied out of struct team_broken. */
struct team_reason {
    int32_t status; /* 0: the team is not broken */
    uint32_t rank[2];
    uint64_t sequence;
    uint64_t signature[2];
};

/* Called once, by the daemon. */
void team_break(const struct team_area *a, const struct team_reason *reason);

/* Whether the team is broken. Then team_reason gives a negative status, whatever is in the area. */
static inline bool team_is_broken(const struct team_area *a)
{
    return atomic_load_explicit(&a->shared->broken.status, memory_order_acquire) != 0; /* N */
}
void team_reason(const struct team_area *a, struct team_reason *out);

/* ---- lengths --------------------------------------------------------------------------------- */

/* The columns of the table in team_abi.h, in bytes, each for a member or engine that gives or
 * receives. */
struct team_load {
    uint64_t given;    /* bytes that a member gives */
    uint64_t node;     /* bytes that the engine gives */
    uint64_t received; /* bytes that the engine gets */
};

/* The load of a collective of length L, up to 2^32, over a team of `size`, with this many members
 * here. -ENOTSUP for kinds whose members have different lengths. */
int team_load(struct team_load *load, enum team_kind kind, uint64_t length, uint32_t size,
              uint32_t members);

/* How a call's data moves. All engines choose alike, because each passes the number of members of
 * the fullest engine. */
enum team_way {
    TEAM_BY_LINES, /* everything fits into lines */
    TEAM_BY_DATA,  /* the data is in a data row */
    TEAM_LARGE,    /* longer than small */
};
enum team_way team_way(enum team_kind kind, uint64_t length, uint32_t size, uint32_t fullest);

/* The largest operand that the area has room for when the fullest engine has this many members. */
uint32_t team_small_max(uint32_t fullest);

#endif
