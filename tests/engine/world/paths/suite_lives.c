/* The suite about lives (suite_lives.h). Thread: one. */
#include "tests/engine/world/paths/suite_lives.h"
#include "tests/count.h"

#include <errno.h>
#include <string.h>

#define ROUNDS_MAX 2000000u

static void submit_some(struct driver *s, uint32_t from, uint32_t to, int count)
{
    for (int i = 0; i < count; i++)
        driver_submit(s, driver_random_op(s, from, to));
}

static void turns(struct driver *s, uint64_t count)
{
    while (count-- > 0 && driver_turn(s))
        ;
}

/* Waits until every operation of clients that live has ended; silent ends stay silent. */
static void finish_all(struct driver *s)
{
    for (uint32_t i = 0; i < s->model.op_count; i++)
        driver_finish_one(s, i);
}

/* Submits a notification, and lets no time pass. Returns 0, or why it is not accepted now. */
static int notify(struct driver *s, uint32_t from, uint32_t to, uint32_t rid_len)
{
    struct model_op op = {
        .from = from, .to = to, .kind = PATH_PUT, .flags = PWC_NO_LCE, .rid_len = rid_len};
    uint8_t lid[MODEL_ID_MAX], rid[MODEL_ID_MAX];
    uint32_t remote = driver_remote(s, from, to), number = model_submit(&s->model, &op);
    struct path_op p = {.kind = PATH_PUT,
                        .from = from,
                        .remote = remote,
                        .flags = op.flags,
                        .lid = model_lid(&s->model, number, lid),
                        .rid = model_rid(&s->model, number, rid)};
    int rc = s->path->calls->submit(s->path->context, &p);

    if (rc == 0)
        model_accepted(&s->model, number);
    else
        model_refused(&s->model, number);
    return rc;
}

/* Submits until the flow from one end to a silent end is held, and its origin takes no more. */
static void fill_towards(struct driver *s, uint32_t from, uint32_t to)
{
    uint32_t refused = 0;

    for (uint32_t i = 0; i < 100000 && refused < 200 && !s->failed; i++) {
        refused = notify(s, from, to, 1024) == 0 ? 0 : refused + 1;
        driver_turn(s);
    }
    if (refused < 200)
        driver_fail(s, "end %u takes all that end %u sends, though it is silent", to, from);
}

/* ---- flushes --------------------------------------------------------------------------------- */

void lives_flush(struct driver *s)
{
    static const uint32_t pairs[][2] = {{0, 1}, {1, 0}, {0, 2}, {0, 0}};

    driver_flush(s, 0, 1); /* while nothing is under way */
    driver_finish_flush(s, 0);
    for (int i = 0; i < 60 && !s->failed; i++) {
        const uint32_t *pair = pairs[driver_random(s, COUNT(pairs))];

        submit_some(s, pair[0], pair[1], (int)driver_random(s, 8));
        driver_flush(s, pair[0], pair[1]);
        submit_some(s, pair[0], pair[1], (int)driver_random(s, 4));
        if (driver_random(s, 2))
            turns(s, driver_random(s, 20));
    }
    driver_finish_flush(s, 0);
    driver_finish_flush(s, 1);
    driver_finish(s);
}

void lives_flush_held(struct driver *s)
{
    uint64_t number;

    driver_remote(s, 2, 3);
    s->silent = 1u << 3;
    for (int i = 0; i < 60 && !s->failed; i++)
        while (notify(s, 2, 3, 1024) != 0 && driver_turn(s))
            ;
    number = driver_flush(s, 2, 3);
    submit_some(s, 2, 1, 5);
    turns(s, 3000);
    if (driver_flushed(s, 2, number))
        driver_fail(s, "a flush ends though its flow is held");
    s->silent = 0;
    driver_finish_flush(s, 2);
    driver_finish(s);
}

