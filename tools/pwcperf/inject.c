/*
 * Injection overhead: the time to submit a batch of operations, without waiting for their end
 * (Hargrove and Bonachea 2019, Figure 3).
 *
 * No operation asks for a local event: who has many in flight waits for all with one pwc_flush.
 * Each has a remote event, as a put that somebody waits for. Between batches the clock stands: the
 * origin flushes, and the target says when it has drained all remote events.
 *
 * A refused operation (-EAGAIN) is submitted again, after what a program has to do then: probe, and
 * yield. That is in the time, and it is counted.
 */
#include <errno.h>
#include "measure.h"
#include "report.h"

#define BATCH_BYTES   (UINT64_C(64) << 20) /* memory for a batch; larger ones use it again */
#define DRAINED       UINT64_C(0x8000000000000000)
#define BYTES_AIMED   (UINT64_C(256) << 20)
#define BATCHES_MOST  UINT64_C(1000)
#define BATCHES_LEAST UINT64_C(10)

static uint64_t slots_of(const struct options *options, uint64_t size)
{
    uint64_t slots = 1;
    for (size_t i = 0; i < options->depth_count; i++)
        slots = options->depths[i] > slots ? options->depths[i] : slots;
    uint64_t fit = size > 0 ? BATCH_BYTES / size : slots;
    return fit < slots ? fit > 0 ? fit : 1 : slots;
}

size_t inject_half(const struct options *options, uint64_t size)
{
    return slots_of(options, size) * size;
}

static uint64_t batches_of(const struct options *options, uint64_t size, uint64_t depth)
{
    uint64_t fit = size > 0 ? BYTES_AIMED / size / depth : BATCHES_MOST;
    if (options->iters > 0)
        return options->iters;
    return fit > BATCHES_MOST ? BATCHES_MOST : fit < BATCHES_LEAST ? BATCHES_LEAST : fit;
}

/* What is left to do when there is no room: a failed operation's event, and the daemon's turn. */
static int refused(struct pair *pair, uint64_t *since)
{
    struct pwc_event event;
    int rc = pwc_probe(pair->world->ctx, pair->peer, PWC_LOCAL, &event);
    if (rc < 0)
        return world_error(pair->world, rc, "probing");
    if (rc == 1)
        return world_error(pair->world, event.status, "an operation failed");
    return world_again(pair->world, since);
}

/* The timed part. */
static int submit_batch(struct pair *pair, uint64_t size, uint64_t depth, uint64_t slots,
                        uint64_t *eagain)
{
    unsigned flags = PWC_NO_LCE | pair->world->options->protocol;
    for (uint64_t i = 0, slot = 0; i < depth; i++) {
        uint64_t since = 0;
        int rc;
        while ((rc = pwc_put(pair->world->ctx, pair->remote, slot * size,
                             pair->departures + slot * size, size, pwc_cid_u64(0), pwc_cid_u64(i),
                             flags)) == -EAGAIN) {
            (*eagain)++;
            rc = refused(pair, &since);
            if (rc < 0)
                return rc;
        }
        if (rc < 0)
            return world_error(pair->world, rc, "putting %llu bytes", (unsigned long long)size);
        slot = slot + 1 < slots ? slot + 1 : 0;
    }
    return 0;
}

static int drive(struct pair *pair, struct result *result, uint64_t warmup)
{
    uint64_t slots = slots_of(pair->world->options, result->size), eagain = 0;
    struct progress progress;
    int rc = 0;
    progress_start(&progress, pair->world, "batches", warmup + result->iters);
    for (uint64_t i = 0; rc == 0 && i < warmup + result->iters; i++) {
        if (i == warmup)
            eagain = 0;
        uint64_t start = world_now_ns();
        rc = submit_batch(pair, result->size, result->depth, slots, &eagain);
        uint64_t ns = world_now_ns() - start;
        if (rc == 0 && i >= warmup)
            samples_add(pair->samples, ns);
        if (rc == 0 && (rc = pwc_flush(pair->world->ctx, pair->peer)) < 0)
            rc = world_error(pair->world, rc, "flushing");
        if (rc == 0)
            rc = pair_expect(pair, PWC_REMOTE, DRAINED | i);
        progress_at(&progress, i);
    }
    progress_end(&progress);
    result->eagain = eagain;
    return rc;
}

static int drain(struct pair *pair, const struct result *result, uint64_t warmup)
{
    int rc = 0;
    for (uint64_t i = 0; rc == 0 && i < warmup + result->iters; i++) {
        for (uint64_t n = 0; rc == 0 && n < result->depth; n++)
            rc = pair_expect(pair, PWC_REMOTE, n);
        if (rc == 0)
            rc = world_notify(pair->world, pair->remote, DRAINED | i);
    }
    return rc;
}

static int inject_depth(struct pair *pair, uint64_t size, uint64_t depth)
{
    const struct options *options = pair->world->options;
    struct result result = {
        .size = size, .depth = depth, .iters = batches_of(options, size, depth)};
    uint64_t warmup = options->warmup == UINT64_MAX ? result.iters / 10 : options->warmup;
    samples_clear(pair->samples);
    int rc = pair->initiates ? drive(pair, &result, warmup) : drain(pair, &result, warmup);
    if (rc < 0)
        return rc;
    samples_summary(pair->samples, (unsigned)depth, &result);
    return report_result(pair->world, pair->initiates ? &result : NULL);
}

int inject(struct pair *pair, uint64_t size)
{
    const struct options *options = pair->world->options;
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < options->depth_count; i++)
        rc = inject_depth(pair, size, options->depths[i]);
    return rc;
}
