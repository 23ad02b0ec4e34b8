/*
 * Atomics: the time of a fetch-and-add on a word of the target, the rate of many of them, and the
 * rate of exclusive ors at random places of a table (GUPS, as in HPCC's RandomAccess).
 *
 *     arrivals of the target   0              64                8 + ..
 *                              | the counter  | the stop word   | ... or the table
 *
 * Fetched values are checked: each is larger than the previous one, and without --contend larger by
 * one. In the end the counter holds the sum of what both sides have added. With --contend the
 * target adds to the counter all the time, by its processor's atomic instruction.
 */
#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <pwc/atomic.h>
#include "tools/pwcperf/measures/measure.h"
#include "tools/pwcperf/pattern.h"
#include "tools/pwcperf/report.h"

#define STOP_AT     64u
#define TABLE_WORDS (UINT64_C(1) << 21) /* 16 MiB: more than caches hold */
#define WINDOW_MAX  4096u

size_t atomic_half(const struct options *options)
{
    return options->test == GUPS ? TABLE_WORDS * 8 : 128;
}

/* ---- the target ------------------------------------------------------------------------------ */

/* Adds until the origin sets the stop word. Returns how often it has added. */
static uint64_t contend(struct pair *pair)
{
    _Atomic uint64_t *counter = (_Atomic uint64_t *)(void *)pair->arrivals;
    const _Atomic uint64_t *stop = (const _Atomic uint64_t *)(void *)(pair->arrivals + STOP_AT);
    uint64_t added = 0;
    while (atomic_load_explicit(stop, memory_order_acquire) == 0) {
        (void)atomic_fetch_add(counter, 1);
        added++;
    }
    return added;
}

/* Waits until the origin has added everything; the event's id says how often. Checks the sum. */
static int check_counter(struct pair *pair)
{
    const _Atomic uint64_t *counter = (const _Atomic uint64_t *)(const void *)pair->arrivals;
    uint64_t added = pair->world->options->contend ? contend(pair) : 0;
    struct pwc_event event;
    int rc = world_wait_end(pair->world, pair->peer, &event);
    if (rc == 0 && atomic_load(counter) != added + event.id)
        rc = world_wrong(pair->world, "the counter is %llu, and should be %llu",
                         (unsigned long long)atomic_load(counter),
                         (unsigned long long)(added + event.id));
    return rc;
}

/* ---- the origin ------------------------------------------------------------------------------ */

/* Submits one atomic on a word; tries again until there is room. */
static int submit(struct pair *pair, uint64_t off, enum pwc_atomic_op op, uint64_t operand,
                  uint64_t *before, uint64_t id, unsigned flags)
{
    uint64_t since = 0;
    int rc;
    do
        rc = before ? pwc_fetch_atomic(pair->remote, off, op, PWC_U64, &operand, 1, before,
                                       pwc_cid_u64(id), pwc_cid_u64(0), PWC_NO_RCE | flags)
                    : pwc_atomic(pair->remote, off, op, PWC_U64, &operand, 1, pwc_cid_u64(id),
                                 pwc_cid_u64(0), PWC_NO_RCE | flags);
    while (rc == -EAGAIN && (rc = world_again(pair->world, &since)) >= 0);
    return rc < 0 ? world_error(pair->world, rc, "an atomic on a word") : 0;
}

/* Compares a value with the one that was fetched before. */
static int check_fetched(struct pair *pair, uint64_t value, uint64_t *last)
{
    bool right =
        pair->world->options->contend ? *last == UINT64_MAX || value > *last : value == *last + 1;
    if (!right)
        return world_wrong(pair->world, "%llu was fetched behind %llu", (unsigned long long)value,
                           (unsigned long long)*last);
    *last = value;
    return 0;
}

/* Makes the target stop, and reports to it how often this side has added. */
static int end_counting(struct pair *pair, uint64_t added)
{
    uint64_t *one = (uint64_t *)(void *)pair->departures;
    int rc = pwc_flush(pair->world->ctx, pair->peer, -1);
    if (rc < 0)
        return world_error(pair->world, rc, "flushing");
    *one = 1;
    rc = pair_put(pair, STOP_AT, 0, 8, 0, 0, PWC_NO_RCE | PWC_NO_LCE);
    return rc == 0 ? world_notify(pair->world, pair->remote, added) : rc;
}

int atomic_fetch_add_one(struct pair *pair, uint64_t id, uint64_t *before)
{
    int rc = submit(pair, 0, PWC_ADD, 1, before, id, 0);
    return rc == 0 ? pair_expect(pair, PWC_LOCAL, id) : rc;
}

/* The target has one step, which lasts until the origin has ended. */
static int fetch_one(struct pair *pair, const struct plan *plan, void *context, uint64_t i,
                     uint64_t *ns)
{
    uint64_t before = 0, start = now_ns(), last = plan->warmup + plan->iters - 1;
    int rc;
    if (!pair->initiates)
        return i == 0 ? check_counter(pair) : 0;
    rc = atomic_fetch_add_one(pair, i, &before);
    *ns = now_ns() - start;
    if (rc == 0)
        rc = check_fetched(pair, before, context);
    return rc == 0 && i == last ? end_counting(pair, last + 1) : rc;
}

/* Both sides first set the counter to 0 and wait for each other. */
static int begin(struct pair *pair, size_t bytes)
{
    int rc;
    memset(pair->arrivals, 0, bytes);
    rc = pwc_barrier(pair->world->ctx);
    return rc < 0 ? world_error(pair->world, rc, "waiting for the other side") : 0;
}

