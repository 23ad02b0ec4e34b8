/* Finds which engine has which members of a team (team_parts.h). Owns nothing. Thread: control. */
#include "daemon/control/teams/team_parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int team_name(struct team *t, uint32_t from, const struct teams_run *runs, uint32_t count)
{
    const struct control *control = t->control;

    if (from == 0) {
        t->run_count = 0;
        t->size = 0;
    }
    if (from != t->size)
        return -EPROTO;
    for (uint32_t i = 0; i < count; i++) {
        if (runs[i].count == 0 || runs[i].count > DIRECTORY_RANKS_MAX - t->size ||
            runs[i].rank >= DIRECTORY_RANKS_MAX ||
            runs[i].count > DIRECTORY_RANKS_MAX - runs[i].rank ||
            runs[i].node >= control->node_count ||
            runs[i].engine >= nodes_engines_max(control->node_count) ||
            (runs[i].node == control->node && runs[i].engine >= control->worker_count))
            return -EPROTO;
        t->size += runs[i].count;
    }
    if (t->run_count + count > t->run_room) {
        uint32_t room = 2 * (t->run_count + count);
        struct teams_run *all = realloc(t->runs, room * sizeof(*all));

        if (!all)
            return -ENOMEM;
        t->runs = all;
        t->run_room = room;
    }
    if (count > 0)
        memcpy(t->runs + t->run_count, runs, count * sizeof(*runs));
    t->run_count += count;
    return 0;
}

static uint32_t number_of(const struct team *t, const struct teams_run *run)
{
    return nodes_number(t->control->node_count, run->node, run->engine);
}

/* Numbers the participants by their lowest ranks. `by_peer` has room for NODES_MAX. */
static int find_participants(struct team *t, uint32_t *by_peer)
{
    memset(by_peer, 0, NODES_MAX * sizeof(*by_peer)); /* by_peer: the participant's number + 1 */
    t->participants = calloc(t->run_count, sizeof(*t->participants));
    if (!t->participants)
        return -ENOMEM;
    for (uint32_t i = 0; i < t->run_count; i++) {
        uint32_t *number = &by_peer[number_of(t, &t->runs[i])];
        struct engine_team_participant *p;

        if (*number == 0) {
            *number = ++t->participant_count;
            t->participants[*number - 1].peer = number_of(t, &t->runs[i]);
        }
        p = &t->participants[*number - 1];
        p->members += t->runs[i].count;
        if (p->members > t->fullest)
            t->fullest = p->members;
    }
    return 0;
}

static int part_begin(struct team *t, struct team_part *part, uint32_t me)
{
    *part = (struct team_part){
        .team = t,
        .worker = &t->control->workers[t->participants[me].peer / t->control->node_count],
        .handle = CLIENT_NONE,
        .me = me,
        .area = {.fd = -1},
        .range = -1};
    part->members = calloc(t->participants[me].members, sizeof(*part->members));
    part->local = calloc(t->participants[me].members, sizeof(*part->local));
    return part->members && part->local ? 0 : -ENOMEM;
}

/* Makes the parts of this node's engines, with all of their members, but without sessions. */
static int find_parts(struct team *t, const uint32_t *by_peer)
{
    struct control *control = t->control;
    uint32_t rank = 0;
    int rc = 0;

    t->parts = calloc(control->worker_count, sizeof(*t->parts));
    if (!t->parts)
        return -ENOMEM;
    for (uint32_t i = 0; i < t->participant_count && rc == 0; i++)
        if (t->participants[i].peer % control->node_count == control->node)
            rc = part_begin(t, &t->parts[t->part_count++], i);
    for (uint32_t i = 0; i < t->run_count && rc == 0; i++) {
        const struct teams_run *run = &t->runs[i];
        struct team_part *part = t->parts;

        if (run->node == control->node) {
            while (part->me != by_peer[number_of(t, run)] - 1)
                part++;
            for (uint32_t j = 0; j < run->count; j++)
                part->members[part->count++] = (struct team_member){
                    .job_rank = run->rank + j, .rank = rank + j, .context = run->context};
        }
        rank += run->count;
    }
    return rc;
}

int team_parts_make(struct team *t)
{
    uint32_t *by_peer = malloc(NODES_MAX * sizeof(*by_peer));
    int rc = by_peer ? find_participants(t, by_peer) : -ENOMEM;

    if (rc == 0)
        rc = find_parts(t, by_peer);
    free(by_peer);
    return rc;
}

uint32_t team_members_here(const struct team *t)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < t->part_count; i++)
        count += t->parts[i].count;
    return count;
}

void team_parts_answers(struct team *t)
{
    _Atomic uint64_t *answers = team_roll_answers(&t->roll);

    for (uint32_t i = 0; i < t->part_count; i++)
        for (uint32_t j = 0; j < t->parts[i].count; j++)
            t->parts[i].members[j].answer = answers++;
}
