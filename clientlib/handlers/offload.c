/* Owns the offloads of contexts (pwc/offload.h). Thread: the one that owns the context. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "clientlib/attach/context.h"
#include "clientlib/handlers/loaded.h"
#include "clientlib/binds/bind.h"
#include "clientlib/memory/region.h"
#include "proto/session_abi.h"

static_assert(sizeof(struct pwc_offload_event) == sizeof(struct offload_word),
              "events are shown as they come");

static int accept_created(void *context, const Pwc__ClientReply *reply, int *fds, int fd_count)
{
    struct pwc_offload *offload = context;

    (void)fds;
    offload->number = reply->offload_created->offload;
    return fd_count == 0 ? 1 : -EPROTO;
}

/* Describes a part of a region, which must have a key, for the daemon. False: the region has no
 * key. */
static bool window_of(const struct pwc_region *region, uint64_t offset, uint64_t length,
                      Pwc__OffloadRange *out)
{
    if (region->rights == 0)
        return false;
    out->slot = region->key.slot;
    out->generation = region->key.generation;
    out->offset = offset;
    out->length = length;
    return true;
}

static bool attr_valid(const struct pwc_ctx *ctx, const struct pwc_offload_attr *attr)
{
    if (attr->region && (attr->host || attr->index != 0))
        return false;
    if (!attr->program || attr->program->client != ctx->client || attr->reserved0 != 0 ||
        attr->target_count > PWC_OFFLOAD_TARGETS_MAX)
        return false;
    for (int i = 0; i < 3; i++)
        if (attr->reserved[i] != 0)
            return false;
    for (uint32_t i = 0; i < attr->target_count; i++)
        if (!attr->targets[i] || attr->targets[i]->ctx != ctx)
            return false;
    return true;
}

/* Gets the daemon's handles of the targets, and binds targets that are not bound yet: 0, or why one
 * cannot be bound.
 */
static int handles_of(const struct pwc_offload_attr *attr, uint32_t *handles)
{
    for (uint32_t i = 0; i < attr->target_count; i++) {
        struct pwc_remote *target = attr->targets[i];
        int rc = remote_is_unbound(target) ? remote_make_ready(target) : 0;

        if (rc < 0)
            return rc;
        handles[i] = target->handle;
    }
    return 0;
}

int pwc_offload_create(pwc_ctx *ctx, const struct pwc_offload_attr *attr, pwc_offload **out)
{
    Pwc__ClientRequest request = PWC__CLIENT_REQUEST__INIT;
    Pwc__OffloadCreate create = PWC__OFFLOAD_CREATE__INIT;
    Pwc__OffloadRange state = PWC__OFFLOAD_RANGE__INIT, host = PWC__OFFLOAD_RANGE__INIT,
                      scratch = PWC__OFFLOAD_RANGE__INIT;
    const pwc_region *window = attr->region ? attr->region : attr->host;
    uint32_t targets[PWC_OFFLOAD_TARGETS_MAX];
    struct pwc_offload *offload;
    int rc = client_may_ask(ctx->client);

    if (rc < 0)
        return rc;
    if (!attr_valid(ctx, attr) ||
        (attr->state && !window_of(attr->state, attr->state_offset, attr->state_length, &state)) ||
        (window && !window_of(window, 0, window->len, &host)) ||
        (attr->scratch && !window_of(attr->scratch, 0, attr->scratch->len, &scratch)))
        return daemon_link_refuse(&ctx->client->link, -EINVAL,
                                  "an offload needs a program of this client, regions with rights, "
                                  "up to 1024 targets of this context, and an index, or a region "
                                  "without index and host");
    rc = handles_of(attr, targets);
    if (rc < 0)
        return rc;
    offload = malloc(sizeof(*offload));
    if (!offload)
        return -ENOMEM;
    *offload = (struct pwc_offload){.client = ctx->client, .session = ctx->session};
    create.session = ctx->session;
    create.program = attr->program->number;
    create.index = attr->index;
    create.flags = attr->flags;
    create.cookie = attr->cookie;
    create.state = attr->state ? &state : NULL;
    create.host = window ? &host : NULL;
    create.takes = attr->region ? OFFLOAD_PUTS : OFFLOAD_MESSAGES;
    create.scratch = attr->scratch ? &scratch : NULL;
    create.n_targets = attr->target_count;
    create.targets = targets;
    request.body_case = PWC__CLIENT_REQUEST__BODY_OFFLOAD_CREATE;
    request.offload_create = &create;
    rc = daemon_call(&ctx->client->link, &request, PWC__CLIENT_REPLY__BODY_OFFLOAD_CREATED,
                     accept_created, offload);
    if (rc < 0) {
        free(offload);
        return rc;
    }
    pthread_mutex_lock(&ctx->client->lock);
    offload->next = ctx->client->offloads;
    ctx->client->offloads = offload;
    pthread_mutex_unlock(&ctx->client->lock);
    *out = offload;
    return 0;
}

