/*
 * Latency of puts, with an event or a signal, by ping-pong, and of gets.
 *
 * Two slots are used in turn. So with --check both sides can compare the bytes that arrived, and
 * prepare the next ones, while the clock is stopped: the slot of ping i is written again only by
 * ping i + 2. The other side sends that ping after pong i + 1, which we send after we have compared
 * ping i.
 */
#include <errno.h>
#include <pwc/signal.h>
#include "tools/pwcperf/measures/measure.h"
#include "tools/pwcperf/pattern.h"
#include "tools/pwcperf/report.h"

#define GET_STEPS UINT64_C(64) /* gets start at changing offsets, so that old bytes are noticed */

static uint64_t ping_seed(const struct plan *plan, uint64_t iteration, bool ping)
{
    return pattern_mix(pattern_mix(plan->size << 1 | ping) + iteration);
}

size_t latency_half(const struct options *options, uint64_t size)
{
    return 2 * size + 8 * GET_STEPS;
}

int latency_run(struct pair *pair, const struct plan *plan, const char *name, unsigned operations,
                latency_one *one, void *context)
{
    struct result result = {.size = plan->size, .iters = plan->iters};
    struct progress progress;
    uint64_t total = plan->warmup + plan->iters, ns = 0;
    int rc = 0;
    progress_start(&progress, pair->world, name, total);
    for (uint64_t i = 0; rc == 0 && i < total; i++) {
        rc = one(pair, plan, context, i, &ns);
        if (rc == 0 && i >= plan->warmup)
            samples_add(pair->samples, ns);
        progress_at(&progress, i);
    }
    progress_end(&progress);
    if (rc == 0 && (rc = pwc_flush(pair->world->ctx, pair->peer, -1)) < 0)
        rc = world_error(pair->world, rc, "flushing");
    if (rc < 0 || !pair->initiates)
        return rc < 0 ? rc : report_result(pair->world, NULL);
    samples_summary(pair->samples, operations, &result);
    result.rate_mps = 1 / result.mean_us;
    result.bw_mbps = (double)plan->size / result.mean_us;
    return report_result(pair->world, &result);
}

/* How put `i` is sent, and how the other side waits for it. */
struct ping {
    int (*send)(struct pair *pair, size_t slot, size_t size, uint64_t i);
    int (*await)(struct pair *pair, const struct ping *ping, uint64_t i);
    uint64_t before; /* value of the signal's word before the test */
};

/* One ping and its pong; at the initiator, *ns is the round trip. */
static int round_trip(struct pair *pair, const struct plan *plan, void *context, uint64_t i,
                      uint64_t *ns)
{
    const struct ping *ping = context;
    bool check = pair->world->options->check;
    size_t size = plan->size, slot = i % 2 * size;
    int rc;
    if (check)
        pattern_fill(pair->departures + slot, size, ping_seed(plan, i, pair->initiates), 0);
    if (pair->initiates) {
        uint64_t start = now_ns();
        rc = ping->send(pair, slot, size, i);
        if (rc == 0)
            rc = ping->await(pair, ping, i);
        *ns = now_ns() - start;
    } else {
        rc = ping->await(pair, ping, i);
        if (rc == 0)
            rc = ping->send(pair, slot, size, i);
    }
    if (rc == 0 && check)
        rc = pair_check(pair, slot, size, ping_seed(plan, i, !pair->initiates), 0, i);
    return rc;
}

static int send_put(struct pair *pair, size_t slot, size_t size, uint64_t i)
{
    return pair_put(pair, slot, slot, size, 0, i, PWC_NO_LCE);
}

static int await_event(struct pair *pair, const struct ping *ping, uint64_t i)
{
    return pair_expect(pair, PWC_REMOTE, i);
}

int latency_put(struct pair *pair, const struct plan *plan)
{
    struct ping ping = {.send = send_put, .await = await_event};
    return latency_run(pair, plan, "put_lat", 2, round_trip, &ping);
}

/* ---- puts with signal ------------------------------------------------------------------------ */

/* The word stands after all slots of the longest size: each half has room for GET_STEPS words. */
static size_t word_at(const struct pair *pair)
{
    return (pair->half - sizeof(uint64_t)) & ~(sizeof(uint64_t) - 1);
}

static uint64_t *word_of(const struct pair *pair)
{
    return (uint64_t *)(void *)(pair->arrivals + word_at(pair));
}

static int send_signal(struct pair *pair, size_t slot, size_t size, uint64_t i)
{
    uint64_t since = 0;
    int rc;
    while ((rc = pwc_put_signal(pair->remote, slot, pair->departures + slot, size, word_at(pair), 1,
                                PWC_ADD, PWC_CID_NONE,
                                PWC_NO_LCE | pair->world->options->protocol)) == -EAGAIN)
        if (world_again(pair->world, &since) < 0)
            return -ETIMEDOUT;
    return rc < 0 ? world_error(pair->world, rc, "put with signal %llu of %zu bytes",
                                (unsigned long long)i, size)
                  : 0;
}

static int await_signal(struct pair *pair, const struct ping *ping, uint64_t i)
{
    uint32_t seconds = pair->world->options->timeout_s;
    int rc = pwc_wait_word(pair->world->ctx, word_of(pair), PWC_GE, ping->before + i + 1,
                           (int)seconds * 1000);
    if (rc == 0)
        return world_error(pair->world, -ETIMEDOUT, "no signal for %u s (--timeout)", seconds);
    return rc < 0 ? world_error(pair->world, rc, "waiting for a signal") : 0;
}

int latency_signal(struct pair *pair, const struct plan *plan)
{
    struct ping ping = {.send = send_signal, .await = await_signal, .before = *word_of(pair)};
    int rc = pwc_barrier(pair->world->ctx); /* until both have read their words */
    if (rc < 0)
        return world_error(pair->world, rc, "waiting for all ranks");
    return latency_run(pair, plan, "signal_lat", 2, round_trip, &ping);
}

/* ---- gets ------------------------------------------------------------------------------------ */

/* The target has one step, which lasts until the origin has ended. */
static int get_one(struct pair *pair, const struct plan *plan, void *context, uint64_t i,
                   uint64_t *ns)
{
    uint64_t from = i % GET_STEPS * 8, last = plan->warmup + plan->iters - 1;
    if (!pair->initiates)
        return i == 0 ? pair_expect_end(pair, last) : 0;

    uint64_t start = now_ns();
    int rc = pair_get(pair, from, 0, plan->size, i);
    if (rc == 0)
        rc = pair_expect(pair, PWC_LOCAL, i);
    *ns = now_ns() - start;
    if (rc == 0 && pair->world->options->check)
        rc = pair_check(pair, 0, plan->size, pattern_mix(plan->size), from, i);
    return rc == 0 && i == last ? world_notify(pair->world, pair->remote, last) : rc;
}

int latency_get(struct pair *pair, const struct plan *plan)
{
    /* Gets read the arrivals of the answering side. */
    if (!pair->initiates)
        pattern_fill(pair->arrivals, plan->size + 8 * GET_STEPS, pattern_mix(plan->size), 0);
    int rc = pwc_barrier(pair->world->ctx);
    if (rc < 0)
        return world_error(pair->world, rc, "waiting for all ranks");
    return latency_run(pair, plan, "get_lat", 1, get_one, NULL);
}
