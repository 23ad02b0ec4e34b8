/* Owns the form of gathers and runs in frames (team_frames.h). Thread: control. */
#include "daemon/control/teams/team_frames.h"

Pwc__TeamGather team_gather_pack(const struct teams_key *key)
{
    Pwc__TeamGather gather = PWC__TEAM_GATHER__INIT;

    gather.uid = key->id.uid;
    gather.job = (char *)(uintptr_t)key->id.job;
    gather.parent = key->parent;
    gather.context = key->context;
    gather.call = key->call;
    return gather;
}

bool team_gather_parse(const Pwc__TeamGather *gather, struct teams_key *key)
{
    if (!gather || !directory_name_valid(gather->job))
        return false;
    *key = (struct teams_key){.id = {.uid = gather->uid, .job = gather->job},
                              .parent = gather->parent,
                              .context = gather->context,
                              .call = gather->call};
    return true;
}

void team_runs_pack(struct team_frame_runs *out, const struct teams_run *runs, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        Pwc__TeamRun *run = &out->runs[i];

        pwc__team_run__init(run);
        run->rank = runs[i].rank;
        run->count = runs[i].count;
        run->context = runs[i].context;
        run->node = runs[i].node;
        run->engine = runs[i].engine;
        out->list[i] = run;
    }
}

struct teams_run team_run_parse(const Pwc__TeamRun *run)
{
    return (struct teams_run){.rank = run->rank,
                              .count = run->count,
                              .context = run->context,
                              .node = run->node,
                              .engine = run->engine};
}
