/*
 * The matcher against a model, plain lists of started requests and of unexpected notifications:
 * each operation must give the same result in both. Peers and tags are few, so that many match. The
 * seed is printed; given as the argument, it replays the run. One thread.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "clientlib/channel/matcher.h"
#include "tests/suite.h"

enum { REQUESTS = 600, UNEXPECTED = 700, STEPS = 400000 };

static uint64_t seed = 1;

static uint64_t random_below(uint64_t below)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (seed >> 11) % below;
}

/* ---- the model: arrays in order, searched from their beginnings -------------------------------
 */

struct model {
    struct matcher_request *started[REQUESTS];
    uint32_t started_count;
    struct matcher_notice kept[UNEXPECTED];
    uint32_t kept_count;
};

static bool model_matches(const struct matcher_pattern *p, uint64_t peer, uint64_t id)
{
    if (!p->any_peer && p->peer != peer)
        return false;
    return p->any_tag ? (uint32_t)(p->id >> 32) == (uint32_t)(id >> 32) : p->id == id;
}

static struct matcher_request *model_find(const struct model *m, uint64_t peer, uint64_t id)
{
    for (uint32_t i = 0; i < m->started_count; i++)
        if (model_matches(&m->started[i]->pattern, peer, id))
            return m->started[i];
    return NULL;
}

static void model_stop(struct model *m, const struct matcher_request *r)
{
    uint32_t i = 0;

    while (m->started[i] != r)
        i++;
    m->started_count--;
    memmove(&m->started[i], &m->started[i + 1], (m->started_count - i) * sizeof(m->started[0]));
}

static bool model_take(struct model *m, const struct matcher_pattern *p, struct matcher_notice *out)
{
    for (uint32_t i = 0; i < m->kept_count; i++)
        if (model_matches(p, m->kept[i].peer, m->kept[i].id)) {
            *out = m->kept[i];
            m->kept_count--;
            memmove(&m->kept[i], &m->kept[i + 1], (m->kept_count - i) * sizeof(m->kept[0]));
            return true;
        }
    return false;
}

/* ---- both -------------------------------------------------------------------------------------
 */

struct both {
    struct matcher matcher;
    struct model model;
    struct matcher_request requests[REQUESTS];
    bool started[REQUESTS];
    uint32_t peers, tags, notices; /* numbers of peers and tags; notifications so far */
};

static struct both *both_new(uint32_t peers, uint32_t tags, uint32_t unexpected_max)
{
    struct both *b = calloc(1, sizeof(*b));

    matcher_init(&b->matcher, unexpected_max);
    b->peers = peers;
    b->tags = tags;
    return b;
}

static void both_free(struct both *b)
{
    matcher_destroy(&b->matcher);
    free(b);
}

static bool same(const struct matcher_notice *a, const struct matcher_notice *b)
{
    return a->peer == b->peer && a->id == b->id && a->bytes == b->bytes && a->op == b->op;
}

static struct matcher_pattern some_pattern(const struct both *b, uint32_t wild)
{
    return (struct matcher_pattern){
        .peer = random_below(b->peers),
        .id = random_below(2) << 32 | random_below(b->tags),
        .any_peer = random_below(100) < wild,
        .any_tag = random_below(100) < wild,
    };
}

static bool expect_notice(bool got, const struct matcher_notice *notice, bool wanted,
                          const struct matcher_notice *model)
{
    if (got == wanted && (!got || same(notice, model)))
        return true;
    CU_FAIL("the matcher takes another notification than the model");
    return false;
}

/* Starts an idle request, after a search among the unexpected notifications, as callers do. */
static bool start_one(struct both *b, uint32_t wild)
{
    uint32_t i = (uint32_t)random_below(REQUESTS);
    struct matcher_notice notice, model;
    bool taken;

    if (b->started[i])
        return true;
    b->requests[i].pattern = some_pattern(b, wild);
    taken = matcher_take(&b->matcher, &b->requests[i].pattern, &notice);
    if (!expect_notice(taken, &notice, model_take(&b->model, &b->requests[i].pattern, &model),
                       &model))
        return false;
    if (taken)
        return true;
    CU_ASSERT_EQUAL_FATAL(matcher_prepare(&b->matcher), 0);
    matcher_start(&b->matcher, &b->requests[i]);
    b->started[i] = true;
    b->model.started[b->model.started_count++] = &b->requests[i];
    return true;
}

