/*
 * Bandwidth and rate: many operations in flight.
 *
 * Only one of every few puts asks for a local event (these are the marks), which bounds how many
 * are in flight: local events come in order, so a mark shows that all puts before it have ended.
 * The clock starts when all puts of the warm-up have ended, and stops when the target reports that
 * it has drained the last remote event. Remote events carry the number of the put, which must be
 * the next one.
 *
 * With --check each put of a window has a slot of its own, and the next window waits until the
 * target has compared this one; so the figures are then those of a stream with pauses.
 *
 * With --no-event the target does not notice a put: the initiator waits until all have been placed,
 * and notifies the target, which then compares and answers as above.
 */
#include <errno.h>
#include <string.h>
#include "tools/pwcperf/measures/measure.h"
#include "tools/pwcperf/pattern.h"
#include "tools/pwcperf/report.h"

#define SLOTS_BYTES (UINT64_C(64) << 20) /* memory for slots; fewer of them for larger sizes */

/* Ids that one side sends to the other; their top bits distinguish them from numbers of puts. */
#define COMPARED UINT64_C(0x8000000000000000)
#define PLACED   UINT64_C(0x4000000000000000)
#define GOT      UINT64_C(0x2000000000000000)

/* A stream, as the initiator drives it. */
struct stream {
    struct pair *pair;
    const struct plan *plan;
    uint64_t window; /* operations in flight */
    uint64_t slots;
    uint64_t slot;      /* of the next put; counted up: divisions took a seventh of the time */
    uint64_t marks;     /* one of so many operations asks for a local event */
    uint64_t next_mark; /* the next operation that asks for one */
    uint64_t ended;     /* operations known to have ended */
    uint64_t posted_ns[4096]; /* of marks, by window */
};

uint64_t stream_slots(const struct options *options, uint64_t size)
{
    uint64_t most = options_window(options, size);
    uint64_t slots = size > 0 ? SLOTS_BYTES / size : most;
    if (options->slots > 0 && options->slots < most)
        most = options->slots;
    else if (options->slots == 0 && !options->check && options->test != AM_BW)
        most = 1; /* one buffer, as other benchmarks have */
    if (slots > most)
        slots = most;
    return slots > 0 ? slots : 1;
}

size_t stream_half(const struct options *options, uint64_t size)
{
    return stream_slots(options, size) * size;
}

static uint64_t put_seed(const struct plan *plan, uint64_t number)
{
    return pattern_mix(pattern_mix(plan->size) + number);
}

static void stream_open(struct stream *s, struct pair *pair, const struct plan *plan)
{
    const struct options *options = pair->world->options;
    *s = (struct stream){.pair = pair, .plan = plan, .slots = stream_slots(options, plan->size)};
    s->window = options->check ? s->slots : options_window(options, plan->size);
    s->marks = s->window >= 8 ? s->window / 4 : 1;
    s->next_mark = s->marks - 1;
}

/* Takes the event of the next mark. */
static int take_mark(struct stream *s)
{
    uint64_t mark = s->ended + s->marks - 1;
    int rc = pair_expect(s->pair, PWC_LOCAL, mark);
    if (rc == 0 && mark >= s->plan->warmup)
        samples_add(s->pair->samples, now_ns() - s->posted_ns[mark % s->window]);
    s->ended = mark + 1;
    return rc;
}

/* Makes room for operation i: at most a window is in flight. */
static int make_room(struct stream *s, uint64_t i)
{
    int rc = 0;
    while (rc == 0 && i - s->ended >= s->window)
        rc = take_mark(s);
    return rc;
}

/* Takes the events of all marks up to `total`. */
static int take_all_marks(struct stream *s, uint64_t total)
{
    int rc = 0;
    while (rc == 0 && s->ended + s->marks <= total)
        rc = take_mark(s);
    return rc;
}