int atomic_latency(struct pair *pair, const struct plan *plan)
{
    uint64_t last = UINT64_MAX;
    int rc = begin(pair, pair->half);
    return rc == 0 ? latency_run(pair, plan, "fetch_lat", 1, fetch_one, &last) : rc;
}

/* ---- streams --------------------------------------------------------------------------------- */

/* Draws places and values by a generator of its own: the second pass draws the same ones. */
static uint64_t draw(uint64_t *state)
{
    *state += UINT64_C(0x9e3779b97f4a7c15);
    return pattern_mix(*state);
}

struct updates {
    struct pair *pair;
    /* At most `window` operations are in flight. One of every `marks` has a local event: a mark. */
    uint64_t window, marks;
    uint64_t next_mark; /* the next operation that asks for an event */
    uint64_t ended;
    /* Places in `before` of the next operation and of operation `ended`. They are counted up,
     * because divisions would be in the measured time. */
    uint64_t slot, ended_slot;
    bool fetch;
    uint64_t state, last;
    uint64_t before[WINDOW_MAX]; /* fetched, by number */
};

static uint64_t next_slot(const struct updates *u, uint64_t slot)
{
    return slot + 1 < u->window ? slot + 1 : 0;
}

/* Takes the event of the next mark, which says that all operations up to the mark have ended. */
static int take_mark(struct updates *u)
{
    uint64_t end = u->ended + u->marks;
    int rc = pair_expect(u->pair, PWC_LOCAL, end - 1);
    for (; rc == 0 && u->fetch && u->ended < end; u->ended++) {
        rc = check_fetched(u->pair, u->before[u->ended_slot], &u->last);
        u->ended_slot = next_slot(u, u->ended_slot);
    }
    u->ended = end;
    return rc;
}

static int update_one(struct updates *u, uint64_t i)
{
    unsigned flags = i == u->next_mark ? 0u : PWC_NO_LCE;
    uint64_t slot = u->slot, value;
    if (i == u->next_mark)
        u->next_mark += u->marks;
    if (u->fetch) {
        u->slot = next_slot(u, slot);
        return submit(u->pair, 0, PWC_ADD, 1, &u->before[slot], i, flags);
    }
    value = draw(&u->state);
    return submit(u->pair, value % TABLE_WORDS * 8, PWC_XOR, value, NULL, i, flags);
}

/* Submits the operations from `first` to `last`, and waits for their ends. */
static int update(struct updates *u, uint64_t first, uint64_t last)
{
    int rc = 0;
    for (uint64_t i = first; rc == 0 && i < last; i++) {
        while (rc == 0 && i - u->ended >= u->window)
            rc = take_mark(u);
        if (rc == 0)
            rc = update_one(u, i);
    }
    while (rc == 0 && u->ended < last)
        rc = take_mark(u);
    return rc;
}

static int stream(struct pair *pair, const struct plan *plan, bool fetch, uint64_t *total,
                  struct result *result)
{
    uint64_t window = options_window(pair->world->options, plan->size), start;
    struct updates u = {.pair = pair, .window = window, .fetch = fetch, .last = UINT64_MAX};
    int rc;
    u.marks = window >= 8 ? window / 4 : 1;
    u.next_mark = u.marks - 1;
    uint64_t warmup = measure_rounded(plan->warmup, u.marks),
             count = measure_rounded(plan->iters, u.marks);
    *total = warmup + count;
    rc = update(&u, 0, warmup);
    start = now_ns();
    if (rc == 0)
        rc = update(&u, warmup, *total);
    result->rate_mps = (double)count * 1000 / (double)(now_ns() - start);
    result->mean_us = 1 / result->rate_mps;
    return rc;
}

int atomic_fetch_rate(struct pair *pair, const struct plan *plan)
{
    struct result result = {.size = plan->size, .iters = plan->iters};
    uint64_t total;
    int rc = begin(pair, pair->half);
    if (rc == 0 && pair->initiates)
        rc = stream(pair, plan, true, &total, &result);
    if (rc == 0)
        rc = pair->initiates ? end_counting(pair, total) : check_counter(pair);
    return rc < 0 ? rc : report_result(pair->world, pair->initiates ? &result : NULL);
}

/* A second pass with the same values at the same places must have given zeros. */
static int check_table(struct pair *pair)
{
    const uint64_t *table = (const uint64_t *)(const void *)pair->arrivals;
    int rc = pair_expect_end(pair, TABLE_WORDS);
    for (uint64_t i = 0; rc == 0 && i < TABLE_WORDS; i++)
        if (table[i] != 0)
            rc = world_wrong(pair->world, "word %llu is not what it was", (unsigned long long)i);
    return rc;
}

int atomic_gups(struct pair *pair, const struct plan *plan)
{
    struct result result = {.size = plan->size, .iters = plan->iters}, again;
    uint64_t total;
    int rc = begin(pair, pair->half);
    if (rc == 0 && pair->initiates) {
        rc = stream(pair, plan, false, &total, &result);
        if (rc == 0)
            rc = stream(pair, plan, false, &total, &again);
        if (rc == 0)
            rc = world_notify(pair->world, pair->remote, TABLE_WORDS);
    } else if (rc == 0) {
        rc = check_table(pair);
    }
    return rc < 0 ? rc : report_result(pair->world, pair->initiates ? &result : NULL);
}