static void stop(struct both *b, struct matcher_request *r)
{
    matcher_stop(&b->matcher, r);
    model_stop(&b->model, r);
    b->started[r - b->requests] = false;
}

static void cancel_one(struct both *b)
{
    uint32_t i = (uint32_t)random_below(REQUESTS);

    if (b->started[i])
        stop(b, &b->requests[i]);
}

/* A notification arrives. Half of the requests that match one are then complete. */
static bool arrive(struct both *b)
{
    const struct matcher_notice notice = {
        .peer = random_below(b->peers),
        .id = random_below(2) << 32 | random_below(b->tags),
        .bytes = b->notices++,
        .op = (uint8_t)(1 + random_below(2)),
    };
    struct matcher_request *r = matcher_find(&b->matcher, notice.peer, notice.id);
    bool full = b->model.kept_count == b->matcher.kept_max;

    if (r != model_find(&b->model, notice.peer, notice.id)) {
        CU_FAIL("the matcher finds another request than the model");
        return false;
    }
    if (r && random_below(2))
        stop(b, r);
    if (r)
        return true;
    CU_ASSERT_EQUAL(matcher_room(&b->matcher), full ? -ENOBUFS : 0);
    CU_ASSERT_EQUAL_FATAL(matcher_keep(&b->matcher, &notice), full ? -ENOBUFS : 0);
    if (!full)
        b->model.kept[b->model.kept_count++] = notice;
    return true;
}

static bool take_raw(struct both *b)
{
    const struct matcher_pattern pattern = {.peer = random_below(b->peers),
                                            .any_peer = random_below(2)};
    struct matcher_notice notice, model = {0};
    bool taken = matcher_take_from(&b->matcher, pattern.peer, pattern.any_peer, &notice);
    struct model *m = &b->model;
    uint32_t i = 0;

    while (i < m->kept_count && !pattern.any_peer && m->kept[i].peer != pattern.peer)
        i++;
    if (i < m->kept_count) {
        model = m->kept[i];
        m->kept_count--;
        memmove(&m->kept[i], &m->kept[i + 1], (m->kept_count - i) * sizeof(m->kept[0]));
        return expect_notice(taken, &notice, true, &model);
    }
    return expect_notice(taken, &notice, false, &model);
}

static void drop_space(struct both *b)
{
    const struct matcher_pattern all = {.id = UINT64_C(1) << 32, .any_peer = true, .any_tag = true};
    struct matcher_notice dropped;

    matcher_drop(&b->matcher, 1);
    while (model_take(&b->model, &all, &dropped))
        continue;
}

/* The matcher's counts equal the model's. Spaces 0 and 1 together have all started requests. */
static void count_started(const struct both *b)
{
    CU_ASSERT_EQUAL(b->matcher.started, b->model.started_count);
    CU_ASSERT_EQUAL(matcher_started_in(&b->matcher, 0) + matcher_started_in(&b->matcher, 1),
                    b->model.started_count);
    CU_ASSERT_EQUAL(b->matcher.kept, b->model.kept_count);
}

static void run(struct both *b, uint32_t starts, uint32_t wild)
{
    bool good = true;

    for (uint32_t step = 0; step < STEPS && good; step++) {
        uint64_t what = random_below(1000);

        if (what == 0)
            drop_space(b);
        else if (what < 60)
            cancel_one(b);
        else if (what < 120)
            good = take_raw(b);
        else if (what < 120 + starts)
            good = start_one(b, wild);
        else
            good = arrive(b);
        if (step % 1000 == 0)
            count_started(b);
    }
    count_started(b);
}

/* ---- tests ------------------------------------------------------------------------------------
 */

/* Few peers and tags, and many; more starts than notifications, and fewer; and different bounds of
 * unexpected ones. */
static void as_a_list(void)
{
    static const struct {
        uint32_t peers, tags, starts, wild, max;
    } rows[] = {
        {1, 1, 440, 20, 700},  {1, 1, 300, 0, 100},     {3, 4, 440, 10, 700},
        {3, 4, 500, 30, 700},  {3, 4, 300, 5, 700},     {3, 4, 700, 50, 8},
        {16, 64, 440, 3, 700}, {16, 64, 600, 0, 700},   {16, 64, 300, 1, 500},
        {16, 64, 800, 2, 700}, {64, 4096, 600, 1, 700}, {2, 2, 440, 100, 1},
    };

    printf("seed %llu ", (unsigned long long)seed);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct both *b = both_new(rows[i].peers, rows[i].tags, rows[i].max);

        run(b, rows[i].starts, rows[i].wild);
        both_free(b);
    }
}

