/* Joins results, has them printed, and shows how far a run is. */
#include "tools/pwcperf/report.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "tools/pwcperf/row.h"

static double larger(double a, double b)
{
    return a > b ? a : b;
}

static double smaller(double a, double b)
{
    return a < b ? a : b;
}

static void join(struct result *all, const struct result *one)
{
    all->min_us = smaller(all->min_us, one->min_us);
    all->p50_us = larger(all->p50_us, one->p50_us);
    all->p99_us = larger(all->p99_us, one->p99_us);
    all->mean_us = larger(all->mean_us, one->mean_us);
    all->rate_mps += one->rate_mps;
    all->bw_mbps += one->bw_mbps;
    all->loss_percent = larger(all->loss_percent, one->loss_percent);
    all->eagain += one->eagain;
}

int report_result(struct world *world, const struct result *mine)
{
    struct result none = {0};
    struct result *all = calloc(world->size, sizeof(*all));
    if (all == NULL)
        return world_error(world, -ENOMEM, "gathering results");
    int rc = pwc_exchange(world->ctx, mine != NULL ? mine : &none, sizeof(*all), all);
    if (rc < 0) {
        free(all);
        return world_error(world, rc, "gathering results");
    }
    if (world->rank == 0) {
        struct result joined = all[0];
        for (uint32_t i = 1; i < world->size / 2; i++)
            join(&joined, &all[i]);
        row_print(stdout, world->options, &joined);
        fflush(stdout);
    }
    free(all);
    return 0;
}

void progress_start(struct progress *progress, const struct world *world, const char *what,
                    uint64_t total)
{
    *progress = (struct progress){
        .what = what,
        .total = total,
        .shown_ns = now_ns() + UINT64_C(750000000), /* short runs show nothing */
        .on = world->rank == 0 && isatty(STDERR_FILENO),
    };
}

void progress_at(struct progress *progress, uint64_t done)
{
    if (!progress->on || (done & 63) != 0)
        return;
    uint64_t now = now_ns();
    if (now < progress->shown_ns || now - progress->shown_ns < UINT64_C(250000000))
        return;
    progress->shown_ns = now;
    progress->on = 2;
    /* The cursor goes back to the line's start, so that a line of pwcrun or of another rank
     * replaces this one. */
    fprintf(stderr, "%s: %llu of %llu (%llu%%)\033[K\r", progress->what, (unsigned long long)done,
            (unsigned long long)progress->total,
            (unsigned long long)(done * 100 / progress->total));
}

void progress_end(struct progress *progress)
{
    if (progress->on == 2)
        fputs("\033[K", stderr);
    progress->on = 0;
}
