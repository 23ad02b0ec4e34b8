/*
 * Owns the runs and places of a roster. Thread: the one that owns the context.
 */
#include "clientlib/teams/roster.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "proto/team_abi.h"

void roster_free(struct roster *r)
{
    free(r->runs);
    free(r->places);
    r->runs = NULL;
    r->places = NULL;
}

const struct roster_run *roster_run(const struct roster *r, uint32_t rank)
{
    uint32_t low = 0, high = r->run_count;

    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;

        if (r->runs[middle].first <= rank)
            low = middle;
        else
            high = middle;
    }
    return &r->runs[low];
}

uint32_t roster_member(const struct roster *r, uint32_t member)
{
    for (uint32_t i = 0; i < r->run_count; i++) {
        const struct roster_run *run = &r->runs[i];

        if (run->participant != r->participant)
            continue;
        if (member < run->count)
            return run->first + member;
        member -= run->count;
    }
    return 0;
}

/* Numbers the members of all runs: 0, or -EPROTO. */
static int number_ranks(struct roster *r)
{
    uint64_t first = 0;

    for (uint32_t i = 0; i < r->run_count; i++) {
        r->runs[i].first = (uint32_t)first;
        first += r->runs[i].count;
        if (r->runs[i].count == 0 || first > TEAM_SIZE_MAX)
            return -EPROTO;
    }
    r->size = (uint32_t)first;
    return r->size > 0 ? 0 : -EPROTO;
}

static int by_engine(const void *left, const void *right)
{
    const struct roster_run *const *a = left, *const *b = right;
    uint64_t x = (uint64_t)(*a)->node << 32 | (*a)->engine;
    uint64_t y = (uint64_t)(*b)->node << 32 | (*b)->engine;

    if (x != y)
        return x < y ? -1 : 1;
    return (*a)->first < (*b)->first ? -1 : 1;
}

static int by_lowest(const void *left, const void *right)
{
    const struct roster_run *const *a = left, *const *b = right;

    if ((*a)->participant != (*b)->participant)
        return (*a)->participant < (*b)->participant ? -1 : 1;
    return (*a)->first < (*b)->first ? -1 : 1;
}

static bool same_engine(const struct roster_run *a, const struct roster_run *b)
{
    return a->node == b->node && a->engine == b->engine;
}

/* Sorts runs by participant, whose number is for now its lowest rank, and then by rank. */
static void sort_runs(struct roster_run **sorted, uint32_t count)
{
    qsort(sorted, count, sizeof(struct roster_run *), by_engine);
    for (uint32_t i = 0; i < count; i++)
        sorted[i]->participant = i > 0 && same_engine(sorted[i], sorted[i - 1])
                                     ? sorted[i - 1]->participant
                                     : sorted[i]->first;
    qsort(sorted, count, sizeof(struct roster_run *), by_lowest);
}

/* Numbers the participants; counts the members of the fullest, and of the one that serves `me`. */
static void number_participants(struct roster *r, struct roster_run **sorted, uint32_t me)
{
    const struct roster_run *mine = roster_run(r, me);
    uint32_t members = 0;

    for (uint32_t i = 0; i < r->run_count; i++) {
        if (i == 0 || !same_engine(sorted[i], sorted[i - 1])) {
            r->participants++;
            members = 0;
        }
        sorted[i]->participant = r->participants - 1;
        members += sorted[i]->count;
        if (members > r->fullest)
            r->fullest = members;
        if (same_engine(sorted[i], mine))
            r->here = members;
    }
    r->participant = mine->participant;
}

static int find_places(struct roster *r, struct roster_run *const *sorted)
{
    uint32_t place = 0;
    bool moved = false;

    for (uint32_t i = 0; i < r->run_count && !moved; place += sorted[i++]->count)
        moved = sorted[i]->first != place;
    if (!moved)
        return 0;
    r->places = malloc(r->size * sizeof(*r->places));
    if (!r->places)
        return -ENOMEM;
    place = 0;
    for (uint32_t i = 0; i < r->run_count; i++)
        for (uint32_t m = 0; m < sorted[i]->count; m++)
            r->places[sorted[i]->first + m] = place++;
    return 0;
}

int roster_settle(struct roster *r, struct roster_run *runs, uint32_t count, uint32_t me)
{
    struct roster_run **sorted;
    int rc;

    *r = (struct roster){.runs = runs, .run_count = count};
    rc = number_ranks(r);
    if (rc < 0 || me >= r->size)
        return -EPROTO;
    sorted = malloc(count * sizeof(struct roster_run *));
    if (!sorted)
        return -ENOMEM;
    for (uint32_t i = 0; i < count; i++)
        sorted[i] = &runs[i];
    sort_runs(sorted, count);
    number_participants(r, sorted, me);
    rc = find_places(r, sorted);
    free(sorted);
    return rc;
}
