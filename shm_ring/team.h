/*
 * The protocol of a team area (team_abi.h): its format, and the bytes that a collective moves.
 *
 * Thread: any; nothing here blocks, allocates or makes a system call.
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

/* The columns of the table in team_abi.h, in bytes; for a member here that gives or receives. */
struct team_load {
    uint64_t given;    /* by a member that gives */
    uint64_t node;     /* what the engine gives */
    uint64_t received; /* what the engine gets */
};

/* Of a collective of length L, over a team of `size`, with so many members here. L may be any
 * number up to 2^32; -ENOTSUP for kinds whose members do not share it. */
int team_load(struct team_load *load, enum team_kind kind, uint64_t length, uint32_t size,
              uint32_t members);

/* The way of a call. All engines find the same one, since they ask with the members of the fullest.
 */
enum team_way {
    TEAM_BY_LINES, /* all fits into lines */
    TEAM_BY_DATA,  /* a data row */
    TEAM_BY_FAR,   /* longer than small */
};
enum team_way team_way(enum team_kind kind, uint64_t length, uint32_t size, uint32_t fullest);

/* The largest operand that goes by the area when an engine has so many members. */
uint32_t team_small_max(uint32_t fullest);

#endif
