/*
 * Notified access among the ranks of a job, on one node and between nodes. The messages of a rank,
 * and their targets, are drawn from a seed and the sender's rank, so each receiver can compute
 * which lengths each origin, window and tag must bring, in which order.
 *
 *     notify_ranks [SEED]
 */
#include <errno.h>
#include <pwc/notify.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    RANKS_MAX = 8,
    WINDOWS = 2,
    TAGS = 4,
    ROUNDS = 3000, /* operations of each rank */
    LENGTH_MAX = 5000,
    WILD = 500, /* notifications of each rank to each other rank, for one request with wildcards */
    WAIT_MS = 20000,
};

static uint64_t seed = 1;
static uint32_t me, ranks;
static pwc_ctx *ctx;
static pwc_window *windows[WINDOWS];
static uint8_t *memory;

/* A receiver's record of one origin, window and tag. */
static struct flow {
    pwc_request *request;
    uint32_t expected[ROUNDS];
    uint32_t count, seen;
} flows[RANKS_MAX][WINDOWS][TAGS];

_Noreturn static void fail(const char *what, long long a, long long b)
{
    (void)fprintf(stderr, "rank %u, seed %llu: %s: %lld, %lld\n", me, (unsigned long long)seed,
                  what, a, b);
    exit(1);
}

static int checked(const char *call, int rc)
{
    if (rc < 0)
        fail(call, rc, 0);
    return rc;
}
#define CHECK(call) checked(#call, call)

struct draw {
    uint32_t target, window, tag, length;
    bool get;
};

static uint32_t below(uint64_t *state, uint32_t bound)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return (uint32_t)((*state >> 20) % bound);
}

/* Draws the next operation of a rank. */
static struct draw draw(uint64_t *state, uint32_t rank)
{
    struct draw d = {.target = below(state, ranks - 1)};

    d.target += d.target >= rank;
    d.window = below(state, WINDOWS);
    d.tag = below(state, TAGS);
    d.get = below(state, 4) == 0;
    d.length = below(state, 3) ? below(state, 64) : below(state, LENGTH_MAX);
    return d;
}

static uint64_t state_of(uint32_t rank)
{
    return (seed + rank + 1) * UINT64_C(0x9e3779b97f4a7c15);
}

static void foresee(void)
{
    for (uint32_t rank = 0; rank < ranks; rank++) {
        uint64_t state = state_of(rank);

        for (uint32_t i = 0; rank != me && i < ROUNDS; i++) {
            struct draw d = draw(&state, rank);
            struct flow *f = &flows[rank][d.window][d.tag];

            if (d.target == me)
                f->expected[f->count++] = d.length;
        }
    }
}

/* ---- receiving ------------------------------------------------------------------------------- */

static void check_end(const struct flow *f, uint32_t rank, uint32_t window, uint32_t tag,
                      const struct pwc_status *status)
{
    if (status->status != 0 || status->count != 1)
        fail("status and count", status->status, status->count);
    if (pwc_window_rank(windows[window], status->peer) != (int)rank)
        fail("peer", (long long)status->peer, rank);
    if ((uint32_t)status->id != tag)
        fail("tag", (uint32_t)status->id, tag);
    if (status->bytes != f->expected[f->seen])
        fail("bytes", (long long)status->bytes, f->expected[f->seen]);
}

/* Tests the request of one flow, and starts it again if it has ended. Returns how many
 * notifications the flow still expects. */
static uint32_t look(uint32_t rank, uint32_t window, uint32_t tag)
{
    struct flow *f = &flows[rank][window][tag];
    struct pwc_status status;

    if (f->seen == f->count || !f->request || CHECK(pwc_test(f->request, &status)) == 0)
        return f->count - f->seen;
    check_end(f, rank, window, tag, &status);
    if (++f->seen < f->count)
        CHECK(pwc_start(f->request));
    return f->count - f->seen;
}

static uint32_t look_at_all(void)
{
    uint32_t left = 0;

    for (uint32_t rank = 0; rank < ranks; rank++)
        for (uint32_t i = 0; rank != me && i < WINDOWS * TAGS; i++)
            left += look(rank, i / TAGS, i % TAGS);
    return left;
}

static void start_all(void)
{
    for (uint32_t rank = 0; rank < ranks; rank++)
        for (uint32_t i = 0; rank != me && i < WINDOWS * TAGS; i++) {
            struct flow *f = &flows[rank][i / TAGS][i % TAGS];

            CHECK(pwc_notify_init(windows[i / TAGS], rank, i % TAGS, 1, PWC_CID_NONE, &f->request));
            if (f->count > 0)
                CHECK(pwc_start(f->request));
        }
}