void lives_flush_breaks(struct driver *s)
{
    for (int i = 0; i < 8 && !s->failed; i++) {
        submit_some(s, 0, 1, 6);
        driver_flush(s, 0, 1);
        submit_some(s, 1, 2, 3);
        driver_flush(s, 1, 2);
        turns(s, driver_random(s, 40));
        if (s->path->calls->cut(s->path->context, 0, 1, false) != 0)
            driver_fail(s, "the link is not cut");
    }
    driver_finish_flush(s, 0);
    driver_finish_flush(s, 1);
    driver_finish(s);
}

void lives_flush_dead(struct driver *s)
{
    driver_remote(s, 0, 1);
    submit_some(s, 0, 1, 20);
    driver_flush(s, 0, 1);
    model_dead(&s->model, 1);
    if (!s->failed && s->path->calls->kill(s->path->context, 1) != 0)
        driver_fail(s, "the client does not die");
    driver_finish_flush(s, 0);
    finish_all(s);
    driver_flush(s, 0, 1);
    driver_finish_flush(s, 0);
    submit_some(s, 0, 2, 10);
    driver_flush(s, 0, 2);
    driver_finish_flush(s, 0);
    driver_finish(s);
}

void lives_flush_lost(struct driver *s)
{
    submit_some(s, 0, 1, 20);
    driver_flush(s, 0, 1);
    for (uint32_t a = 0; a < 4; a += 2)
        for (uint32_t b = 1; b < 4; b += 2)
            model_shake(&s->model, a, b);
    if (!s->failed && s->path->calls->cut(s->path->context, 0, 1, true) != 0)
        driver_fail(s, "the link is not cut");
    driver_finish_flush(s, 0);
    finish_all(s);
    driver_flush(s, 0, 1);
    driver_finish_flush(s, 0);
    driver_finish(s);
}

/* ---- contexts -------------------------------------------------------------------------------- */

/* Guards that order is kept for each pair of contexts: the model has a pair for each two ends. */
void lives_contexts(struct driver *s)
{
    for (int i = 0; i < 1200 && !s->failed; i++)
        driver_submit(
            s, driver_random_op(s, (uint32_t)driver_random(s, 8), (uint32_t)driver_random(s, 8)));
    driver_finish(s);
}

/* Guards that a context whose flow is held does not hold the client's other one. End 4 is the
 * second context of end 0's client, end 7 of end 3's. */
void lives_context_full(struct driver *s)
{
    driver_remote(s, 4, 1);
    driver_remote(s, 1, 4);
    driver_remote(s, 4, 7);
    s->silent = 1u << 3;
    fill_towards(s, 0, 3);
    /* The other contexts of both clients continue, in all directions. */
    submit_some(s, 4, 1, 60);
    submit_some(s, 4, 7, 60);
    submit_some(s, 7, 4, 60);
    submit_some(s, 1, 0, 60);
    for (uint32_t i = 0; i < s->model.op_count; i++)
        if (s->model.ops[i].to != 3)
            driver_finish_one(s, i);
    s->silent = 0;
    driver_finish(s);
}

/* ---- unbind ---------------------------------------------------------------------------------- */

void lives_unbind(struct driver *s)
{
    for (int i = 0; i < 20 && !s->failed; i++) {
        uint32_t to = (uint32_t)driver_random(s, 3);

        driver_bind(s, 0, to);
        submit_some(s, 0, to, 12);
        driver_unbind(s, 0, to);
        submit_some(s, 1, 0, 2);
    }
    driver_finish(s);
}

/* Guards binds that are undone more often than there are places: handles that come again lead to
 * the context that was bound last. */
void lives_unbind_often(struct driver *s)
{
    uint32_t again = 0, last = UINT32_MAX;

    for (int i = 0; i < 400 && !s->failed; i++) {
        uint32_t to = 1 + (uint32_t)i % 3, handle = driver_bind(s, 0, to);

        again += handle == last;
        last = handle;
        submit_some(s, 0, to, 1);
        if (driver_random(s, 2))
            finish_all(s);
        driver_unbind(s, 0, to);
    }
    driver_finish(s);
    if (!s->failed && again == 0)
        driver_fail(s, "no handle came again");
}