/* Waits until all puts before `end`, which is the next one, have ended. */
static int await_ended(struct stream *s, uint64_t end)
{
    struct world *world = s->pair->world;
    int rc = take_all_marks(s, end);
    if (rc == 0 && (rc = pwc_flush(world->ctx, s->pair->peer, -1)) < 0)
        rc = world_error(world, rc, "flushing");
    return rc;
}

/* Waits until the target has compared all puts before `end`. */
static int await_compared(struct stream *s, uint64_t end)
{
    struct world *world = s->pair->world;
    int rc = 0;
    if (world->options->no_event) {
        rc = await_ended(s, end);
        if (rc == 0)
            rc = world_notify(world, s->pair->remote, PLACED | end);
    }
    return rc < 0 ? rc : pair_expect(s->pair, PWC_REMOTE, COMPARED | end);
}

/* Begins the measured puts with `first`: no put is in flight, and the marks count from here. */
static int begin_measured(struct stream *s, uint64_t first)
{
    int rc = await_ended(s, first);
    s->ended = first;
    s->next_mark = first + s->marks - 1;
    return rc;
}

static int put_one(struct stream *s, uint64_t i)
{
    const struct options *options = s->pair->world->options;
    size_t size = s->plan->size, slot = s->slot * size;
    unsigned flags = options->no_event ? PWC_NO_RCE : 0u;
    int rc = make_room(s, i);
    if (rc == 0 && options->check) {
        if (i > 0 && i % s->window == 0) /* the target has compared the last window */
            rc = await_compared(s, i);
        pattern_fill(s->pair->departures + slot, size, put_seed(s->plan, i), 0);
    }
    if (rc < 0)
        return rc;
    if (++s->slot == s->slots)
        s->slot = 0;
    if (i == s->next_mark) {
        s->next_mark += s->marks;
        s->posted_ns[i % s->window] = now_ns();
    } else {
        flags |= PWC_NO_LCE;
    }
    return pair_put(s->pair, slot, slot, size, i, i, flags);
}

static int drive_puts(struct stream *s, uint64_t total, uint64_t *started)
{
    struct progress progress;
    int rc = 0;
    progress_start(&progress, s->pair->world, "puts", total);
    for (uint64_t i = 0; rc == 0 && i < total; i++) {
        if (i == s->plan->warmup) {
            rc = begin_measured(s, i);
            *started = now_ns();
        }
        if (rc == 0)
            rc = put_one(s, i);
        progress_at(&progress, i);
    }
    if (rc == 0)
        rc = take_all_marks(s, total);
    if (rc == 0)
        rc = await_compared(s, total);
    progress_end(&progress);
    return rc;
}

static int drain_events(struct stream *s, uint64_t total)
{
    struct pair *pair = s->pair;
    bool check = pair->world->options->check;
    size_t size = s->plan->size;
    int rc = 0;
    for (uint64_t i = 0; rc == 0 && i < total; i++) {
        rc = pair_expect(pair, PWC_REMOTE, i);
        if (rc == 0 && check)
            rc = pair_check(pair, i % s->slots * size, size, put_seed(s->plan, i), 0, i);
        if (rc == 0 && (i + 1 == total || (check && (i + 1) % s->window == 0)))
            rc = world_notify(pair->world, pair->remote, COMPARED | (i + 1));
    }
    return rc;
}

/* The target's side with --no-event: with --check compares window by window, else all at once. */
static int drain_placed(struct stream *s, uint64_t total)
{
    struct pair *pair = s->pair;
    bool check = pair->world->options->check;
    size_t size = s->plan->size;
    uint64_t i = 0;
    int rc = 0;
    while (rc == 0 && i < total) {
        uint64_t end = check && total - i > s->window ? i + s->window : total;
        rc = pair_expect_end(pair, PLACED | end);
        for (; rc == 0 && check && i < end; i++)
            rc = pair_check(pair, i % s->slots * size, size, put_seed(s->plan, i), 0, i);
        if (rc == 0)
            rc = world_notify(pair->world, pair->remote, COMPARED | end);
        i = end;
    }
    return rc;
}

