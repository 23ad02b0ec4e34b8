/*
 * Injection overhead: the time to submit a batch of operations, without waiting for their end
 * (Hargrove and Bonachea 2019, Figure 3).
 *
 * No operation asks for a local event: a program with many in flight waits for all with one
 * pwc_flush.
 * A put has a remote event, as puts usually have; an active message asks for no reply. Between
 * batches the clock is stopped: the origin flushes, and the target reports when it has drained all
 * remote events, or handled all messages.
 *
 * A refused operation (-EAGAIN) is submitted again, after the steps that a program has to take
 * then: probe, and yield. These are in the measured time, and refusals are counted.
 */
#include <errno.h>
#include <pwc/am.h>
#include "tools/pwcperf/measures/measure.h"
#include "tools/pwcperf/message.h"
#include "tools/pwcperf/report.h"

#define BATCH_BYTES   (UINT64_C(64) << 20) /* memory for a batch; a larger batch reuses it */
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

/* Acts as a program does when there is no room: takes a failed operation's event, and yields. */
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

/* Submits a batch: the part that is timed. */
static int submit_batch(const struct messages *m, uint64_t first, uint64_t depth, unsigned flags,
                        uint64_t *eagain)
{
    for (uint64_t i = first; i < first + depth; i++) {
        uint64_t since = 0;
        int rc;
        while ((rc = messages_send(m, i, 0, flags)) == -EAGAIN) {
            (*eagain)++;
            rc = refused(m->pair, &since);
            if (rc < 0)
                return rc;
        }
        if (rc < 0)
            return world_error(m->pair->world, rc, "submitting %llu bytes",
                               (unsigned long long)m->size);
    }
    return 0;
}

static int drive(struct messages *m, struct result *result, uint64_t warmup)
{
    struct pair *pair = m->pair;
    bool put = pair->world->options->kind == KIND_PUT;
    unsigned flags = PWC_NO_LCE | (put ? 0 : PWC_AM_NO_REPLY);
    struct progress progress;
    int rc = 0;
    progress_start(&progress, pair->world, "batches", warmup + result->iters);
    for (uint64_t i = 0; rc == 0 && i < warmup + result->iters; i++) {
        if (i == warmup)
            result->eagain = 0;
        uint64_t start = now_ns();
        rc = submit_batch(m, i * result->depth, result->depth, flags, &result->eagain);
        uint64_t ns = now_ns() - start;
        if (rc == 0 && i >= warmup)
            samples_add(pair->samples, ns);
        if (rc == 0 && (rc = pwc_flush(pair->world->ctx, pair->peer, -1)) < 0)
            rc = world_error(pair->world, rc, "flushing");
        if (rc == 0)
            rc = pair_expect(pair, PWC_REMOTE, DRAINED | i);
        progress_at(&progress, i);
    }
    progress_end(&progress);
    return rc;
}

static int drain(struct messages *m, const struct result *result, uint64_t warmup)
{
    struct pair *pair = m->pair;
    bool put = pair->world->options->kind == KIND_PUT;
    uint64_t due = 0;
    int rc = 0;
    for (uint64_t i = 0; rc == 0 && i < warmup + result->iters; i++) {
        if (!put)
            rc = messages_await(m, due + result->depth);
        for (uint64_t n = 0; put && rc == 0 && n < result->depth; n++)
            rc = pair_expect(pair, PWC_REMOTE, due + n);
        due += result->depth;
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
    struct messages messages;
    samples_clear(pair->samples);
    int rc = messages_open(&messages, pair, size, slots_of(options, size));
    if (rc == 0)
        rc =
            pair->initiates ? drive(&messages, &result, warmup) : drain(&messages, &result, warmup);
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
