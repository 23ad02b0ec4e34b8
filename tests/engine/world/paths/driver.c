/* Drives operations over a path and the model (driver.h). Thread: one. */
#include "tests/engine/world/paths/driver.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "daemon/fabric/sim/sim_random.h"
#include "tests/count.h"
#include "tests/engine/world/model/model_counts.h"

#define ROUNDS_MAX 2000000u

void driver_fail(struct driver *s, const char *format, ...)
{
    va_list args;

    if (s->failed)
        return;
    s->failed = true;
    va_start(args, format);
    vsnprintf(s->failure, sizeof s->failure, format, args);
    va_end(args);
}

uint64_t driver_random(struct driver *s, uint64_t limit)
{
    struct sim_random r = {s->random};
    uint64_t value = sim_random_below(&r, limit);

    s->random = r.state;
    return value;
}

/* ---- driving --------------------------------------------------------------------------------- */

uint32_t driver_probe(struct driver *s)
{
    struct pwc_event event;
    uint32_t count = 0;

    for (uint32_t end = 0; end < s->path->ends && !s->failed; end++) {
        bool idle;
        int rc = 0;

        if (s->silent >> end & 1 || s->model.ends[end].dead)
            continue;
        /* An end that is idle has all its events there, so the probes below take all of them. */
        idle = s->path->calls->idle(s->path->context, end);
        while ((rc = s->path->calls->probe(s->path->context, end, &event)) == 1) {
            count++;
            if (!model_event(&s->model, end, &event))
                driver_fail(s, "%s", s->model.failure);
        }
        if (rc < 0)
            driver_fail(s, "probe at end %u: %s", end, strerror(-rc));
        if (model_flushing(&s->model, end) &&
            !model_flushed(&s->model, end, s->path->calls->flushed(s->path->context, end)))
            driver_fail(s, "%s", s->model.failure);
        if (idle && !s->failed && !model_idle(&s->model, end))
            driver_fail(s, "%s", s->model.failure);
    }
    if (!model_signals_look(&s->model))
        driver_fail(s, "%s", s->model.failure);
    return count;
}

bool driver_turn(struct driver *s)
{
    bool more = s->path->calls->progress(s->path->context);
    uint32_t events = driver_probe(s);

    if (s->path->calls->failure(s->path->context))
        driver_fail(s, "%s", s->path->calls->failure(s->path->context));
    return !s->failed && (more || events);
}

void driver_finish_one(struct driver *s, uint32_t number)
{
    uint32_t rounds = 0;

    while (!s->failed && model_busy(&s->model, number))
        if (!driver_turn(s) || ++rounds > ROUNDS_MAX) {
            driver_probe(s);
            if (model_busy(&s->model, number))
                driver_fail(s, "operation %u (%u->%u flags %x) is stuck after %u rounds", number,
                            s->model.ops[number].from, s->model.ops[number].to,
                            s->model.ops[number].flags, rounds);
        }
}

/* Checks the counts of all ends; nothing moves any more. */
static void check_counts(struct driver *s)
{
    for (uint32_t end = 0; end < s->path->ends && !s->failed; end++) {
        struct path_counts counts;
        char wrong[300];

        if (!s->model.ends[end].dead && s->path->calls->counts(s->path->context, end, &counts) &&
            model_counts_check(&s->model, end, &counts, wrong))
            driver_fail(s, "%s", wrong);
    }
}

void driver_finish(struct driver *s)
{
    for (uint32_t i = 0; i < s->model.op_count; i++)
        driver_finish_one(s, i);
    for (uint32_t i = 0; i < 64 && driver_turn(s); i++)
        ; /* one event too many would come now */
    if (!s->failed && !model_check(&s->model))
        driver_fail(s, "%s", s->model.failure);
    if (s->silent == 0)
        check_counts(s);
}