static int drain_puts(struct stream *s, uint64_t total)
{
    return s->pair->world->options->no_event ? drain_placed(s, total) : drain_events(s, total);
}

static void summarize(const struct stream *s, uint64_t elapsed_ns, struct result *result)
{
    *result = (struct result){.size = s->plan->size, .iters = s->plan->iters};
    samples_summary(s->pair->samples, 1, result);
    double seconds = (double)elapsed_ns / 1e9;
    result->rate_mps = (double)s->plan->iters / seconds / 1e6;
    result->bw_mbps = (double)s->plan->iters * (double)s->plan->size / seconds / 1e6;
}

int stream_put(struct pair *pair, const struct plan *plan)
{
    struct stream stream;
    struct result result;
    uint64_t total = plan->warmup + plan->iters, started = 0;
    stream_open(&stream, pair, plan);
    int rc = pair->initiates ? drive_puts(&stream, total, &started) : drain_puts(&stream, total);
    if (rc == 0 && pair->initiates)
        summarize(&stream, now_ns() - started, &result);
    return rc < 0 ? rc : report_result(pair->world, pair->initiates ? &result : NULL);
}

/* ---- gets: each has a local event, which is waited for --------------------------------------- */

static int take_get(struct stream *s)
{
    size_t size = s->plan->size;
    uint64_t i = s->ended;
    int rc = pair_expect(s->pair, PWC_LOCAL, i);
    if (rc == 0 && i >= s->plan->warmup)
        samples_add(s->pair->samples, now_ns() - s->posted_ns[i % s->window]);
    if (rc == 0 && s->pair->world->options->check)
        rc = pair_check(s->pair, i % s->slots * size, size, put_seed(s->plan, i % s->slots), 0, i);
    s->ended++;
    return rc;
}

/* Takes the events of all gets before `end`. */
static int take_gets(struct stream *s, uint64_t end)
{
    int rc = 0;
    while (rc == 0 && s->ended < end)
        rc = take_get(s);
    return rc;
}

static int drive_gets(struct stream *s, uint64_t total, uint64_t *started)
{
    struct progress progress;
    size_t size = s->plan->size;
    int rc = 0;
    progress_start(&progress, s->pair->world, "gets", total);
    for (uint64_t i = 0; rc == 0 && i < total; i++) {
        if (i == s->plan->warmup) {
            rc = take_gets(s, i);
            *started = now_ns();
        }
        if (rc == 0 && i - s->ended >= s->window)
            rc = take_get(s);
        s->posted_ns[i % s->window] = now_ns();
        size_t slot = i % s->slots * size;
        if (rc == 0 && s->pair->world->options->check)
            memset(s->pair->arrivals + slot, 0, size); /* old bytes must not pass */
        if (rc == 0)
            rc = pair_get(s->pair, slot, slot, size, i);
        progress_at(&progress, i);
    }
    if (rc == 0)
        rc = take_gets(s, total);
    progress_end(&progress);
    return rc;
}

int stream_get(struct pair *pair, const struct plan *plan)
{
    struct stream stream;
    struct result result;
    uint64_t total = plan->warmup + plan->iters, started = 0;
    stream_open(&stream, pair, plan);
    stream.marks = 1;
    for (uint64_t i = 0; !pair->initiates && i < stream.slots; i++)
        pattern_fill(pair->arrivals + i * plan->size, plan->size, put_seed(plan, i), 0);
    int rc = pwc_barrier(pair->world->ctx);
    if (rc < 0)
        return world_error(pair->world, rc, "waiting for all ranks");
    if (pair->initiates) {
        rc = drive_gets(&stream, total, &started);
        if (rc == 0)
            summarize(&stream, now_ns() - started, &result);
        if (rc == 0)
            rc = world_notify(pair->world, pair->remote, GOT);
    } else {
        rc = pair_expect_end(pair, GOT);
    }
    return rc < 0 ? rc : report_result(pair->world, pair->initiates ? &result : NULL);
}