/* A request that is alone is compared directly, without a hash, so the matcher allocates nothing
 * for it. */
static void one_alone_takes_no_memory(void)
{
    struct matcher_request r = {.pattern = {.peer = 3, .id = UINT64_C(7) << 32 | 9}};
    struct matcher m;

    matcher_init(&m, MATCHER_UNEXPECTED);
    for (int i = 0; i < 3; i++) {
        CU_ASSERT_EQUAL(matcher_prepare(&m), 0);
        matcher_start(&m, &r);
        CU_ASSERT_PTR_EQUAL(matcher_find(&m, 3, UINT64_C(7) << 32 | 9), &r);
        CU_ASSERT_PTR_NULL(matcher_find(&m, 4, UINT64_C(7) << 32 | 9));
        CU_ASSERT_PTR_NULL(matcher_find(&m, 3, UINT64_C(7) << 32 | 8));
        CU_ASSERT_PTR_NULL(matcher_find(&m, 3, UINT64_C(6) << 32 | 9));
        matcher_stop(&m, &r);
    }
    CU_ASSERT_PTR_NULL(m.buckets);
    CU_ASSERT_PTR_NULL(m.chains);
    CU_ASSERT_PTR_NULL(matcher_find(&m, 3, UINT64_C(7) << 32 | 9));
    matcher_destroy(&m);
}

/* No more notifications are kept than the bound allows; taking one makes room again. */
static void the_bound(void)
{
    struct matcher_notice notice = {.peer = 1, .id = 5, .op = 1};
    struct matcher m;

    matcher_init(&m, MATCHER_UNEXPECTED);
    for (uint32_t i = 0; i < MATCHER_UNEXPECTED; i++) {
        notice.bytes = i;
        CU_ASSERT_EQUAL_FATAL(matcher_keep(&m, &notice), 0);
    }
    CU_ASSERT_EQUAL(matcher_keep(&m, &notice), -ENOBUFS);
    CU_ASSERT_TRUE(matcher_take_from(&m, 1, false, &notice));
    CU_ASSERT_EQUAL(notice.bytes, 0);
    CU_ASSERT_EQUAL(matcher_room(&m), 0);
    matcher_destroy(&m);
}

static int64_t cpu_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

/* Guards that a drop looks at each notification once, and leaves those of other spaces: a walk past
 * these for each dropped one, 10^9 in all, takes seconds. */
static void a_drop_is_one_pass(void)
{
    enum { EACH = 50000, LIMIT_NS = 500000000 };
    const struct matcher_pattern rest = {.id = 0, .any_peer = true, .any_tag = true};
    struct matcher_notice notice = {.peer = 1};
    struct matcher m;
    int64_t begun;

    matcher_init(&m, 2 * EACH);
    for (uint64_t i = 0; i < 2 * EACH; i++) {
        notice.id = i % 2 << 32 | i / 2;
        CU_ASSERT_EQUAL_FATAL(matcher_keep(&m, &notice), 0);
    }
    begun = cpu_ns();
    matcher_drop(&m, 1);
    CU_ASSERT_TRUE(cpu_ns() - begun < LIMIT_NS);
    CU_ASSERT_EQUAL(m.kept, EACH);
    for (uint64_t i = 0; i < EACH; i++) {
        CU_ASSERT_TRUE_FATAL(matcher_take(&m, &rest, &notice));
        CU_ASSERT_EQUAL(notice.id, i);
    }
    CU_ASSERT_FALSE(matcher_take(&m, &rest, &notice));
    matcher_destroy(&m);
}

int main(int argc, char **argv)
{
    CU_TestInfo tests[] = {
        {"one alone takes no memory", one_alone_takes_no_memory},
        {"the bound", the_bound},
        {"a drop is one pass", a_drop_is_one_pass},
        {"as a list", as_a_list},
        CU_TEST_INFO_NULL,
    };

    if (argc > 1)
        seed = strtoull(argv[1], NULL, 0) | 1;
    return suite_run("matcher", tests);
}
