/*
 * A flood of requests without reply, one way or both.
 *
 * As for puts, only one of every few messages asks for a local event (these are the marks), which
 * bounds how many are in flight. The clock starts when the messages of the warm-up, which is
 * rounded up to whole marks, have ended. The clock stops when the target reports that it has
 * handled the last message. A side that waits always takes events meanwhile, so that both ways
 * drain.
 *
 * With --check each message of a window has a slot of its own, and the next window waits until the
 * target reports that it has handled this window.
 */
#include <errno.h>
#include <pwc/am.h>
#include "tools/pwcperf/measures/measure.h"
#include "tools/pwcperf/message.h"
#include "tools/pwcperf/report.h"

#define HANDLED UINT64_C(0x8000000000000000) /* the target's report, together with a count */
#define KINDS   (PWC_LOCAL | PWC_REMOTE | PWC_MESSAGE)

/* One side of a flood. */
struct flood {
    struct messages messages;
    struct pair *pair;
    const struct plan *plan;
    bool check;
    uint64_t window;
    uint64_t marks;
    uint64_t warmup; /* whole marks */
    uint64_t to_send, to_handle;
    uint64_t ended;           /* messages whose local event, or a later mark's, has come */
    uint64_t reported;        /* handled messages that we have reported */
    uint64_t confirmed;       /* messages that the other side has reported */
    uint64_t since;           /* when room was first missing (world_again) */
    uint64_t posted_ns[4096]; /* of marks, by window */
};

/* How many messages may be reported now: all that are handled, or with --check whole windows. */
static uint64_t to_report(const struct flood *f)
{
    uint64_t handled = f->messages.handled;
    if (handled == f->to_handle)
        return handled;
    return f->check ? handled - handled % f->window : 0;
}

/* Sends the report that is due. Without room, the next step tries again. */
static int report(struct flood *f)
{
    uint64_t count = to_report(f);
    if (count <= f->reported)
        return 0;
    int rc = pwc_put(f->pair->remote, 0, NULL, 0, pwc_cid_u64(0), pwc_cid_u64(HANDLED | count),
                     PWC_NO_LCE);
    if (rc == -EAGAIN)
        return 0;
    f->reported = count;
    return rc < 0 ? world_error(f->pair->world, rc, "notifying a peer") : 0;
}

static int take(struct flood *f, const struct pwc_event *event)
{
    if (event->kind == PWC_MESSAGE) /* the handler has handled it */
        return f->messages.rc;
    if (event->kind == PWC_REMOTE && (event->id & HANDLED) != 0) {
        f->confirmed = event->id & ~HANDLED;
        return 0;
    }
    uint64_t mark = f->ended + f->marks - 1;
    if (event->kind != PWC_LOCAL || event->id != mark)
        return world_wrong(f->pair->world, "event %llu came where mark %llu was due",
                           (unsigned long long)event->id, (unsigned long long)mark);
    if (mark >= f->warmup)
        samples_add(f->pair->samples, now_ns() - f->posted_ns[mark % f->window]);
    f->ended = mark + 1;
    return 0;
}

/* Takes an event, if there is one, and reports what is due. */
static int poll_once(struct flood *f)
{
    struct world *world = f->pair->world;
    struct pwc_event event;
    int rc = pwc_probe(world->ctx, f->pair->peer, KINDS, &event);
    if (rc == 0) {
        rc = world_again(world, &f->since);
    } else {
        f->since = 0;
        if (rc == 1)
            rc = event.status;
        rc = rc < 0 ? world_error(world, rc, "probing") : take(f, &event);
    }
    return rc < 0 ? rc : report(f);
}

/* As poll_once, but waits for an event if no report is due. */
static int step(struct flood *f)
{
    struct pwc_event event;
    if (to_report(f) > f->reported)
        return poll_once(f);
    int rc = world_wait(f->pair->world, f->pair->peer, KINDS, &event);
    if (rc == 0)
        rc = take(f, &event);
    return rc < 0 ? rc : report(f);
}

static int send_one(struct flood *f, uint64_t i)
{
    bool mark = (i + 1) % f->marks == 0;
    int rc = 0;
    while (rc == 0 && (i - f->ended >= f->window || (f->check && i >= f->confirmed + f->window)))
        rc = step(f);
    if (rc < 0)
        return rc;
    if (f->check)
        messages_fill(&f->messages, i);
    if (mark)
        f->posted_ns[i % f->window] = now_ns();
    while ((rc = messages_send(&f->messages, i, i, PWC_AM_NO_REPLY | (mark ? 0 : PWC_NO_LCE))) ==
           -EAGAIN) {
        rc = poll_once(f);
        if (rc < 0)
            return rc;
    }
    f->since = 0;
    return rc < 0 ? world_error(f->pair->world, rc, "sending %llu bytes",
                                (unsigned long long)f->plan->size)
                  : 0;
}

/* Whether the messages of both ways are handled, and both sides have reported this. */
static bool is_over(const struct flood *f)
{
    return f->confirmed == f->to_send && f->ended + f->marks > f->to_send &&
           f->messages.handled == f->to_handle && f->reported == f->to_handle;
}

static int drive(struct flood *f, uint64_t *started)
{
    struct progress progress;
    int rc = 0;
    progress_start(&progress, f->pair->world, "am_bw", f->to_send);
    for (uint64_t i = 0; rc == 0 && i < f->to_send; i++) {
        while (rc == 0 && i == f->warmup && f->ended < i)
            rc = step(f);
        if (i == f->warmup)
            *started = now_ns();
        if (rc == 0)
            rc = send_one(f, i);
        progress_at(&progress, i);
    }
    while (rc == 0 && !is_over(f))
        rc = step(f);
    progress_end(&progress);
    return rc;
}

static void summarize(const struct flood *f, uint64_t elapsed_ns, struct result *result)
{
    double ways = f->to_handle > 0 ? 2 : 1, seconds = (double)elapsed_ns / 1e9;
    *result = (struct result){.size = f->plan->size, .iters = f->plan->iters};
    samples_summary(f->pair->samples, 1, result);
    result->rate_mps = ways * (double)f->plan->iters / seconds / 1e6;
    result->bw_mbps = result->rate_mps * (double)f->plan->size;
}

int am_stream(struct pair *pair, const struct plan *plan)
{
    const struct options *options = pair->world->options;
    uint64_t started = 0;
    struct result result;
    struct flood flood = {.pair = pair, .plan = plan, .check = options->check};
    int rc = messages_open(&flood.messages, pair, plan->size, stream_slots(options, plan->size));
    flood.window = options->check ? flood.messages.slots : options_window(options, plan->size);
    flood.marks = flood.window >= 8 ? flood.window / 4 : 1;
    flood.warmup = measure_rounded(plan->warmup, flood.marks);
    uint64_t total = flood.warmup + plan->iters;
    flood.to_send = pair->initiates || options->both ? total : 0;
    flood.to_handle = !pair->initiates || options->both ? total : 0;
    if (rc == 0)
        rc = drive(&flood, &started);
    if (rc == 0 && pair->initiates)
        summarize(&flood, now_ns() - started, &result);
    return rc < 0 ? rc : report_result(pair->world, pair->initiates ? &result : NULL);
}
