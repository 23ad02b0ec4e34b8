/*
 * The cost of the library's calls for a program that waits for the local end of each put: by
 * events, or by a request; or for the ends of atomics, by events. There is one context, and a
 * daemon on a thread, which is held back while the program submits; so instructions can be counted
 * by part (bench/instructions).
 *
 *     request_cost events|requests|atomics ROUNDS
 *
 * Thread: the daemon has one of its own.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "pwc/atomic.h"
#include "pwc/request.h"
#include "tests/clientlib/daemon/fake/daemon.h"

enum { BATCH = 1000 };

struct world {
    struct fake_daemon daemon;
    pwc_client *client;
    pwc_ctx *ctx;
    pwc_remote *remote;
    bool atomics;
};

/* These are separate functions, so that instructions can be counted for each. */
int cost_submit(struct world *w, pwc_cid lid);
int cost_ends(struct world *w, pwc_request *request);

static int submit_one(struct world *w, pwc_cid lid)
{
    static const uint64_t payload;

    if (w->atomics)
        return pwc_atomic(w->remote, 0, PWC_XOR, PWC_U64, &payload, 1, lid, PWC_CID_NONE,
                          PWC_NO_RCE);
    return pwc_put(w->remote, 0, &payload, sizeof(payload), lid, PWC_CID_NONE, PWC_NO_RCE);
}

__attribute__((noinline)) int cost_submit(struct world *w, pwc_cid lid)
{
    int rc = 0;

    for (int i = 0; i < BATCH && rc == 0; i++)
        rc = submit_one(w, lid);
    return rc;
}

__attribute__((noinline)) int cost_ends(struct world *w, pwc_request *request)
{
    struct pwc_event event;
    int seen = 0;

    if (request)
        return pwc_test(request, NULL) == 1 ? 0 : -1;
    while (pwc_probe(w->ctx, PWC_ANY, PWC_LOCAL, &event) == 1)
        seen++;
    return seen == BATCH ? 0 : -1;
}

/* A client of the daemon whose context is bound to itself. */
static int world_open(struct world *w)
{
    struct pwc_attr attr = {.socket = w->daemon.path, .job = "cost", .size = 1};
    pwc_region *region;
    struct pwc_key key;
    int rc = fake_daemon_start(&w->daemon, NULL);

    if (rc == 0)
        rc = pwc_init(&attr, &w->client);
    if (rc == 0)
        rc = pwc_ctx_create(w->client, NULL, &w->ctx);
    if (rc == 0)
        rc = pwc_alloc(w->client, 4096, PWC_REMOTE_RW, &region);
    if (rc == 0)
        rc = pwc_region_key(region, &key);
    return rc < 0 ? rc : pwc_bind(w->ctx, pwc_ctx_peer(w->ctx), &key, &w->remote);
}

int main(int argc, char **argv)
{
    unsigned rounds = argc == 3 ? (unsigned)strtoul(argv[2], NULL, 10) : 0;
    pwc_request *request = NULL;
    pwc_cid lid = pwc_cid_u64(1);
    static struct world world, *w = &world;
    int rc;

    if (rounds == 0 || (strcmp(argv[1], "events") != 0 && strcmp(argv[1], "requests") != 0 &&
                        strcmp(argv[1], "atomics") != 0)) {
        fprintf(stderr, "usage: request_cost events|requests|atomics ROUNDS\n");
        return 2;
    }
    w->atomics = argv[1][0] == 'a';
    rc = world_open(w);
    if (rc == 0 && argv[1][0] == 'r') {
        rc = pwc_request_create(w->ctx, &request);
        lid = pwc_cid_request(request);
    }
    for (unsigned i = 1; i <= rounds && rc == 0; i++) {
        fake_hold(&w->daemon, true);
        rc = cost_submit(w, lid);
        fake_hold(&w->daemon, false);
        while (fake_executed(&w->daemon) < i * BATCH)
            usleep(100);
        if (rc == 0)
            rc = cost_ends(w, request);
    }
    if (rc < 0)
        fprintf(stderr, "request_cost: %s\n", pwc_strerror(rc));
    (void)pwc_finalize(w->client);
    fake_daemon_stop(&w->daemon);
    return rc < 0;
}
