/* Owns the binds that are under way (bind_start.h). Thread: the one that owns the context. */
#include "clientlib/binds/bind_start.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "clientlib/attach/deadline.h"
#include "clientlib/attach/descriptor.h"
#include "clientlib/calls/operation.h"
#include "clientlib/binds/bind_request.h"
#include "clientlib/binds/unbound.h"

struct bind {
    struct daemon_post post;
    struct bind_request request;
    struct bind_answer answer;
    struct pwc_remote *remote;
    struct bind *next, *previous; /* in context_binds */
    int64_t deadline;
    bool again;   /* the bind was asked once more */
    bool event;   /* the bind ends with an event, for which room is held; else with a request */
    pwc_cid lid;  /* the event's id, or request_cid */
    uint8_t id[]; /* the bytes of `lid` */
};

/* ---- the list of the context ----------------------------------------------------------------- */

static void enlist(struct pwc_ctx *ctx, struct bind *b)
{
    struct context_binds *binds = &ctx->binds;

    b->previous = binds->last;
    *(binds->last ? &binds->last->next : &binds->first) = b;
    binds->last = b;
    binds->count++;
}

static void delist(struct pwc_ctx *ctx, struct bind *b)
{
    struct context_binds *binds = &ctx->binds;

    *(b->previous ? &b->previous->next : &binds->first) = b->next;
    *(b->next ? &b->next->previous : &binds->last) = b->previous;
    binds->count--;
}

int64_t binds_deadline(const struct pwc_ctx *ctx)
{
    return ctx->binds.first ? ctx->binds.first->deadline : DEADLINE_NEVER;
}

bool binds_await(const struct pwc_ctx *ctx, pwc_peer peer)
{
    const struct bind *b = ctx->binds.first;

    while (b && b->remote->peer != peer)
        b = b->next;
    return b != NULL;
}

/* ---- start ----------------------------------------------------------------------------------- */

static struct bind *make(struct pwc_remote *remote, const pwc_cid *lid, struct pwc_request *request)
{
    size_t id_bytes = request ? 0 : lid->size;
    struct bind *b = calloc(1, sizeof(*b) + id_bytes);

    if (!b)
        return NULL;
    bind_request_fill(&b->request, remote);
    b->post.request = &b->request.request;
    b->post.call.expected = PWC__CLIENT_REPLY__BODY_BOUND;
    b->post.call.accept = bind_accept;
    b->post.call.context = &b->answer;
    b->remote = remote;
    b->deadline = deadline_after_ms(remote->ctx->client->link.timeout_ms);
    b->event = request == NULL;
    b->lid = request ? request_cid(request) : *lid;
    if (id_bytes > 0)
        b->lid.data = memcpy(b->id, lid->data, id_bytes);
    return b;
}

/* Opens the mailbox for the context's first bind, and watches for answers. */
static int prepare(struct pwc_ctx *ctx)
{
    struct context_binds *binds = &ctx->binds;
    int rc = binds->mailbox.link ? 0 : daemon_mailbox_open(&binds->mailbox, &ctx->client->link);

    return rc == 0 ? descriptor_watch_answers(ctx) : rc;
}

static int start(struct pwc_ctx *ctx, struct pwc_remote *remote, const pwc_cid *lid,
                 struct pwc_request *request)
{
    struct bind *b = make(remote, lid, request);
    int rc = b ? 0 : -ENOMEM;

    if (rc == 0 && b->event)
        rc = channel_own_hold(&ctx->channel, (uint32_t)lid->size);
    if (rc < 0)
        goto free_bind;
    rc = prepare(ctx);
    if (rc < 0)
        goto release;
    rc = daemon_post(&ctx->binds.mailbox, &b->post);
    if (rc < 0)
        goto release;
    enlist(ctx, b);
    remote->bind = b;
    if (request)
        request_begin(request);
    return 0;

release:
    if (b->event)
        channel_own_release(&ctx->channel, (uint32_t)lid->size);
free_bind:
    free(b);
    return rc;
}

