/*
 * Owns contexts: their session's mapping and descriptors, from creation to the end. Thread: the one
 * that uses the context.
 */
#include "clientlib/attach/context.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "clientlib/attach/deadline.h"
#include "clientlib/calls/series.h"
#include "clientlib/calls/wait.h"
#include "clientlib/binds/bind_start.h"
#include "clientlib/memory/window.h"
#include "clientlib/neighbours/direct.h"
#include "clientlib/teams/teams.h"
#include "shm_ring/doorbell.h"
#include "shm_ring/fault.h"

enum {
    RING_DEFAULT = 256 << 10,
    SUBMIT_MIN = 16 << 10, /* two ids of full length fit into a quarter of this */
    MESSAGES_MIN = 32 << 10,
    STAGED_NS = 1000000000,
};

enum { FD_SESSION, FD_DOORBELL, FD_WAKE, FD_COUNT };

struct opened {
    uint32_t session, context;
    struct session_sizes sizes;
    int fds[FD_COUNT]; /* -1: missing, the last ones first, because this process can open no more */
};

static int accept_opened(void *context, const Pwc__ClientReply *reply, int *fds, int fd_count)
{
    const Pwc__ContextOpened *message = reply->context_opened;
    struct opened *opened = context;

    if (fd_count > FD_COUNT || !message->rings)
        return -EPROTO;
    opened->session = message->session;
    opened->context = message->context;
    opened->sizes = (struct session_sizes){.submit = message->rings->submit,
                                           .local = message->rings->local,
                                           .remote = message->rings->remote,
                                           .reply_submit = message->rings->reply_submit,
                                           .reply_event = message->rings->reply_event};
    for (int i = 0; i < FD_COUNT; i++)
        opened->fds[i] = -1;
    for (int i = 0; i < fd_count; i++) {
        opened->fds[i] = fds[i];
        fds[i] = -1;
    }
    return 1;
}

static int request_open(struct daemon_link *link, const struct session_sizes *sizes,
                        struct opened *opened)
{
    Pwc__ClientRequest request = PWC__CLIENT_REQUEST__INIT;
    Pwc__ContextOpen open = PWC__CONTEXT_OPEN__INIT;
    Pwc__Rings rings = PWC__RINGS__INIT;

    rings.submit = sizes->submit;
    rings.local = sizes->local;
    rings.remote = sizes->remote;
    rings.reply_submit = sizes->reply_submit;
    rings.reply_event = sizes->reply_event;
    open.rings = &rings;
    open.direct = doorbell_register() == 0;
    request.body_case = PWC__CLIENT_REQUEST__BODY_CONTEXT_OPEN;
    request.context_open = &open;
    return daemon_call(link, &request, PWC__CLIENT_REPLY__BODY_CONTEXT_OPENED, accept_opened,
                       opened);
}

static int request_close(struct daemon_link *link, uint32_t session)
{
    Pwc__ClientRequest request = PWC__CLIENT_REQUEST__INIT;
    Pwc__ContextClose close_request = PWC__CONTEXT_CLOSE__INIT;

    close_request.session = session;
    request.body_case = PWC__CLIENT_REQUEST__BODY_CONTEXT_CLOSE;
    request.context_close = &close_request;
    return daemon_end(link, &request);
}

/* The first power of two from `min` on that is enough; -EINVAL: over the largest ring. */
static int ring_size(uint32_t wanted, uint32_t min, uint32_t *size)
{
    *size = min;
    if (wanted == 0)
        wanted = RING_DEFAULT;
    if (wanted > SESSION_RING_MAX)
        return -EINVAL;
    while (*size < wanted)
        *size *= 2;
    return 0;
}

/* A quarter of a message ring holds the longest message with a local id. */
static uint32_t messages_min(const struct pwc_client *client)
{
    uint64_t longest = sizeof(struct submit_record) + SESSION_ID_MAX +
                       abi_pad8(message_bytes_max((uint32_t)pwc_am_max_medium(client)));
    uint32_t min = MESSAGES_MIN;

    while (min < 4 * longest)
        min *= 2;
    return min;
}

static int map_session(struct pwc_ctx *ctx, const struct opened *opened, uint32_t unexpected)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    uint64_t bytes = session_bytes(&opened->sizes);
    int rc = opened->fds[FD_WAKE] < 0 ? -EMFILE
                                      : mapping_adopt(&ctx->mapping, opened->fds[FD_SESSION],
                                                      (bytes + page - 1) & ~(uint64_t)(page - 1));

    if (rc < 0) {
        if (opened->fds[FD_SESSION] >= 0)
            close(opened->fds[FD_SESSION]);
        return rc;
    }
    mapping_close_fd(&ctx->mapping);
    rc = channel_init(&ctx->channel, ctx->mapping.base, ctx->mapping.size);
    if (rc == 0 && unexpected > 0)
        channel_set_unexpected(&ctx->channel, unexpected);
    if (rc == 0 && doorbell_register() == 0)
        channel_set_registered(&ctx->channel);
    if (rc == 0)
        rc = pending_open(&ctx->channel.pending, session_local_limit(opened->sizes.local));
    return rc;
}