/* ---- sending --------------------------------------------------------------------------------- */

/* Takes local events, and reads rings of other ranks, which may wait for room themselves. */
static void make_room(void)
{
    struct pwc_event event;

    while (CHECK(pwc_probe(ctx, PWC_ANY, 0, &event)) == 1)
        if (event.status != 0)
            fail("an operation's status", event.status, 0);
}

static void send_one(const struct draw *d)
{
    uint8_t *mine = memory + LENGTH_MAX;
    int rc;

    while ((rc = d->get ? pwc_get_notify(windows[d->window], d->target, 0, mine, d->length, d->tag,
                                         PWC_CID_NONE, PWC_NO_LCE)
                        : pwc_put_notify(windows[d->window], d->target, 0, mine, d->length, d->tag,
                                         PWC_CID_NONE, PWC_NO_LCE)) == -EAGAIN) {
        make_room();
        (void)look_at_all();
    }
    CHECK(rc);
}

/* One request for each flow. The first half is sent before any request is started, so most of it is
 * unexpected. */
static void exact(void)
{
    uint64_t state = state_of(me);

    for (uint32_t i = 0; i < ROUNDS; i++) {
        struct draw d = draw(&state, me);

        if (i == ROUNDS / 2)
            start_all();
        send_one(&d);
        if (i > ROUNDS / 2 && i % 16 == 0)
            (void)look_at_all();
    }
    while (look_at_all() > 0)
        make_room();
    for (uint32_t rank = 0; rank < ranks; rank++)
        for (uint32_t i = 0; rank != me && i < WINDOWS * TAGS; i++)
            CHECK(pwc_request_free(flows[rank][i / TAGS][i % TAGS].request));
}

/* One request with wildcards gets all notifications of all ranks in a round, and none of the next
 * round. */
static void wild(void)
{
    struct pwc_status status;
    pwc_request *all;

    CHECK(pwc_notify_init(windows[0], PWC_ANY_RANK, PWC_ANY_TAG, WILD * (ranks - 1), pwc_cid_u64(7),
                          &all));
    for (int round = 0; round < 3; round++) {
        struct pwc_event event;

        for (uint32_t i = 0; i < WILD; i++)
            for (uint32_t to = 0; to < ranks; to++)
                if (to != me)
                    send_one(&(struct draw){.target = to, .tag = i % TAGS});
        CHECK(pwc_start(all));
        if (CHECK(pwc_request_wait(all, &status, WAIT_MS)) != 1)
            fail("a request with wildcards does not end", status.count, WILD * (ranks - 1));
        if (status.count != WILD * (ranks - 1))
            fail("count", status.count, WILD * (ranks - 1));
        if (CHECK(pwc_wait(ctx, PWC_ANY, PWC_LOCAL, &event, WAIT_MS)) != 1 || event.id != 7)
            fail("the request's local event", (long long)event.id, 7);
        CHECK(pwc_barrier(ctx));
    }
    CHECK(pwc_start(all));
    if (pwc_window_free(windows[0]) != -EBUSY)
        fail("a window is freed under a started request", 0, 0);
    CHECK(pwc_cancel(all));
    if (pwc_test(all, &status) != 1 || status.status != -ECANCELED || status.count != 0)
        fail("a cancelled request", status.status, status.count);
    CHECK(pwc_wait(ctx, PWC_ANY, PWC_LOCAL, &(struct pwc_event){0}, WAIT_MS));
    CHECK(pwc_request_free(all));
}

int main(int argc, char **argv)
{
    pwc_client *client;
    pwc_region *region;

    if (argc > 1)
        seed = strtoull(argv[1], NULL, 0) | 1;
    CHECK(pwc_init(NULL, &client));
    me = pwc_rank(client);
    ranks = pwc_size(client);
    if (ranks < 2 || ranks > RANKS_MAX)
        fail("ranks", ranks, RANKS_MAX);
    CHECK(pwc_ctx_create(client, NULL, &ctx));
    CHECK(pwc_alloc(client, 2 * LENGTH_MAX, PWC_REMOTE_RW, &region));
    memory = pwc_region_addr(region);
    for (uint32_t i = 0; i < WINDOWS; i++)
        CHECK(pwc_window_create(ctx, NULL, region, &windows[i]));
    foresee();
    exact();
    wild();
    for (uint32_t i = 0; i < WINDOWS; i++)
        CHECK(pwc_window_free(windows[i]));
    CHECK(pwc_finalize(client));
    if (me == 0)
        printf("seed %llu: %u ranks, %u notified operations each, all matched in order\n",
               (unsigned long long)seed, ranks, ROUNDS);
    return 0;
}
