/*
 * Notified access between two ranks, for bench/notify:
 *
 *     notified WAY SIZE ITERATIONS [started|unexpected DEPTH]
 *
 * In each turn rank 0 moves SIZE bytes and rank 1 is notified, then the other way round. Rank 0
 * prints half of the turn's time, the median over all turns, in one JSON line.
 *
 *     put         a put with a remote event, and a wait for the event
 *     put_notify  a notified put, and a wait for the request that was started for it
 *     get         a get with a remote event, which says to the owner that its data has been read
 *     get_notify  a notified get
 *
 * Beside these, each rank may have DEPTH other started requests, or DEPTH unexpected notifications,
 * each with a tag of its own.
 */
#include <pwc/notify.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "bench/rank.h"

enum { TAG = 1, OTHER_TAGS = 1000, WARM_UP = 10 /* a tenth */ };

struct bench {
    pwc_client *client;
    pwc_ctx *ctx;
    pwc_region *region; /* the other rank writes and reads the lower half */
    pwc_window *window;
    pwc_remote *remote;
    pwc_request *request;
    uint32_t me, other;
    size_t size;
};

static uint8_t *own_half(const struct bench *b)
{
    return (uint8_t *)pwc_region_addr(b->region) + b->size;
}

/* ---- ways ------------------------------------------------------------------------------------ */

/* Takes local events until there is room for another operation. */
static void make_room(struct bench *b)
{
    struct pwc_event event;

    while (CHECK(pwc_probe(b->ctx, PWC_ANY, PWC_LOCAL, &event)) == 1)
        continue;
}

static void put(struct bench *b)
{
    int rc;

    while ((rc = pwc_put(b->remote, 0, own_half(b), b->size, PWC_CID_NONE, pwc_cid_u64(TAG),
                         PWC_NO_LCE)) == -EAGAIN)
        make_room(b);
    CHECK(rc);
}

static void put_notify(struct bench *b)
{
    int rc;

    while ((rc = pwc_put_notify(b->window, b->other, 0, own_half(b), b->size, TAG, PWC_CID_NONE,
                                PWC_NO_LCE)) == -EAGAIN)
        make_room(b);
    CHECK(rc);
}

static void get(struct bench *b)
{
    int rc;

    while ((rc = pwc_get(b->remote, 0, own_half(b), b->size, PWC_CID_NONE, pwc_cid_u64(TAG),
                         PWC_NO_LCE)) == -EAGAIN)
        make_room(b);
    CHECK(rc);
}

static void get_notify(struct bench *b)
{
    int rc;

    while ((rc = pwc_get_notify(b->window, b->other, 0, own_half(b), b->size, TAG, PWC_CID_NONE,
                                PWC_NO_LCE)) == -EAGAIN)
        make_room(b);
    CHECK(rc);
}

static void await_event(struct bench *b)
{
    struct pwc_event event;

    CHECK(pwc_wait(b->ctx, PWC_ANY, PWC_REMOTE, &event, -1));
}

static void await_request(struct bench *b)
{
    struct pwc_status status;

    CHECK(pwc_start(b->request));
    CHECK(pwc_request_wait(b->request, &status, -1));
}

static const struct way {
    const char *name;
    void (*move)(struct bench *b);
    void (*await)(struct bench *b);
} ways[] = {
    {"put", put, await_event},
    {"put_notify", put_notify, await_request},
    {"get", get, await_event},
    {"get_notify", get_notify, await_request},
};

/* ---- other started requests, and unexpected notifications --------------------------------------
 */

static void add_started(struct bench *b, uint32_t depth)
{
    pwc_request *request;

    for (uint32_t i = 0; i < depth; i++) {
        CHECK(pwc_notify_init(b->window, b->other, OTHER_TAGS + i, 1, PWC_CID_NONE, &request));
        CHECK(pwc_start(request));
    }
}

/* Sends a notification without bytes. Takes events while there is no room: the other rank may wait
 * for this one to take the events that it has sent. */
static void notify(struct bench *b, uint32_t tag)
{
    struct pwc_event event;
    int rc;

    while ((rc = pwc_put_notify(b->window, b->other, 0, NULL, 0, tag, PWC_CID_NONE, PWC_NO_LCE)) ==
           -EAGAIN)
        (void)CHECK(pwc_probe(b->ctx, PWC_ANY, PWC_REMOTE, &event));
    CHECK(rc);
}

static void add_unexpected(struct bench *b, uint32_t depth)
{
    for (uint32_t i = 0; i < depth; i++)
        notify(b, OTHER_TAGS + i);
    /* The last notification goes to a request; when it has come, all others have arrived. */
    notify(b, TAG);
    await_request(b);
}

/* ---- the run -----------------------------------------------------------------------------------
 */

static double run(struct bench *b, const struct way *way, int measured)
{
    int warm = measured / WARM_UP;
    double *samples = calloc((size_t)measured, sizeof(*samples)), half_us;

    for (int i = 0; samples && i < warm + measured; i++) {
        double start = now_us();

        if (b->me == 1)
            way->await(b);
        way->move(b);
        if (b->me == 0)
            way->await(b);
        if (i >= warm)
            samples[i - warm] = (now_us() - start) / 2;
    }
    if (!samples)
        exit(1);
    half_us = median(samples, (size_t)measured);
    free(samples);
    return half_us;
}

static void attach(struct bench *b)
{
    CHECK(pwc_init(NULL, &b->client));
    CHECK(pwc_ctx_create(b->client, NULL, &b->ctx));
    CHECK(pwc_alloc(b->client, 2 * b->size, PWC_REMOTE_RW, &b->region));
    CHECK(pwc_window_create(b->ctx, NULL, b->region, &b->window));
    b->me = pwc_rank(b->client);
    b->other = 1 - b->me;
    CHECK(pwc_window_remote(b->window, b->other, &b->remote));
    CHECK(pwc_notify_init(b->window, b->other, TAG, 1, PWC_CID_NONE, &b->request));
    memset(pwc_region_addr(b->region), 1, 2 * b->size);
    CHECK(pwc_barrier(b->ctx));
}

int main(int argc, char **argv)
{
    struct bench b = {0};
    double half_us = -1;
    int iterations = argc > 3 ? atoi(argv[3]) : 0;

    b.size = argc > 2 ? strtoull(argv[2], NULL, 10) : 0;
    if (iterations <= 0 || b.size == 0 || (argc != 4 && argc != 6)) {
        (void)fprintf(stderr, "usage: notified WAY SIZE ITERATIONS [started|unexpected DEPTH]\n");
        return 2;
    }
    attach(&b);
    if (argc == 6 && strcmp(argv[4], "started") == 0)
        add_started(&b, (uint32_t)atoi(argv[5]));
    else if (argc == 6)
        add_unexpected(&b, (uint32_t)atoi(argv[5]));
    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
        if (strcmp(argv[1], ways[i].name) == 0)
            half_us = run(&b, &ways[i], iterations);
    CHECK(pwc_barrier(b.ctx));
    if (b.me == 0)
        (void)printf("{\"way\":\"%s\",\"size\":%zu,\"p50_us\":%.4f}\n", argv[1], b.size, half_us);
    CHECK(pwc_finalize(b.client));
    return half_us < 0;
}