uint64_t driver_flush(struct driver *s, uint32_t from, uint32_t to)
{
    uint32_t remote = driver_remote(s, from, to), rounds = 0;
    uint64_t number;
    int rc;

    driver_finish_flush(s, from); /* an end reports only the highest flush that has ended */
    number = model_flush(&s->model, from, to);

    while (!s->failed &&
           (rc = s->path->calls->flush(s->path->context, from, remote, number)) != 0) {
        if (rc != -EAGAIN)
            driver_fail(s, "flush %u->%u: %s", from, to, strerror(-rc));
        else if (!driver_turn(s) || ++rounds > ROUNDS_MAX)
            driver_fail(s, "flush %u->%u: no room after %u rounds", from, to, rounds);
    }
    return number;
}

bool driver_flushed(struct driver *s, uint32_t from, uint64_t number)
{
    return s->path->calls->flushed(s->path->context, from) >= number;
}

void driver_finish_flush(struct driver *s, uint32_t from)
{
    uint32_t rounds = 0;

    while (!s->failed && model_flushing(&s->model, from))
        if (!driver_turn(s) || ++rounds > ROUNDS_MAX) {
            driver_probe(s);
            if (model_flushing(&s->model, from))
                driver_fail(s, "a flush of end %u does not end", from);
        }
}

uint32_t driver_bind(struct driver *s, uint32_t from, uint32_t to)
{
    s->remotes[from][to].bound = false;
    return driver_remote(s, from, to);
}

void driver_unbind(struct driver *s, uint32_t from, uint32_t to)
{
    int rc = s->path->calls->unbind(s->path->context, from, s->remotes[from][to].handle);

    if (rc != 0)
        driver_fail(s, "unbind %u->%u: %s", from, to, strerror(-rc));
    s->remotes[from][to].bound = false;
}

uint32_t driver_remote(struct driver *s, uint32_t from, uint32_t to)
{
    struct pwc_key key;
    int rc;

    if (s->remotes[from][to].bound || s->failed)
        return s->remotes[from][to].handle;
    rc = s->path->calls->key(s->path->context, to, PWC_REMOTE_READ | PWC_REMOTE_WRITE, &key);
    if (rc == 0)
        rc = s->path->calls->bind(s->path->context, from, to, &key, &s->remotes[from][to].handle);
    if (rc != 0)
        driver_fail(s, "bind %u->%u: %s", from, to, strerror(-rc));
    s->remotes[from][to].bound = true;
    return s->remotes[from][to].handle;
}

uint64_t driver_range(struct driver *s, uint32_t end, bool own, uint64_t length)
{
    uint64_t half = s->model.ends[end].length / 2;
    uint64_t room = own ? half - PATH_WORDS_BYTES : half;
    uint64_t *next = own ? &s->local_next[end] : &s->remote_next[end];

    if (length > room) {
        driver_fail(s, "a range of %llu bytes does not fit", (unsigned long long)length);
        return 0;
    }
    if (*next + length > room) {
        for (uint32_t i = 0; i < s->model.op_count; i++)
            if (!(s->silent >> s->model.ops[i].to & 1))
                driver_finish_one(s, i);
        *next = 0;
    }
    *next += length;
    return (own ? half : 0) + *next - length;
}

uint32_t driver_submit_over(struct driver *s, uint32_t remote, const struct model_op *op)
{
    uint8_t lid[MODEL_ID_MAX], rid[MODEL_ID_MAX];
    uint32_t number = model_submit(&s->model, op), rounds = 0;
    struct path_op p = {
        .kind = op->kind,
        .from = op->from,
        .remote = remote,
        .flags = op->flags,
        .remote_offset = op->remote_offset,
        .local_offset = op->local_offset,
        .length = op->length,
        .fetch = op->fetch,
        .pieces = op->pieces,
        .lid = model_lid(&s->model, number, lid),
        .rid = model_rid(&s->model, number, rid),
        .signal = model_signal(&s->model, number),
    };
    int rc;

    while (!s->failed && (rc = s->path->calls->submit(s->path->context, &p)) != 0) {
        if (rc != -EAGAIN)
            driver_fail(s, "submit %u->%u: %s", op->from, op->to, strerror(-rc));
        else if (!driver_turn(s) || ++rounds > ROUNDS_MAX)
            driver_fail(s, "submit %u->%u: no room after %u rounds", op->from, op->to, rounds);
    }
    model_accepted(&s->model, number);
    return number;
}