int pwc_bind_start(pwc_ctx *ctx, pwc_peer peer, const struct pwc_key *key, pwc_cid lid,
                   pwc_remote **out)
{
    struct pwc_request *request = operation_request(ctx, &lid);
    struct pwc_remote *remote;
    int rc;

    if (client_is_forked(ctx->client))
        return -EOWNERDEAD;
    if (lid.size > PWC_CID_MAX && !request)
        return -EINVAL;
    rc = bind_check_key(ctx, key);
    if (rc == 0)
        rc = channel_state(&ctx->channel);
    if (rc < 0)
        return rc;
    remote = bind_make_remote(ctx, peer, key);
    if (!remote)
        return -ENOMEM;
    rc = start(ctx, remote, &lid, request);
    if (rc < 0) {
        free(remote);
        return rc;
    }
    unbound_set(remote, UNBOUND_UNDER_WAY);
    unbound_add(remote);
    *out = remote;
    return 0;
}

/* ---- end ------------------------------------------------------------------------------------- */

/* Adds the event of the bind's end, or notes the end in its request. */
static void report(struct pwc_ctx *ctx, const struct bind *b, int status)
{
    uint64_t length = status == 0 ? b->remote->length : 0;

    if (!b->event) {
        (void)request_end_one(&ctx->channel.requests, b->lid.value, status, b->remote->peer,
                              length);
        return;
    }
    channel_own_release(&ctx->channel, (uint32_t)b->lid.size);
    channel_own(&ctx->channel, PWC_OP_BIND, b->remote->peer, length, &b->lid, status);
}

static void end(struct bind *b, int status)
{
    struct pwc_remote *remote = b->remote;
    struct pwc_ctx *ctx = remote->ctx;

    delist(ctx, b);
    remote->bind = NULL;
    if (status == 0) {
        unbound_forget(remote);
        bind_adopt(remote, &b->answer);
    } else {
        unbound_set(remote, UNBOUND_FAILED);
        remote->error = status;
    }
    report(ctx, b, status);
    free(b);
}

static struct bind *bind_of(struct daemon_post *post)
{
    return (struct bind *)(void *)((uint8_t *)post - offsetof(struct bind, post));
}

/* Whether the bind was asked once more, instead of ending with its answer. */
static bool ask_again(struct pwc_ctx *ctx, struct bind *b)
{
    if (b->post.call.result < 0 || b->again || !bind_is_to_be_asked_again(ctx, &b->answer))
        return false;
    b->again = true;
    b->post.call.result = daemon_post(&ctx->binds.mailbox, &b->post);
    return b->post.call.result == 0;
}

/* Ends binds whose deadline has passed. */
static void end_late(struct pwc_ctx *ctx)
{
    struct context_binds *binds = &ctx->binds;
    int64_t now = clock_now();
    char why[DAEMON_TEXT_MAX];

    /* A bind that has just been answered is left to the next call. */
    while (binds->first && binds->first->deadline <= now && daemon_withdraw(&binds->first->post)) {
        snprintf(why, sizeof(why), "the daemon has not answered a bind within %d ms",
                 ctx->client->link.timeout_ms);
        end(binds->first, daemon_link_refuse(&ctx->client->link, -ETIMEDOUT, why));
    }
}

void binds_take(struct pwc_ctx *ctx)
{
    struct daemon_post *post;

    while ((post = daemon_collect(&ctx->binds.mailbox)) != NULL)
        if (!ask_again(ctx, bind_of(post)))
            end(bind_of(post), post->call.result);
    end_late(ctx);
    /* The program may poll before its next probe, which then has to find what has ended here. */
    if (!ctx->channel.neighbours.polled)
        daemon_mailbox_silence(&ctx->binds.mailbox);
}

void binds_cancel(struct pwc_remote *remote)
{
    while (remote->bind)
        if (daemon_withdraw(&remote->bind->post))
            end(remote->bind, -ECANCELED);
        else
            binds_take(remote->ctx);
}

void binds_withdraw(struct pwc_ctx *ctx)
{
    for (struct bind *b = ctx->binds.first; b; b = b->next)
        (void)daemon_withdraw(&b->post);
}

void binds_free(struct pwc_ctx *ctx)
{
    while (ctx->binds.first) {
        struct bind *b = ctx->binds.first;

        delist(ctx, b);
        direct_way_drop(&b->answer.way);
        free(b);
    }
    daemon_mailbox_close(&ctx->binds.mailbox);
}
