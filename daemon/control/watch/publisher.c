/* Owns when counters are written, and what the control thread adds to them (publisher.h). Thread:
 * control, except where publisher.h says otherwise. */
#include "daemon/control/watch/publisher.h"

#include <stdio.h>
#include <string.h>
#include "daemon/control/clients/client.h"
#include "daemon/control/clients/pairs.h"
#include "shm_ring/clock.h"
#include "daemon/control/fatal.h"

#define INTERVAL_MS 100u
/* To write the counters, all sessions and pairs are walked. The pause after it is WRITE_SHARE times
 * as long as it took, up to LONGEST_MS, so that it takes a small part of the control thread's
 * time. */
#define WRITE_SHARE 100u
#define LONGEST_MS  1000u

void publisher_worker_totals(const struct worker *w, struct counters_totals *out)
{
    const struct progress *progress =
        atomic_load_explicit(&w->counters.progress, memory_order_acquire);
    struct progress_stats stats = {0};

    if (progress)
        progress_stats(progress, &stats);
    *out = (struct counters_totals){
        .heartbeat = stats.rounds,
        .cpu_ns = progress ? progress_cpu_ns(progress) : 0,
        .work = stats.work,
        .sleeps = stats.sleeps,
        .commands = atomic_load_explicit(&w->counters.calls, memory_order_relaxed),
        .quarantined = atomic_load_explicit(&w->counters.quarantined, memory_order_relaxed),
        .refused = atomic_load_explicit(&w->counters.refused, memory_order_relaxed),
    };
}

void publisher_totals(const struct control *control, struct counters_totals *out)
{
    *out = (struct counters_totals){0};
    for (uint32_t i = 0; i < control->worker_count; i++) {
        struct counters_totals one;

        publisher_worker_totals(&control->workers[i], &one);
        out->heartbeat += one.heartbeat;
        out->cpu_ns += one.cpu_ns;
        out->work += one.work;
        out->sleeps += one.sleeps;
        out->commands += one.commands;
        out->quarantined += one.quarantined;
        out->refused += one.refused;
    }
}

void publisher_worker_longest_step(const struct worker *w, struct step_longest *out)
{
    const struct progress *progress =
        atomic_load_explicit(&w->counters.progress, memory_order_acquire);

    *out = (struct step_longest){0};
    if (progress)
        progress_longest_step(progress, out);
}

void publisher_longest_step(const struct control *control, struct step_longest *out)
{
    *out = (struct step_longest){0};
    for (uint32_t i = 0; i < control->worker_count; i++) {
        struct step_longest one;

        publisher_worker_longest_step(&control->workers[i], &one);
        if (one.recent_ns > out->recent_ns)
            out->recent_ns = one.recent_ns;
        if (one.ns > out->ns) {
            out->ns = one.ns;
            out->part = one.part;
        }
    }
}

/* Reports that there is new work, once until the counters are written. */
void publisher_observe(void *context, struct engine *engine)
{
    struct worker *w = context;
    struct worker_counters *c = &w->counters;
    const struct progress *progress = atomic_load_explicit(&c->progress, memory_order_acquire);
    struct progress_stats stats = {0};

    if (progress)
        progress_stats(progress, &stats);
    if (stats.work == c->seen_work)
        return;
    c->seen_work = stats.work;
    /* Pairs with publisher_write: the work is visible there, or `due` is clear here. */
    if (!atomic_exchange(&c->due, true))
        uv_async_send(&w->control->publisher.nudge);
}

/* Fills in the operations that a context has done by pairs, as its client reports them. */
static void fill_pairs(void *context, uint32_t handle, struct counters_session *row)
{
    const struct client_session *s = worker_session(context, handle);
    struct direct_counts counts;

    if (!s) /* the session is being closed */
        return;
    counts = pairs_count(s);
    row->pairs = s->pairs;
    row->direct_put_ops = counts.put_ops;
    row->direct_put_bytes = counts.put_bytes;
    row->direct_get_ops = counts.get_ops;
    row->direct_get_bytes = counts.get_bytes;
    row->direct_am_ops = counts.am_ops;
    row->direct_am_bytes = counts.am_bytes;
    row->pair_size = counts.pair_size;
    row->pair_used = counts.pair_used;
    row->pair_rank = counts.pair_rank;
    row->ops_arrived += counts.arrived;
}

static void write_held(struct control *control)
{
    struct counters_header *h = control->publisher.counters.shared;
    uint64_t segments = 0, regions = 0, memory = 0;

    for (const struct quota_user *u = control->users; u; u = u->next) {
        segments += u->held[QUOTA_SEGMENTS];
        regions += u->held[QUOTA_REGIONS];
        memory += u->held[QUOTA_MEMORY];
    }
    atomic_store_explicit(&h->segments, segments, memory_order_relaxed);
    atomic_store_explicit(&h->regions, regions, memory_order_relaxed);
    atomic_store_explicit(&h->memory, memory, memory_order_relaxed);
}

static void write_longest_step(struct control *control)
{
    struct counters_header *h = control->publisher.counters.shared;
    struct step_longest longest;

    publisher_longest_step(control, &longest);
    atomic_store_explicit(&h->longest_step_ns, longest.ns, memory_order_relaxed);
    atomic_store_explicit(&h->longest_step_part, longest.part, memory_order_relaxed);
    atomic_store_explicit(&h->recent_step_ns, longest.recent_ns, memory_order_relaxed);
}

