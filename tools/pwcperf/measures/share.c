/*
 * Shares: which part of a node's rate each pair gets when all pairs put at the same time.
 *
 *     origin   put put put put put put put put put put put put    END
 *              |   |   |   |   |   |   |   |   |   |   |   |       |
 *     target   v   v   v | v   v   v   v   v   v | v   v   v       v
 *     barrier  warm      | counted: --seconds    | cool
 *
 * Each target counts the remote events that it has drained between two readings of its own clock,
 * a quarter of --seconds after the barrier and --seconds later. Origins put from the barrier until
 * a quarter after that, so that each target counts while all others put, even one that leaves the
 * barrier up to a quarter late.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include "tools/pwcperf/measures/measure.h"

#define END   UINT64_MAX /* the last event's id */
#define MARKS 4u         /* local events in a window */
#define LOOK  16u        /* events between two looks at the clock */

/* The span in which a rank counts, in ns of its own clock. */
struct interval {
    uint64_t begin, end, over;
};

static struct interval interval_from_now(const struct options *options)
{
    uint64_t length = options->seconds * UINT64_C(1000000000), begin = now_ns() + length / 4;
    return (struct interval){begin, begin + length, begin + length + length / 4};
}

static int origin(struct pair *pair, uint64_t size, const struct interval *when)
{
    uint64_t window = options_window(pair->world->options, size),
             step = window >= MARKS ? window / MARKS : 1;
    uint64_t ended = 0, number = 0;
    int rc = 0;
    while (rc == 0 && (uint64_t)now_ns() < when->over) {
        while (rc == 0 && number + step - ended > window) {
            rc = pair_expect(pair, PWC_LOCAL, ended + step);
            ended += step;
        }
        for (uint64_t i = 1; rc == 0 && i <= step; i++)
            rc = pair_put(pair, 0, 0, size, number + i, number + i, i == step ? 0 : PWC_NO_LCE);
        number += step;
    }
    while (rc == 0 && ended < number) {
        rc = pair_expect(pair, PWC_LOCAL, ended + step);
        ended += step;
    }
    return rc < 0 ? rc : world_notify(pair->world, pair->remote, END);
}

/* Returns puts a second, in millions. */
static int target(struct pair *pair, const struct interval *when, double *rate)
{
    uint64_t begun = 0, ended = 0, from = 0, to = 0, id;
    struct pwc_event event = {0};
    int rc = 0;
    for (uint64_t number = 1; rc == 0 && event.id != END; number++) {
        rc = world_wait(pair->world, pair->peer, PWC_REMOTE, &event);
        id = event.id;
        if (rc == 0 && id != number && id != END)
            rc = world_wrong(pair->world, "event %llu came where %llu was due",
                             (unsigned long long)id, (unsigned long long)number);
        if (number % LOOK != 0 && id != END)
            continue;
        uint64_t now = now_ns();
        if (from == 0 && now >= when->begin) {
            from = now;
            begun = number;
        }
        if (to == 0 && (now >= when->end || id == END)) {
            to = now;
            ended = number;
        }
    }
    if (rc == 0 && (from == 0 || to <= from))
        *rate = 0; /* no two looks at the count fall into the interval */
    else if (rc == 0)
        *rate = (double)(ended - begun) / ((double)(to - from) / 1e9) / 1e6;
    return rc;
}

/* Jain's index of fairness: 1 when all pairs have the same rate, 1/n when one pair has it all. */
static double jain(const double *rates, uint32_t count)
{
    double sum = 0, squares = 0;
    for (uint32_t i = 0; i < count; i++) {
        sum += rates[i];
        squares += rates[i] * rates[i];
    }
    return squares > 0 ? sum * sum / (count * squares) : 0;
}

static void print(const struct options *o, uint64_t size, const double *rates, uint32_t count)
{
    double sum = 0, least = rates[0], most = rates[0];
    for (uint32_t i = 0; i < count; i++) {
        sum += rates[i];
        least = rates[i] < least ? rates[i] : least;
        most = rates[i] > most ? rates[i] : most;
    }
    if (!o->json) {
        if (size == o->sizes[0])
            printf("%-13s %10s %9s %10s %10s %10s %10s\n", "test", "size", "pairs", "Mop/s",
                   "least", "most", "Jain");
        printf("%-13s %10llu %9u %10.4f %10.4f %10.4f %10.4f\n", o->test_name,
               (unsigned long long)size, count, sum, least, most, jain(rates, count));
    } else {
        printf("{\"test\":\"%s\",\"size\":%llu,\"seconds\":%llu,\"window\":%llu,\"rate_mps\":%.6f,"
               "\"jain\":%.6f,\"rates_mps\":[",
               o->test_name, (unsigned long long)size, (unsigned long long)o->seconds,
               (unsigned long long)options_window(o, size), sum, jain(rates, count));
        for (uint32_t i = 0; i < count; i++)
            printf("%s%.6f", i > 0 ? "," : "", rates[i]);
        printf("]}\n");
    }
    fflush(stdout);
}

int share(struct pair *pair, uint64_t size)
{
    struct world *world = pair->world;
    double rate = 0, *rates = calloc(world->size, sizeof(*rates));
    if (rates == NULL)
        return world_error(world, -ENOMEM, "gathering results");
    int rc = pwc_barrier(world->ctx);
    if (rc < 0) {
        world_error(world, rc, "waiting for all ranks");
        goto out;
    }
    struct interval when = interval_from_now(world->options);
    rc = pair->initiates ? origin(pair, size, &when) : target(pair, &when, &rate);
    if (rc < 0)
        goto out;
    rc = pwc_exchange(world->ctx, &rate, sizeof(rate), rates);
    if (rc < 0)
        world_error(world, rc, "gathering results");
    else if (world->rank == 0) /* the upper half has counted */
        print(world->options, size, rates + world->size / 2, world->size / 2);
out:
    free(rates);
    return rc;
}
