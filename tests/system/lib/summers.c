/* The collective calls of summers.h, and their checks. */
#include "tests/system/lib/summers.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#define LIMIT_S 30

static bool is(struct summer *s, const char *what, int64_t value, int64_t wanted)
{
    if (value != wanted && !s->failed) {
        char why[200] = "";

        if (s->team)
            pwc_team_error_text(s->team, why, sizeof(why));
        fprintf(stderr, "rank %u: %s: %lld, not %lld. %s (behind %llu calls)\n", s->rank.number,
                what, (long long)value, (long long)wanted, why, (unsigned long long)s->all->calls);
        s->failed = true;
    }
    return !s->failed;
}

static uint64_t part(uint32_t rank, uint64_t at)
{
    return (rank + 1) * UINT64_C(0x9e3779b97f4a7c15) + at * UINT64_C(0xc2b2ae3d27d4eb4f);
}

static uint64_t sum_of_parts(uint64_t at)
{
    uint64_t sum = 0;

    for (uint32_t r = 0; r < SUMMERS; r++)
        sum += part(r, at);
    return sum;
}

static bool add_up(struct summer *s, uint64_t at, uint64_t words)
{
    return is(s, "pwc_team_allreduce",
              pwc_team_allreduce(s->team, s->in + at, s->out + at, words, PWC_U64, PWC_ADD,
                                 pwc_cid_request(s->request), 0),
              0);
}

static bool meet(struct summer *s, pwc_team *team)
{
    return is(s, "pwc_team_barrier", pwc_team_barrier(team, pwc_cid_request(s->request), 0), 0);
}

static bool ended_well(struct summer *s)
{
    struct pwc_status end = {.status = 1};

    return is(s, "pwc_request_wait", pwc_request_wait(s->request, &end, RANK_WAIT_MS), 1) &&
           is(s, "a request's status", end.status, 0);
}

/* One lap of calls: every eighth is a barrier, the last one is long. */
static bool lap(struct summer *s, uint64_t first)
{
    for (uint64_t i = 0; i < SUMMERS_CALLS + SUMMERS_LONG; i++) {
        s->in[i] = part(s->rank.number, first + i);
        s->out[i] = 0;
    }
    for (uint64_t i = 0; i < SUMMERS_CALLS; i++)
        if (i % 8 == 7 ? !meet(s, s->team) : !add_up(s, i, 1))
            return false;
    if (!add_up(s, SUMMERS_CALLS, SUMMERS_LONG) || !ended_well(s))
        return false;
    for (uint64_t i = 0; i < SUMMERS_CALLS + SUMMERS_LONG; i++)
        if (i >= SUMMERS_CALLS || i % 8 != 7)
            is(s, "a sum", (int64_t)s->out[i], (int64_t)sum_of_parts(first + i));
    return !s->failed;
}

/* An allreduce by which the last rank decides for all whether there is another lap. */
static bool once_more(struct summer *s)
{
    s->in[0] = s->rank.number < SUMMERS - 1 || !s->all->stop;
    return !s->failed && add_up(s, 0, 1) && ended_well(s) && s->out[0] == SUMMERS;
}

static void run_laps(struct summer *s)
{
    for (uint64_t first = 0; once_more(s); first += SUMMERS_CALLS + SUMMERS_LONG) {
        if (s->rank.number == SUMMERS - 1) {
            pthread_mutex_lock(&s->all->gate);
            pthread_mutex_unlock(&s->all->gate);
        }
        if (lap(s, first) && s->rank.number == 0) {
            s->all->calls += SUMMERS_CALLS + 2;
            sem_post(&s->all->lap_over);
        }
    }
}

static void *run(void *argument)
{
    const struct pwc_team_attr attr = {.window = 1024};
    struct summer *s = argument;
    pwc_team *next = NULL;

    if (!is(s, "pwc_team_world", pwc_team_world(s->rank.ctx, &attr, &s->team), 0))
        return NULL;
    run_laps(s);
    if (s->failed || !is(s, "pwc_team_dup", pwc_team_dup(s->team, NULL, &next), 0))
        return NULL;
    if (meet(s, next) && ended_well(s)) {
        is(s, "pwc_team_free", pwc_team_free(next), 0);
        is(s, "pwc_team_free", pwc_team_free(s->team), 0);
    }
    s->team = NULL;
    return NULL;
}

/* ---- from outside ---------------------------------------------------------------------------- */

int summers_start(struct summers *s, const char *job, const char *const sockets[2])
{
    int rc;

    memset(s, 0, sizeof(*s));
    rc = -pthread_mutex_init(&s->gate, NULL);
    (void)sem_init(&s->lap_over, 0, 0);
    for (uint32_t r = 0; rc == 0 && r < SUMMERS; r++) {
        s->ranks[r].all = s;
        rc = rank_attach(&s->ranks[r].rank, sockets[r % 2], job, r, SUMMERS, 4096);
        if (rc == 0)
            rc = pwc_request_create(s->ranks[r].rank.ctx, &s->ranks[r].request);
    }
    for (uint32_t r = 0; rc == 0 && r < SUMMERS; r++) {
        rc = -pthread_create(&s->ranks[r].thread, NULL, run, &s->ranks[r]);
        s->ranks[r].runs = rc == 0;
    }
    return rc;
}

bool summers_end_lap(struct summers *s)
{
    struct timespec end;

    while (sem_trywait(&s->lap_over) == 0)
        ;
    clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_sec += LIMIT_S;
    /* The first lap to end may have begun before this call, so wait for two. */
    return sem_clockwait(&s->lap_over, CLOCK_MONOTONIC, &end) == 0 &&
           sem_clockwait(&s->lap_over, CLOCK_MONOTONIC, &end) == 0;
}

void summers_hold(struct summers *s)
{
    pthread_mutex_lock(&s->gate);
}

void summers_release(struct summers *s)
{
    pthread_mutex_unlock(&s->gate);
}

bool summers_stop(struct summers *s)
{
    bool failed = false;

    s->stop = true;
    for (int r = 0; r < SUMMERS; r++)
        if (s->ranks[r].runs)
            pthread_join(s->ranks[r].thread, NULL);
    for (int r = 0; r < SUMMERS; r++) {
        failed = failed || s->ranks[r].failed || !s->ranks[r].runs;
        (void)pwc_request_free(s->ranks[r].request);
        rank_detach(&s->ranks[r].rank);
    }
    return !failed;
}
