/* Owns the rolls of teams in memory that outlives the process (team_roll.h). Thread: control. */
#include "daemon/control/teams/team_roll.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static size_t answers_at(uint32_t runs)
{
    return (sizeof(struct team_roll) + runs * sizeof(struct teams_run) + 7) & ~(size_t)7;
}

static size_t bytes_of(uint32_t runs, uint32_t members)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);

    return (answers_at(runs) + members * sizeof(uint64_t) + page - 1) & ~(page - 1);
}

int team_roll_make(struct mapping *m, const struct teams_run *runs, uint32_t count,
                   uint32_t members)
{
    int rc = mapping_create_own(m, "pwc-team-roll", bytes_of(count, members));
    struct team_roll *roll = m->base;

    if (rc < 0)
        return rc;
    roll->magic = TEAM_ROLL_MAGIC;
    roll->run_count = count;
    roll->member_count = members;
    memcpy(roll->runs, runs, count * sizeof(*runs));
    return 0;
}

int team_roll_inherit(struct mapping *m, int descriptor)
{
    const struct team_roll *roll;
    struct stat st;
    int rc = fstat(descriptor, &st) == 0 ? 0 : -errno;

    if (rc == 0)
        rc = mapping_inherit(m, descriptor, (size_t)st.st_size);
    if (rc < 0)
        return rc;
    roll = m->base;
    if (roll->magic == TEAM_ROLL_MAGIC && roll->run_count <= DIRECTORY_RANKS_MAX &&
        roll->member_count <= DIRECTORY_RANKS_MAX &&
        bytes_of(roll->run_count, roll->member_count) == m->size)
        return 0;
    m->fd = -1; /* the descriptor stays the caller's */
    mapping_destroy(m);
    return -EPROTO;
}

_Atomic uint64_t *team_roll_answers(const struct mapping *m)
{
    const struct team_roll *roll = m->base;

    return (void *)((uint8_t *)m->base + answers_at(roll->run_count));
}