uint32_t driver_submit(struct driver *s, struct model_op op)
{
    if (op.length) {
        op.remote_offset = driver_range(s, op.to, false, op.length);
        op.local_offset = driver_range(s, op.from, true, op.length);
    }
    if (s->failed)
        return 0;
    if (op.length && op.kind != PATH_GET)
        model_fill(&s->model, op.from, op.local_offset, op.length, driver_random(s, 256));
    return driver_submit_over(s, driver_remote(s, op.from, op.to), &op);
}

struct model_op driver_random_op(struct driver *s, uint32_t from, uint32_t to)
{
    static const uint32_t id_lengths[] = {0, 0, 0, 1, 7, 8, 9, 255, 1024};
    static const unsigned flags[] = {0,
                                     0,
                                     0,
                                     0,
                                     PWC_NOTIFY,
                                     PWC_NOTIFY | PWC_NO_LCE,
                                     PWC_NO_LCE,
                                     PWC_NO_RCE,
                                     PWC_FENCE,
                                     PWC_LCE_SOURCE,
                                     PWC_UNORDERED};
    static const enum path_kind kinds[] = {PATH_PUT, PATH_PUT, PATH_GET, PATH_SIGNAL};
    uint64_t packed = s->path->packed_max;
    const uint64_t limits[] = {1, 64, packed + 1, 2 * packed, 4 * packed};

    struct model_op op = {
        .from = from,
        .to = to,
        .kind = kinds[driver_random(s, COUNT(kinds))],
        .flags = flags[driver_random(s, COUNT(flags))],
        .length = driver_random(s, limits[driver_random(s, COUNT(limits))]),
        .lid_len = id_lengths[driver_random(s, COUNT(id_lengths))],
        .rid_len = id_lengths[driver_random(s, COUNT(id_lengths))],
        .pieces = driver_random(s, 3) ? 0 : 2 + (uint32_t)driver_random(s, 8),
    };

    op.lid_len = op.lid_len > s->id_max ? s->id_max : op.lid_len;
    op.rid_len = op.rid_len > s->id_max ? s->id_max : op.rid_len;
    if (op.flags & PWC_NOTIFY)
        op.rid_len = 0;
    /* A put with a signal has no remote event. So it must not have PWC_LCE_SOURCE: nothing would
     * say when its payload has been placed, and other operations use the place later. */
    if (op.kind == PATH_SIGNAL) {
        op.flags &= PWC_NO_LCE | PWC_FENCE | PWC_UNORDERED;
        op.pieces = 0;
        op.shaken = s->dies;
    }
    return op;
}

int driver_open(struct driver *s, const struct path *path, uint64_t seed)
{
    int rc;

    memset(s, 0, sizeof *s);
    s->path = path;
    s->random = seed;
    s->id_max = MODEL_ID_MAX;
    for (uint32_t end = 0; end < path->ends; end++) {
        uint64_t length;
        uint8_t *memory = path->calls->memory(path->context, end, &length);

        for (uint64_t i = 0; i < length; i++)
            memory[i] = (uint8_t)(i * 13 + (i >> 8) + end);
    }
    rc = model_open(&s->model, path);
    for (uint32_t end = 0; rc == 0 && end < path->ends; end++) {
        struct path_counts counts;

        if (path->calls->counts(path->context, end, &counts))
            model_counts_begin(&s->model, end, &counts);
    }
    return rc;
}

void driver_close(struct driver *s)
{
    model_close(&s->model);
}
