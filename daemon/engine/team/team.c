/* Teams: opening, leaving, the way out. Thread: the progress thread. */
#include "daemon/engine/engine.h"

#include <errno.h>

int engine_team_open(struct engine *e, const struct engine_team_info *info, void *area)
{
    (void)e;
    (void)info;
    (void)area;
    return -ENOTSUP;
}

int engine_team_inherit(struct engine *e, uint32_t team, void *area)
{
    (void)e;
    (void)team;
    (void)area;
    return -EINVAL;
}

int engine_team_find(const struct engine *e, uint32_t team, struct engine_team_found *out)
{
    (void)e;
    (void)team;
    (void)out;
    return -ENOENT;
}

struct engine_team_participant engine_team_participant(const struct engine *e, uint32_t team,
                                                       uint32_t index)
{
    (void)e;
    (void)team;
    (void)index;
    return (struct engine_team_participant){0};
}

struct engine_team_member engine_team_member(const struct engine *e, uint32_t team, uint32_t index)
{
    (void)e;
    (void)team;
    (void)index;
    return (struct engine_team_member){0};
}

void engine_team_break(struct engine *e, uint32_t team, int32_t status, uint32_t rank)
{
    (void)e;
    (void)team;
    (void)status;
    (void)rank;
}

void engine_team_leave(struct engine *e, uint32_t team, uint32_t session)
{
    (void)e;
    (void)team;
    (void)session;
}