static void write_teams(struct control *control)
{
    struct counters_header *h = control->publisher.counters.shared;
    struct engine_teams_view all = {0}, one;
    uint64_t now = clock_ns();

    for (uint32_t i = 0; i < control->worker_count; i++) {
        const struct worker *w = &control->workers[i];

        if (!w->progress)
            continue;
        engine_view_teams(progress_engine(w->progress), now, &one);
        all.teams += one.teams;
        all.broken += one.broken;
        all.calls += one.calls;
        all.bytes += one.bytes;
        all.failed += one.failed;
        all.under_way += one.under_way;
        all.oldest_ns = one.oldest_ns > all.oldest_ns ? one.oldest_ns : all.oldest_ns;
    }
    atomic_store_explicit(&h->teams, all.teams, memory_order_relaxed);
    atomic_store_explicit(&h->teams_broken, all.broken, memory_order_relaxed);
    atomic_store_explicit(&h->collectives, all.calls, memory_order_relaxed);
    atomic_store_explicit(&h->collective_bytes, all.bytes, memory_order_relaxed);
    atomic_store_explicit(&h->collective_errors, all.failed, memory_order_relaxed);
    atomic_store_explicit(&h->collectives_under_way, all.under_way, memory_order_relaxed);
    atomic_store_explicit(&h->collective_oldest_ns, all.oldest_ns, memory_order_relaxed);
}

static void store(_Atomic uint64_t *word, uint64_t value)
{
    atomic_store_explicit(word, value, memory_order_relaxed);
}

static void write_offloads(struct control *control)
{
    struct counters_header *h = control->publisher.counters.shared;
    struct engine_offloads_view all = {0}, one;

    for (uint32_t i = 0; i < control->worker_count; i++) {
        const struct worker *w = &control->workers[i];

        if (!w->progress)
            continue;
        engine_view_offload_sums(progress_engine(w->progress), &one);
        for (size_t word = 0; word < sizeof(all) / sizeof(uint64_t); word++)
            ((uint64_t *)&all)[word] += ((const uint64_t *)&one)[word];
    }
    store(&h->offloads, all.offloads);
    store(&h->offloads_disabled, all.disabled);
    store(&h->handler_runs, all.runs);
    store(&h->handler_units, all.units);
    store(&h->handler_messages, all.messages);
    store(&h->handler_bytes, all.bytes);
    store(&h->handler_dropped, all.dropped);
    store(&h->handler_deferred, all.deferred);
    store(&h->handler_failed, all.failed);
    store(&h->handler_faults, all.faults);
    store(&h->handler_sends, all.sends);
    store(&h->handler_sends_failed, all.sends_failed);
}

void publisher_write(struct control *control)
{
    for (uint32_t i = 0; i < control->worker_count; i++) {
        struct worker *w = &control->workers[i];
        struct counters_totals totals;
        struct counters_source source = {
            .totals = &totals, .clients = w->clients, .pairs = fill_pairs, .context = w};

        if (!w->progress)
            continue;
        source.engine = progress_engine(w->progress);
        (void)atomic_exchange(&w->counters.due, false); /* before the tables are read */
        publisher_worker_totals(w, &totals);
        w->counters.share.engine = i;
        counters_write(&control->publisher.counters, &w->counters.share, &source, clock_ns());
    }
    write_held(control);
    write_longest_step(control);
    write_teams(control);
    write_offloads(control);
}

static void interval_over(uv_timer_t *timer)
{
    struct control *control = timer->data;
    uint64_t began = clock_ns(), ms;

    publisher_write(control);
    ms = (clock_ns() - began) * WRITE_SHARE / 1000000u;
    control->publisher.interval_ms = ms < INTERVAL_MS  ? INTERVAL_MS
                                     : ms > LONGEST_MS ? LONGEST_MS
                                                       : ms;
}

static void nudged(uv_async_t *async)
{
    struct control *control = async->data;

    uv_timer_start(&control->publisher.timer, interval_over, control->publisher.interval_ms, 0);
}

int publisher_open(struct control *control)
{
    struct publisher *p = &control->publisher;
    const struct counters_config config = {
        .path = control->socket.counters,
        .node = control->node,
        .nodes = control->node_count,
        .engines = control->worker_count,
        .sessions_max = control->engine.sessions_max,
        .provider = control->provider,
        .now = control->started_ns,
        .day = control->started_day_ns,
    };
    char why[sizeof(control->socket.counters) + 128];
    int rc = counters_open(&p->counters, &config);

    if (rc < 0) {
        snprintf(why, sizeof(why), "the file of counters \"%s\" cannot be made: %s", config.path,
                 strerror(-rc));
        return control_explain(control, rc, why);
    }
    p->interval_ms = INTERVAL_MS;
    p->nudge.data = p->timer.data = control;
    uv_timer_init(&control->loop, &p->timer);
    return control_explain(control, uv_async_init(&control->loop, &p->nudge, nudged), "");
}

void publisher_close(struct control *control)
{
    struct publisher *p = &control->publisher;

    if (!p->counters.shared)
        return;
    uv_close((uv_handle_t *)&p->timer, NULL);
    uv_close((uv_handle_t *)&p->nudge, NULL);
    counters_close(&p->counters);
}