static void unlink_offload(struct pwc_offload *offload)
{
    struct pwc_client *client = offload->client;
    struct pwc_offload **at;

    pthread_mutex_lock(&client->lock);
    for (at = &client->offloads; *at != offload; at = &(*at)->next)
        continue;
    *at = offload->next;
    pthread_mutex_unlock(&client->lock);
}

int pwc_offload_destroy(pwc_offload *offload)
{
    Pwc__ClientRequest request = PWC__CLIENT_REQUEST__INIT;
    Pwc__OffloadDestroy destroy = PWC__OFFLOAD_DESTROY__INIT;
    int rc = client_may_ask(offload->client);

    if (rc < 0)
        return rc;
    destroy.session = offload->session;
    destroy.offload = offload->number;
    request.body_case = PWC__CLIENT_REQUEST__BODY_OFFLOAD_DESTROY;
    request.offload_destroy = &destroy;
    rc = daemon_end(&offload->client->link, &request);
    unlink_offload(offload);
    free(offload);
    return rc;
}

static int enable(pwc_offload *offload, bool enabled)
{
    Pwc__ClientRequest request = PWC__CLIENT_REQUEST__INIT;
    Pwc__OffloadEnable change = PWC__OFFLOAD_ENABLE__INIT;
    int rc = client_may_ask(offload->client);

    if (rc < 0)
        return rc;
    change.session = offload->session;
    change.offload = offload->number;
    change.enabled = enabled;
    request.body_case = PWC__CLIENT_REQUEST__BODY_OFFLOAD_ENABLE;
    request.offload_enable = &change;
    return daemon_call(&offload->client->link, &request, PWC__CLIENT_REPLY__BODY_DONE, NULL, NULL);
}

int pwc_offload_disable(pwc_offload *offload)
{
    return enable(offload, false);
}

int pwc_offload_enable(pwc_offload *offload)
{
    return enable(offload, true);
}

static int accept_view(void *context, const Pwc__ClientReply *reply, int *fds, int fd_count)
{
    const Pwc__OffloadViewed *in = reply->offload_viewed;
    struct pwc_offload_view *out = context;

    (void)fds;
    if (fd_count != 0 || in->n_counters != sizeof(out->counters) / sizeof(out->counters[0]))
        return -EPROTO;
    *out = (struct pwc_offload_view){.disabled = in->disabled,
                                     .messages = in->messages,
                                     .bytes = in->bytes,
                                     .dropped = in->dropped,
                                     .deferred = in->deferred,
                                     .failed = in->failed,
                                     .faults = in->faults,
                                     .units = in->units,
                                     .units_p50 = in->units_p50,
                                     .units_p99 = in->units_p99,
                                     .units_max = in->units_max,
                                     .sends = in->sends,
                                     .sends_failed = in->sends_failed,
                                     .queued = in->queued,
                                     .gets = in->gets};
    memcpy(out->counters, in->counters, sizeof(out->counters));
    return 1;
}

int pwc_offload_view(pwc_offload *offload, struct pwc_offload_view *out)
{
    Pwc__ClientRequest request = PWC__CLIENT_REQUEST__INIT;
    Pwc__OffloadView view = PWC__OFFLOAD_VIEW__INIT;
    int rc = client_may_ask(offload->client);

    if (rc < 0)
        return rc;
    view.session = offload->session;
    view.offload = offload->number;
    request.body_case = PWC__CLIENT_REQUEST__BODY_OFFLOAD_VIEW;
    request.offload_view = &view;
    return daemon_call(&offload->client->link, &request, PWC__CLIENT_REPLY__BODY_OFFLOAD_VIEWED,
                       accept_view, out);
}
