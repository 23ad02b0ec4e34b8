/* Owns when counters are written (publisher.h). */
#include "daemon/control/watch/publisher.h"

#include <stdio.h>
#include <string.h>
#include "daemon/control/threads/clock.h"
#include "daemon/control/fatal.h"

#define INTERVAL_NS UINT64_C(100000000)
#define INTERVAL_MS 100u

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

void publisher_count(void *context, struct engine *engine)
{
    struct worker *w = context;
    struct worker_counters *c = &w->counters;
    struct counters_totals totals;
    uint64_t now = clock_ns();

    publisher_worker_totals(w, &totals);
    c->share.engine = w->engine;
    counters_write(&w->control->publisher.counters, &c->share, engine, now, &totals);
    c->written_ns = now;
    c->written_work = totals.work;
    atomic_store_explicit(&c->due, false, memory_order_relaxed);
}

/* Called before each sleep too: what is too early now is written when the timer has run out. */
void publisher_observe(void *context, struct engine *engine)
{
    struct worker *w = context;
    struct worker_counters *c = &w->counters;
    const struct progress *progress = atomic_load_explicit(&c->progress, memory_order_acquire);
    struct progress_stats stats = {0};

    if (progress)
        progress_stats(progress, &stats);
    if (stats.work == c->written_work)
        return;
    if (clock_ns() - c->written_ns >= INTERVAL_NS)
        publisher_count(w, engine);
    else if (!atomic_exchange_explicit(&c->due, true, memory_order_relaxed))
        uv_async_send(&w->control->publisher.nudge);
}

static void interval_over(uv_timer_t *timer)
{
    struct control *control = timer->data;

    for (uint32_t i = 0; i < control->worker_count; i++) {
        struct worker *w = &control->workers[i];
        struct call *call = NULL;

        if (atomic_load_explicit(&w->counters.due, memory_order_relaxed))
            call = call_new(&w->target, CALL_COUNT, control, NULL);
        if (call)
            call_post(w->progress, call);
    }
}

static void nudged(uv_async_t *async)
{
    struct control *control = async->data;

    uv_timer_start(&control->publisher.timer, interval_over, INTERVAL_MS, 0);
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
    };
    char why[sizeof(control->socket.counters) + 128];
    int rc = counters_open(&p->counters, &config);

    if (rc < 0) {
        snprintf(why, sizeof(why), "the file of counters \"%s\" cannot be made: %s", config.path,
                 strerror(-rc));
        return control_explain(control, rc, why);
    }
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
