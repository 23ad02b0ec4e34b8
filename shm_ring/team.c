/*
 * Owns nothing: the format of a team area, and the bytes that a collective moves. Thread: any.
 */
#include "shm_ring/team.h"

void team_area_format(void *base, uint32_t members, uint32_t window)
{
    struct team_shared *shared = base;

    shared->magic = TEAM_MAGIC;
    shared->members = members;
    shared->window = window;
}

int team_load(struct team_load *load, enum team_kind kind, uint64_t length, uint32_t size,
              uint32_t members)
{
    uint64_t here = members * length, all = size * length;

    switch (kind) {
    case TEAM_BARRIER:
        *load = (struct team_load){.given = 0};
        return 0;
    case TEAM_BCAST:
    case TEAM_REDUCE:
    case TEAM_ALLREDUCE:
    case TEAM_SCAN:
    case TEAM_EXSCAN:
        *load = (struct team_load){.given = length, .node = length, .received = length};
        return 0;
    case TEAM_REDUCE_SCATTER:
    case TEAM_SCATTER:
        *load = (struct team_load){.given = all, .node = all, .received = here};
        return 0;
    case TEAM_GATHER:
    case TEAM_ALLGATHER:
        *load = (struct team_load){.given = length, .node = here, .received = all};
        return 0;
    case TEAM_ALLTOALL:
        *load = (struct team_load){.given = all, .node = members * all, .received = members * all};
        return 0;
    default:
        return -ENOTSUP;
    }
}

/* Bytes of the inputs of a data row. */
static uint64_t inputs(enum team_kind kind, const struct team_load *load, uint32_t members)
{
    return kind == TEAM_BCAST || kind == TEAM_SCATTER ? load->given
                                                      : members * team_stride(load->given);
}

enum team_way team_way(enum team_kind kind, uint64_t length, uint32_t size, uint32_t fullest)
{
    struct team_load load;

    if (length > TEAM_INPUT_MAX || team_load(&load, kind, length, size, fullest) < 0)
        return TEAM_BY_FAR;
    if (load.given <= TEAM_LINE_BYTES && load.node <= TEAM_LINE_BYTES &&
        load.received <= TEAM_LINE_BYTES)
        return TEAM_BY_LINES;
    return inputs(kind, &load, fullest) <= TEAM_DATA_BYTES && load.received <= TEAM_DATA_BYTES
               ? TEAM_BY_DATA
               : TEAM_BY_FAR;
}

uint32_t team_small_max(uint32_t fullest)
{
    uint32_t each = TEAM_DATA_BYTES / fullest / 64 * 64;

    return each < TEAM_INPUT_MAX ? each : TEAM_INPUT_MAX;
}
