/*
 * Puts as fast as there is room, by the three ways in which a program may deal with a call that has
 * no room.
 *
 *     pwcrun --nodes 2 -n 2 --pin -- again probe|yield|wait SIZE PUTS
 *
 *     probe    after -EAGAIN takes a local event, if one is there, and tries again
 *     yield    the same, and pwc_yield between looks that find nothing
 *     wait     PWC_WAIT, and no local events
 *
 * Rank 0 puts to rank 1, which learns of nothing, and prints one JSON line: the puts in a
 * microsecond, and how often a call had no room.
 */
#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include "bench/rank.h"

enum way { PROBE, YIELD, WAIT, WAYS };
static const char *const way_names[WAYS] = {"probe", "yield", "wait"};

struct bench {
    pwc_ctx *ctx;
    pwc_region *region;
    pwc_remote *remote;
    size_t size;
    enum way way;
    long refused, ended; /* calls without room; local events */
};

/* Takes one local event, if one is there. */
static bool take(struct bench *b)
{
    struct pwc_event event;

    if (CHECK(pwc_probe(b->ctx, PWC_ANY, PWC_LOCAL, &event)) == 0)
        return false;
    checked("the put", event.status);
    b->ended++;
    return true;
}

static void put_once(struct bench *b)
{
    unsigned flags = PWC_NO_RCE | (b->way == WAIT ? PWC_WAIT | PWC_NO_LCE : 0), looks = 0;
    int rc;

    while ((rc = pwc_put(b->remote, 0, pwc_region_addr(b->region), b->size, PWC_CID_NONE,
                         PWC_CID_NONE, flags)) == -EAGAIN) {
        b->refused++;
        looks = take(b) ? 0 : looks + 1;
        if (b->way == YIELD && looks > 0)
            CHECK(pwc_yield(b->ctx, PWC_LOCAL, looks));
    }
    checked("pwc_put", rc);
}

static void run(struct bench *b, long puts)
{
    double start = now_us();
    struct pwc_event event;

    for (long i = 0; i < puts; i++)
        put_once(b);
    for (; b->way != WAIT && b->ended < puts; b->ended++) {
        CHECK(pwc_wait(b->ctx, PWC_ANY, PWC_LOCAL, &event, -1));
        checked("the put", event.status);
    }
    CHECK(pwc_flush(b->ctx, PWC_ANY, -1));
    printf("{\"test\":\"again\",\"way\":\"%s\",\"size\":%zu,\"rate_mps\":%.3f,\"refused\":%ld}\n",
           way_names[b->way], b->size, (double)puts / (now_us() - start), b->refused);
}

int main(int argc, char **argv)
{
    struct pwc_key key, keys[2];
    pwc_client *client;
    struct bench b = {.way = WAYS};

    for (int way = 0; argc == 4 && way < WAYS; way++)
        if (strcmp(argv[1], way_names[way]) == 0)
            b.way = (enum way)way;
    if (b.way == WAYS) {
        (void)fprintf(stderr, "usage: %s probe|yield|wait SIZE PUTS\n", argv[0]);
        return 2;
    }
    b.size = strtoull(argv[2], NULL, 0);
    CHECK(pwc_init(NULL, &client));
    CHECK(pwc_ctx_create(client, NULL, &b.ctx));
    CHECK(pwc_alloc(client, b.size > 0 ? b.size : 1, PWC_REMOTE_WRITE, &b.region));
    CHECK(pwc_region_key(b.region, &key));
    CHECK(pwc_exchange(b.ctx, &key, sizeof(key), keys));
    CHECK(pwc_bind(b.ctx, 1 - pwc_rank(client), &keys[1 - pwc_rank(client)], &b.remote));
    if (pwc_rank(client) == 0)
        run(&b, strtol(argv[3], NULL, 0));
    CHECK(pwc_barrier(b.ctx));
    CHECK(pwc_finalize(client));
    return 0;
}
