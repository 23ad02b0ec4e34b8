/*
 * Overlap: the time of a put, or of a fetch-and-add, while its target computes and calls nothing;
 * and how much slower the target computes. With --pin it computes on its daemon's processor.
 *
 *     origin   START      START      put put put ..  START
 *                 \      /     \      |   |   |     /     .. every 500 us, 38 in a stretch
 *     target       20 ms        20 ms v   v   v               of a fixed number of rounds
 *                  quiet        busy
 *
 * Quiet and busy stretches alternate, because a machine's own speed changes. The target reports the
 * time of each; the loss is by how much a busy stretch took longer than the quiet one before it.
 */
#include <errno.h>
#include <stdlib.h>
#include <time.h>
#include "tools/pwcperf/measures/measure.h"
#include "tools/pwcperf/report.h"

#define STRETCH_NS   UINT64_C(20000000)
#define PERIOD_NS    UINT64_C(500000)
#define PUTS         UINT64_C(38) /* puts in a stretch, none at its edges */
#define FIRST_ROUNDS 1000u

size_t overlap_half(uint64_t size)
{
    return size > 8 ? size : 8;
}

/* ---- the target ------------------------------------------------------------------------------ */

/* Computes as an application does: rounds of work that the compiler cannot leave out. */
static uint64_t compute(uint64_t rounds, uint64_t *state)
{
    uint64_t start = now_ns(), x = *state;
    for (uint64_t i = 0; i < rounds; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
    }
    *state = x;
    return now_ns() - start;
}

/* Finds the number of rounds that fill a stretch, from the fastest of some trials: so no stretch is
 * too short. */
static uint64_t calibrate(uint64_t *state)
{
    uint64_t rounds = FIRST_ROUNDS, ns;
    while ((ns = compute(rounds, state)) < STRETCH_NS / 2)
        rounds *= 2;
    for (int i = 0; i < 5; i++) {
        uint64_t again = compute(rounds, state);
        ns = again < ns ? again : ns;
    }
    return (uint64_t)((double)rounds * (double)STRETCH_NS / (double)ns);
}

static int target(struct pair *pair, uint64_t stretches)
{
    volatile uint64_t kept;
    uint64_t state = 88172645463325252u, rounds = calibrate(&state);
    int rc = 0;
    for (uint64_t i = 0; rc == 0 && i < 2 * stretches; i++) {
        rc = pair_expect(pair, PWC_REMOTE, i);
        if (rc == 0)
            rc = world_notify(pair->world, pair->remote, compute(rounds, &state));
    }
    kept = state;
    (void)kept;
    return rc;
}

/* ---- the origin ------------------------------------------------------------------------------ */

static void sleep_until(uint64_t ns)
{
    const struct timespec time = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL) == EINTR)
        continue;
}

static int put_one(struct pair *pair, const struct plan *plan, uint64_t id, uint64_t *ns)
{
    uint64_t start = now_ns(), before;
    int rc;
    if (pair->world->options->kind == KIND_FETCH) {
        rc = atomic_fetch_add_one(pair, id, &before);
    } else {
        rc = pair_put(pair, 0, 0, plan->size, id, 0, PWC_NO_RCE);
        if (rc == 0)
            rc = pair_expect(pair, PWC_LOCAL, id);
    }
    *ns = now_ns() - start;
    return rc;
}

/* Runs stretch `number`, which is busy where odd; *took is the time that the target reports. */
static int stretch(struct pair *pair, const struct plan *plan, uint64_t number, bool counts,
                   uint64_t *took)
{
    uint64_t start = now_ns(), ns;
    int rc = world_notify(pair->world, pair->remote, number);
    for (uint64_t i = 1; rc == 0 && number % 2 == 1 && i <= PUTS; i++) {
        sleep_until(start + i * PERIOD_NS);
        rc = put_one(pair, plan, i, &ns);
        if (rc == 0 && counts)
            samples_add(pair->samples, ns);
    }
    struct pwc_event event;
    if (rc == 0)
        rc = world_wait(pair->world, pair->peer, PWC_REMOTE, &event);
    if (rc == 0)
        *took = event.id;
    return rc;
}

static int by_value(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

static int origin(struct pair *pair, const struct plan *plan, uint64_t warmup, uint64_t stretches,
                  double *loss)
{
    double *losses = calloc(stretches, sizeof(*losses));
    uint64_t quiet = 0, busy = 0;
    struct progress progress;
    int rc = losses != NULL ? 0 : world_error(pair->world, -ENOMEM, "making room for stretches");
    progress_start(&progress, pair->world, "stretches", stretches);
    for (uint64_t i = 0; rc == 0 && i < stretches; i++) {
        rc = stretch(pair, plan, 2 * i, false, &quiet);
        if (rc == 0)
            rc = stretch(pair, plan, 2 * i + 1, i >= warmup, &busy);
        if (rc == 0)
            losses[i] = 1 - (double)quiet / (double)busy;
        progress_at(&progress, i);
    }
    progress_end(&progress);
    if (rc == 0) {
        qsort(losses + warmup, stretches - warmup, sizeof(*losses), by_value);
        *loss = 100 * losses[warmup + (stretches - warmup) / 2];
    }
    free(losses);
    return rc;
}

int overlap(struct pair *pair, const struct plan *plan)
{
    uint64_t warmup = (plan->warmup + PUTS - 1) / PUTS;
    uint64_t stretches = warmup + (plan->iters + PUTS - 1) / PUTS;
    struct result result = {.size = plan->size, .iters = (stretches - warmup) * PUTS};
    int rc = pair->initiates ? origin(pair, plan, warmup, stretches, &result.loss_percent)
                             : target(pair, stretches);
    if (rc < 0)
        return rc;
    samples_summary(pair->samples, 1, &result);
    return report_result(pair->world, pair->initiates ? &result : NULL);
}
