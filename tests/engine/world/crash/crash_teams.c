/* Deaths of a node in the middle of collectives (crash_control.h): no part of a collective is done
 * twice or lost, and where a member dies too, all others see that. Thread: one. */
#include "tests/engine/world/crash/crash_control.h"

#include "tests/engine/world/teams.h"
#include "tests/engine/world/paths/world_path.h"

#define RANKS  4u
#define ROUNDS 100000u

static struct teams teams;

static struct world *world_of(const struct driver *d)
{
    return ((struct world_path *)d->path->context)->world;
}

static void open_list(struct driver *d, const struct teams_spec *list, uint64_t count)
{
    teams_open(&teams, world_of(d), 5, RANKS, 4, list, count, 3);
}

static void finish(struct driver *d)
{
    teams_run(&teams, ROUNDS);
    teams_close(&teams);
    if (world_of(d)->failed)
        driver_fail(d, "%s", world_of(d)->failure);
    driver_finish(d);
}

static void run_lines(struct driver *d)
{
    static const struct teams_spec list[] = {
        {TEAM_BARRIER, 0, 0},   {TEAM_BCAST, 1, 8},     {TEAM_ALLREDUCE, 0, 8},
        {TEAM_SCAN, 0, 8},      {TEAM_REDUCE, 3, 8},    {TEAM_REDUCE_SCATTER, 0, 8},
        {TEAM_ALLGATHER, 0, 8}, {TEAM_ALLTOALL, 0, 4},  {TEAM_GATHER, 2, 8},
        {TEAM_SCATTER, 1, 8},   {TEAM_ALLREDUCE, 0, 40}};

    open_list(d, list, sizeof list / sizeof *list);
    finish(d);
}

/* Letters that take several records: the ring has room for 1,216 bytes at once. */
static void run_data(struct driver *d)
{
    static const struct teams_spec list[] = {
        {TEAM_BCAST, 1, 1400}, {TEAM_ALLREDUCE, 0, 1400}, {TEAM_ALLTOALL, 0, 400}};

    open_list(d, list, sizeof list / sizeof *list);
    finish(d);
}

/* Rounds of several letters, from three engines to one and from one to three. */
static void run_several(struct driver *d)
{
    static const struct teams_spec list[] = {{TEAM_ALLTOALL, 0, 300},
                                             {TEAM_REDUCE_SCATTER, 0, 300},
                                             {TEAM_GATHER, 1, 300},
                                             {TEAM_SCATTER, 0, 300}};

    open_list(d, list, sizeof list / sizeof *list);
    finish(d);
}

static void run_links(struct driver *d)
{
    static const struct teams_spec list[] = {{TEAM_ALLREDUCE, 0, 8},
                                             {TEAM_BCAST, 0, 1400},
                                             {TEAM_ALLGATHER, 0, 8},
                                             {TEAM_BARRIER, 0, 0}};

    open_list(d, list, sizeof list / sizeof *list);
    for (int i = 0; i < 60 && !teams_over(&teams); i++) {
        teams_turn(&teams);
        world_round(world_of(d));
        if (i % 20 == 9)
            world_link_break(world_of(d), 0, 1);
    }
    finish(d);
}

/* A member dies in the middle of calls. */
static void run_death(struct driver *d)
{
    static const struct teams_spec list[] = {
        {TEAM_ALLREDUCE, 0, 8}, {TEAM_ALLREDUCE, 0, 8}, {TEAM_BARRIER, 0, 0}, {TEAM_BCAST, 1, 64}};

    open_list(d, list, sizeof list / sizeof *list);
    for (int i = 0; i < 12; i++) {
        teams_turn(&teams);
        world_round(world_of(d));
    }
    model_dead(&d->model, 1);
    teams_kill(&teams, 1);
    finish(d);
}

/* Calls that differ: the record that shows the difference is consumed once, so a death afterwards
 * must not lose it. */
static void run_mismatch(struct driver *d)
{
    static const struct teams_spec list[] = {{TEAM_ALLREDUCE, 0, 8}, {TEAM_ALLREDUCE, 0, 8},
                                             {TEAM_BARRIER, 0, 0},   {TEAM_ALLREDUCE, 0, 8},
                                             {TEAM_BARRIER, 0, 0},   {TEAM_ALLREDUCE, 0, 8},
                                             {TEAM_BARRIER, 0, 0},   {TEAM_ALLREDUCE, 0, 8}};

    open_list(d, list, sizeof list / sizeof *list);
    teams_turn(&teams);
    teams_differ(&teams, 1);
    teams_run(&teams, ROUNDS);
    for (uint32_t rank = 0; rank < RANKS && !world_of(d)->failed; rank++)
        if (teams.member[rank].status != -EBADMSG)
            world_fail(world_of(d), "rank %u: status %d", rank, teams.member[rank].status);
    finish(d);
}

const struct crash_scenario crash_team_scenarios[] = {
    {"teams: lines", run_lines, 0, ENGINE_PROTOCOL_AUTO, 1, NULL, 0},
    {"teams: data", run_data, UINT64_MAX, ENGINE_PROTOCOL_AUTO, 1, NULL, 0},
    {"teams: several letters", run_several, 0, ENGINE_PROTOCOL_AUTO, 1, NULL, 4},
    {"teams: link breaks", run_links, 0, ENGINE_PROTOCOL_AUTO, 1, NULL, 0},
    {"teams: a member dies", run_death, 0, ENGINE_PROTOCOL_AUTO, 1, NULL, 0},
    {"teams: members differ", run_mismatch, 0, ENGINE_PROTOCOL_AUTO, 1, NULL, 0},
};
const size_t crash_team_count = sizeof crash_team_scenarios / sizeof *crash_team_scenarios;