int pwc_ctx_create(pwc_client *client, const struct pwc_ctx_attr *attr, pwc_ctx **out)
{
    static const struct pwc_ctx_attr defaults;
    struct opened opened;
    struct pwc_ctx *ctx;
    struct session_sizes sizes;
    int rc = client_may_ask(client);

    if (rc < 0)
        return rc;
    if (!attr)
        attr = &defaults;
    for (size_t i = 0; i < sizeof(attr->reserved) / sizeof(attr->reserved[0]); i++)
        if (attr->reserved[i] != 0)
            return daemon_link_refuse(&client->link, -EINVAL,
                                      "reserved words of struct pwc_ctx_attr are not 0: zero the "
                                      "struct");
    if (ring_size(attr->submit_bytes, SUBMIT_MIN, &sizes.submit) < 0 ||
        ring_size(attr->local_bytes, SESSION_RING_MIN, &sizes.local) < 0 ||
        ring_size(attr->remote_bytes, messages_min(client), &sizes.remote) < 0 ||
        ring_size(attr->answer_bytes, messages_min(client), &sizes.reply_submit) < 0 ||
        ring_size(attr->reply_bytes, messages_min(client), &sizes.reply_event) < 0)
        return daemon_link_refuse(
            &client->link, -EINVAL,
            "a ring of struct pwc_ctx_attr of more than 64 MiB: give less, or "
            "0 for 256 KiB");
    ctx = calloc(1, sizeof(*ctx));
    if (!ctx)
        return -ENOMEM;
    ctx->client = client;
    ctx->mapping.fd = ctx->doorbell_fd = ctx->wake_fd = ctx->descriptor = -1;
    patience_init(&ctx->patience, PATIENCE_ADAPTIVE, PATIENCE_SLICE_NS);

    rc = request_open(&client->link, &sizes, &opened);
    if (rc < 0)
        goto free_ctx;
    ctx->session = opened.session;
    ctx->number = opened.context;
    ctx->doorbell_fd = opened.fds[FD_DOORBELL];
    ctx->wake_fd = opened.fds[FD_WAKE];
    FAULT(CONTEXT_OPENED);
    rc = map_session(ctx, &opened, attr->unexpected);
    if (rc < 0)
        goto close_session;
    FAULT(CONTEXT_MAPPED);

    pthread_mutex_lock(&client->lock);
    ctx->next = client->contexts;
    client->contexts = ctx;
    pthread_mutex_unlock(&client->lock);
    *out = ctx;
    return 0;

close_session:
    (void)request_close(&client->link, ctx->session);
free_ctx:
    context_free(ctx);
    return rc;
}

void context_free(struct pwc_ctx *ctx)
{
    series_drop(ctx);
    free(ctx->series.pool);
    while (ctx->bound.first) {
        struct pwc_remote *remote = ctx->bound.first;

        bound_forget(&ctx->bound, remote);
        direct_close(ctx, remote);
        free(remote);
    }
    bound_destroy(&ctx->bound);
    while (ctx->unbound) {
        struct pwc_remote *remote = ctx->unbound;

        ctx->unbound = remote->next;
        free(remote);
    }
    binds_free(ctx);
    while (ctx->windows)
        window_free(ctx->windows);
    teams_drop(ctx);
    span_view_destroy(&ctx->spans);
    landing_view_destroy(&ctx->landings);
    handlers_destroy(&ctx->handlers);
    channel_destroy(&ctx->channel);
    mapping_destroy(&ctx->mapping);
    if (ctx->doorbell_fd >= 0)
        close(ctx->doorbell_fd);
    if (ctx->wake_fd >= 0)
        close(ctx->wake_fd);
    if (ctx->descriptor >= 0)
        close(ctx->descriptor);
    free(ctx);
}

/* The daemon reads and writes the staging until the operations that use it have ended: waits for
 * them, up to STAGED_NS. */
static void end_staged(struct pwc_ctx *ctx)
{
    int64_t now = clock_now(), deadline = now + STAGED_NS;
    struct channel *ch = &ctx->channel;

    ctx->events.run = NULL;
    wait_begin(ctx, SESSION_WAITS_FLUSH);
    for (; grains_in_use(&ch->pending.grains) && now < deadline; now = clock_now()) {
        if (channel_collect(ch) < 0 || channel_state(ch) < 0)
            break;
        if (grains_in_use(&ch->pending.grains))
            wait_pause(ctx, PWC_LOCAL, NULL, now, deadline);
    }
    wait_end(ctx);
}

int pwc_ctx_destroy(pwc_ctx *ctx)
{
    int rc = client_may_ask(ctx->client);

    if (rc == 0)
        series_drop(ctx);
    if (rc == 0 && grains_in_use(&ctx->channel.pending.grains))
        end_staged(ctx);
    /* After an error (no answer in time, or no memory there) the daemon ends the session later, at
     * the latest with the client. */
    if (rc == 0)
        (void)context_end(ctx);
    return rc;
}

int context_end(struct pwc_ctx *ctx)
{
    struct pwc_client *client = ctx->client;
    struct pwc_ctx **at = &client->contexts;
    int rc;

    if (ctx->channel.submit.open)
        channel_cancel(&ctx->channel, &ctx->channel.submit);
    if (ctx->channel.neighbours.wakes_due)
        wait_for_due_wakes(ctx);
    pthread_mutex_lock(&client->lock);
    while (*at != ctx)
        at = &(*at)->next;
    *at = ctx->next;
    pthread_mutex_unlock(&client->lock);
    binds_withdraw(ctx);
    rc = request_close(&client->link, ctx->session);
    FAULT(CONTEXT_LEFT);
    /* Operations that were given up may still write into the staging: then it is freed with the
     * client. */
    if (rc == 0 && !grains_in_use(&ctx->channel.pending.grains))
        staging_close(&ctx->staging, client);
    context_free(ctx);
    return rc;
}

pwc_peer pwc_ctx_peer(const pwc_ctx *ctx)
{
    return pwc_peer_of(ctx->client->rank, ctx->number);
}
