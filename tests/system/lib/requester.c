/* The rank that makes requests to its daemon (requester.h). */
#include "tests/system/lib/requester.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Returns whether the request succeeded; prints an error. */
static bool judge(struct requester *r, const char *what, int rc)
{
    if (rc < 0) {
        char why[200] = "";

        pwc_error_text(r->rank.client, why, sizeof(why));
        fprintf(stderr, "%s: %s. %s (round %llu)\n", what, pwc_strerror(rc), why,
                (unsigned long long)r->rounds);
        r->failed = true;
    }
    return rc == 0;
}

static void try_context(struct requester *r)
{
    pwc_ctx *ctx;
    int rc = pwc_ctx_create(r->rank.client, NULL, &ctx);

    if (rc == -ECONNABORTED && r->may_abort)
        r->aborted++;
    else if (judge(r, "pwc_ctx_create", rc))
        judge(r, "pwc_ctx_destroy", pwc_ctx_destroy(ctx));
}

static void try_memory(struct requester *r)
{
    pwc_region *region;

    if (judge(r, "pwc_alloc", pwc_alloc(r->rank.client, 8192, PWC_REMOTE_RW, &region)))
        judge(r, "pwc_region_free", pwc_region_free(region));
}

static void try_bind(struct requester *r)
{
    pwc_remote *remote;

    if (judge(r, "pwc_bind",
              pwc_bind(r->rank.ctx, pwc_peer_of(r->rank.number, 0), &r->key, &remote)))
        judge(r, "pwc_unbind", pwc_unbind(remote));
    if (judge(r, "pwc_bind of a peer",
              pwc_bind(r->rank.ctx, pwc_peer_of(r->rank.number, 0), NULL, &remote)))
        judge(r, "pwc_unbind", pwc_unbind(remote));
}

static void *run(void *argument)
{
    struct requester *r = argument;

    while (!r->stop && !r->failed) {
        try_context(r);
        try_memory(r);
        try_bind(r);
        judge(r, "pwc_barrier", pwc_barrier(r->rank.ctx));
        r->rounds++;
    }
    return NULL;
}

int requester_start(struct requester *r, const char *socket, const char *job, bool may_abort)
{
    int rc;

    memset(r, 0, sizeof(*r));
    r->may_abort = may_abort;
    rc = rank_attach(&r->rank, socket, job, 0, 1, 4096);
    if (rc == 0)
        rc = pwc_region_key(r->rank.region, &r->key);
    if (rc == 0)
        rc = -pthread_create(&r->thread, NULL, run, r);
    r->runs = rc == 0;
    return rc;
}

bool requester_stop(struct requester *r)
{
    r->stop = true;
    if (r->runs)
        pthread_join(r->thread, NULL);
    rank_detach(&r->rank);
    return !r->failed;
}