void lives_use_after_unbind(struct driver *s)
{
    uint32_t handle = driver_bind(s, 0, 1);
    struct path_op p = {.kind = PATH_PUT, .from = 0, .remote = handle};

    driver_remote(s, 2, 1);
    submit_some(s, 0, 1, 10);
    driver_unbind(s, 0, 1);
    s->path->calls->betray(s->path->context, 0);
    model_dead(&s->model, 0);
    if (!s->failed && s->path->calls->submit(s->path->context, &p) != 0)
        driver_fail(s, "the library does not submit");
    for (uint32_t i = 0; i < ROUNDS_MAX && !s->failed; i++) {
        bool more = driver_turn(s);

        if (s->path->calls->betrayed(s->path->context, 0))
            break;
        if (!more)
            driver_fail(s, "a client that uses what it unbound is not thrown out");
    }
    submit_some(s, 2, 1, 40);
    driver_finish(s);
}

/* ---- contexts that close --------------------------------------------------------------------- */

static void close_end(struct driver *s, uint32_t end)
{
    model_dead(&s->model, end);
    if (!s->failed && s->path->calls->close(s->path->context, end) != 0)
        driver_fail(s, "end %u does not close", end);
}

/* Opens the context again, when everything that knew the old one has ended. */
static void open_end(struct driver *s, uint32_t end)
{
    finish_all(s);
    turns(s, 500);
    if (!s->failed && s->path->calls->open(s->path->context, end) != 0)
        driver_fail(s, "end %u does not open again", end);
    model_again(&s->model, end);
    s->local_next[end] = s->remote_next[end] = 0;
    for (uint32_t other = 0; other < s->path->ends; other++)
        s->remotes[end][other].bound = s->remotes[other][end].bound = false;
}

void lives_close_origin(struct driver *s)
{
    submit_some(s, 0, 1, 25);
    submit_some(s, 0, 2, 25);
    submit_some(s, 3, 2, 25);
    turns(s, driver_random(s, 30));
    close_end(s, 0);
    submit_some(s, 3, 2, 50);
    submit_some(s, 2, 1, 50);
    driver_finish(s);
    open_end(s, 0);
    submit_some(s, 0, 1, 20);
    submit_some(s, 1, 0, 20);
    driver_finish(s);
}

void lives_close_target(struct driver *s)
{
    driver_remote(s, 2, 3);
    submit_some(s, 0, 1, 25);
    submit_some(s, 3, 1, 25);
    submit_some(s, 0, 3, 10);
    turns(s, driver_random(s, 30));
    close_end(s, 1);
    for (uint32_t i = 0; i < s->model.op_count; i++)
        driver_finish_one(s, i);
    for (int i = 0; i < 20 && !s->failed; i++) {
        struct model_op op = driver_random_op(s, 0, 1);

        op.status = -EHOSTDOWN;
        op.shaken = true;
        driver_submit(s, op);
    }
    submit_some(s, 0, 3, 50);
    driver_finish(s);
    open_end(s, 1);
    submit_some(s, 0, 1, 30);
    submit_some(s, 1, 3, 30);
    driver_finish(s);
}

/* Guards a context that closes while its events wait in the spill, and its origins are held or
 * refused. */
void lives_close_spill(struct driver *s)
{
    driver_remote(s, 0, 3);
    driver_remote(s, 2, 3);
    s->silent = 1u << 3;
    fill_towards(s, 0, 3);
    for (int i = 0; i < 20; i++)
        notify(s, 2, 3, 100);
    close_end(s, 3);
    s->silent = 0;
    submit_some(s, 0, 1, 30);
    submit_some(s, 2, 1, 30);
    driver_finish(s);
    open_end(s, 3);
    submit_some(s, 0, 3, 20);
    driver_finish(s);
}

void lives_close_often(struct driver *s)
{
    for (int i = 0; i < 12 && !s->failed; i++) {
        uint32_t end = (uint32_t)driver_random(s, 3);

        for (int k = 0; k < 12; k++)
            driver_submit(s, driver_random_op(s, (uint32_t)driver_random(s, 4),
                                              (uint32_t)driver_random(s, 4)));
        turns(s, driver_random(s, 20));
        close_end(s, end);
        open_end(s, end);
    }
    driver_finish(s);
}
