/* Shows a part of a team (team_view.h). Thread: control. */
#include "daemon/control/teams/team_view.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "shm_ring/clock.h"
#include "daemon/control/threads/worker.h"
#include "shm_ring/team.h"

/* Instances that members have called, and that not all have taken. */
static uint64_t under_way(const struct team_area *area, uint32_t window)
{
    uint64_t count = 0;

    for (uint32_t row = 0; row < window; row++) {
        const struct team_counts *counts = &team_row(area, row)->counts;

        count += atomic_load_explicit(&counts->arrived, memory_order_relaxed) !=
                 atomic_load_explicit(&counts->taken, memory_order_relaxed);
    }
    return count;
}

static const char *print_broken(const struct team_area *area, char text[TEAM_BROKEN_MAX])
{
    struct team_reason reason;

    team_reason(area, &reason);
    if (reason.status == 0)
        return NULL;
    if (reason.status == -EBADMSG)
        snprintf(text, TEAM_BROKEN_MAX, "in call %" PRIu64 " ranks %u and %u called differently",
                 reason.sequence, reason.rank[0], reason.rank[1]);
    else if (reason.status == -EHOSTDOWN && reason.rank[0] != UINT32_MAX)
        snprintf(text, TEAM_BROKEN_MAX, "rank %u has ended", reason.rank[0]);
    else
        snprintf(text, TEAM_BROKEN_MAX, "%s", strerror(-reason.status));
    return text;
}

void team_part_view(const struct team_part *part, struct view_team *out,
                    char broken[TEAM_BROKEN_MAX])
{
    const struct team *t = part->team;
    struct team_area area;

    *out = (struct view_team){.number = t->number,
                              .handle = part->handle,
                              .uid = t->uid,
                              .size = t->size,
                              .participants = t->participant_count,
                              .members = part->count,
                              .window = t->window,
                              .phase = t->phase};
    snprintf(out->job, sizeof(out->job), "%s", t->job);
    for (uint32_t i = 0; i < part->count; i++)
        out->left += !part->members[i].session;
    if (part->area.base &&
        team_area_view(&area, part->area.base, part->area.size, part->count, t->window) == 0) {
        out->under_way = under_way(&area, t->window);
        out->broken = print_broken(&area, broken);
    }
    if (part->handle != CLIENT_NONE && part->worker->progress)
        out->oldest_ns = engine_view_oldest_call(progress_engine(part->worker->progress),
                                                 part->handle, clock_ns());
}
