/* Owns the making and the end of segments and regions (request_memory.h). Thread: control. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include "daemon/control/clients/client.h"
#include "shm_ring/fault.h"
#include "shm_ring/sigbus.h"
#include "daemon/control/clients/client_stream.h"
#include "daemon/control/clients/client_table.h"
#include "daemon/control/clients/client_calls.h"
#include "daemon/control/clients/reply.h"
#include "daemon/control/requests/request_memory.h"

/* ---- segments -------------------------------------------------------------------------------- */

void segment_free(struct client_segment *s)
{
    struct client *c = s->client;
    struct client_segment **at = &c->segments;

    while (*at && *at != s)
        at = &(*at)->next;
    if (*at) {
        *at = s->next;
        quota_give(c, QUOTA_SEGMENTS, 1);
        quota_give(c, QUOTA_MEMORY, s->mapping.size);
    }
    if (s->range >= 0)
        sigbus_remove(s->range);
    mapping_destroy(&s->mapping);
    if (s->reader >= 0) {
        close(s->reader);
        c->control->segments_shared--;
    }
    free(s);
}

static struct client_segment *segment_find(struct client *c, uint32_t handle)
{
    struct client_segment *s = worker_segment(c->worker, handle);

    return s && s->client == c && !s->opening && !s->closing ? s : NULL;
}

/* The engine has the segment. The reply is sent when the segment is registered. */
static void opened(struct call *call)
{
    struct client *c = call->owner;
    struct client_segment *s = (struct client_segment *)(uintptr_t)call->cookie;

    if (call->result < 0) {
        if (c->state != CLIENT_ENDING)
            reply_error(c, s->request, call->result, "a segment of %zu bytes: %s", s->mapping.size,
                        strerror(-call->result));
        segment_free(s);
        return;
    }
    s->handle = (uint32_t)call->result;
    s->generation = call->segment.generation;
    c->worker->segments[s->handle] = s;
}

static void closed_or_refused(struct call *call)
{
    struct client *c = call->owner;
    struct client_segment *s = worker_segment(c->worker, call->segment.segment);

    /* On success the notice that the segment is closed answers the request. */
    if (call->result < 0 && s && s->client == c && s->closing) {
        s->closing = false;
        if (s->request && c->state == CLIENT_SERVED)
            reply_error(c, s->request, call->result, "segment %u: %s", s->handle,
                        call->result == -EBUSY ? "regions of it are open: close them first"
                                               : strerror(-call->result));
    }
}

static int close_segment(struct client_segment *s, uint32_t request)
{
    struct client *c = s->client;
    struct call *call = client_call(c, CALL_SEGMENT_CLOSE, closed_or_refused);

    if (!call)
        return -ENOMEM;
    s->closing = true;
    s->request = request;
    call->segment = (struct call_segment){.client = c->number, .segment = s->handle};
    call_post(c->worker->progress, call);
    return 0;
}

static void keep(struct client_segment *s)
{
    struct store *store = &s->client->control->store;
    uint32_t engine = s->client->worker->engine;

    if (!store->kept)
        return;
    if (!store_add_for(store, s->client->uid, s->mapping.fd, "%u.segment.%u.%u", engine, s->handle,
                       s->generation) ||
        (s->reader >= 0 && !store_add_for(store, s->client->uid, s->reader, "%u.reader.%u.%u",
                                          engine, s->handle, s->generation)))
        client_inflight(s->client)->lost |= INFLIGHT_UNKEPT;
}

void segment_lost(const struct client_segment *s, int status)
{
    struct client *c = s->client;
    struct log_subject about = client_subject(c);

    if (s->closing || c->state == CLIENT_ENDING)
        return;
    log_about(&c->control->log, LOG_LEVEL_ERROR, &about,
              "a segment of %zu bytes cannot be registered again: %s: pid %d is hung up on",
              s->mapping.size, strerror(-status), (int)c->pid);
    client_doom(c, CLIENT_UNREGISTERED);
}

void segment_ready(struct worker *w, uint32_t handle, int status)
{
    struct client_segment *s = worker_segment(w, handle);
    Pwc__ClientReply reply = PWC__CLIENT_REPLY__INIT;
    Pwc__SegmentOpened opened_reply = PWC__SEGMENT_OPENED__INIT;
    int descriptor;

    if (s && !s->opening && status < 0)
        segment_lost(s, status);
    if (!s || !s->opening)
        return;
    s->opening = false;
    FAULT(SEGMENT_READY);
    if (s->client->state == CLIENT_ENDING)
        return;
    if (status < 0) {
        reply_error(s->client, s->request, status,
                    "a segment of %zu bytes cannot be registered: %s", s->mapping.size,
                    strerror(-status));
        (void)close_segment(s, 0);
        return;
    }
    descriptor = s->mapping.fd;
    s->mapping.fd = -1; /* the reply owns it now; the mapping stays */
    if (s->reader >= 0 || w->control->store.kept)
        s->mapping.fd = fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
    keep(s);
    opened_reply.segment = handle;
    opened_reply.length = s->mapping.size;
    reply.id = s->request;
    reply.body_case = PWC__CLIENT_REPLY__BODY_SEGMENT_OPENED;
    reply.segment_opened = &opened_reply;
    client_reply(s->client, &reply, &descriptor, 1);
}

/* Whether to keep the two descriptors of a new segment for neighbours: up to a quarter of the limit
 * of descriptors. So a user who opens many segments can keep others from using pairs, but cannot
 * take all descriptors of the daemon. */
static bool may_share(const struct control *control)
{
    struct rlimit limit = {0}; /* where the limit is unknown, keep none */

    (void)getrlimit(RLIMIT_NOFILE, &limit);
    return control->config->direct == CONFIG_DIRECT_AUTO &&
           control->segments_shared < limit.rlim_cur / 8;
}

void request_segment_open(struct client *c, uint32_t request, const Pwc__SegmentOpen *open)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    uint64_t length = open->length;
    bool direct = may_share(c->control);
    struct client_segment *s;
    struct call *call;
    char why[REQUEST_WHY_MAX];
    int rc;

    if (length == 0 || length > (UINT64_C(1) << 46)) {
        reply_error(c, request, -EINVAL, "a segment of %llu bytes: give 1 to 2^46",
                    (unsigned long long)length);
        return;
    }
    length = (length + page - 1) & ~(page - 1);
    rc = quota_take_one(c, QUOTA_SEGMENTS, length, why, sizeof(why));
    if (rc < 0) {
        reply_error(c, request, rc, "a segment: %s", why);
        return;
    }
    rc = -ENOMEM;
    s = calloc(1, sizeof(*s));
    if (!s)
        goto fail;
    *s = (struct client_segment){.client = c,
                                 .handle = CLIENT_NONE,
                                 .reader = -1,
                                 .range = -1,
                                 .request = request,
                                 .opening = true};
    s->mapping.fd = -1;
    rc = mapping_create_with_reader(&s->mapping, "pwc-segment", length, direct ? &s->reader : NULL);
    c->control->segments_shared += s->reader >= 0;
    FAULT(SEGMENT_MADE);
    if (rc == 0) {
        s->range = sigbus_add(s->mapping.base, s->mapping.size);
        rc = s->range < 0 ? s->range : 0;
    }
    call = rc == 0 ? client_call(c, CALL_SEGMENT_OPEN, opened) : NULL;
    if (!call) {
        rc = rc < 0 ? rc : -ENOMEM;
        segment_free(s);
        goto fail;
    }
    s->next = c->segments;
    c->segments = s;
    call->cookie = (uintptr_t)s;
    call->segment = (struct call_segment){
        .client = c->number, .base = s->mapping.base, .length = length, .range = s->range};
    call_post(c->worker->progress, call);
    return;
fail:
    quota_give(c, QUOTA_SEGMENTS, 1);
    quota_give(c, QUOTA_MEMORY, length);
    reply_error(c, request, rc, "a segment of %llu bytes: %s", (unsigned long long)length,
                strerror(-rc));
}

void request_segment_close(struct client *c, uint32_t request, const Pwc__SegmentClose *close_it)
{
    struct client_segment *s = segment_find(c, close_it->segment);

    if (!s)
        reply_error(c, request, -EINVAL, "segment %u is not yours, or not open", close_it->segment);
    else if (close_segment(s, request) < 0)
        reply_error(c, request, -ENOMEM, "this daemon is out of memory");
}

static void forget(void *segment)
{
    struct client_segment *s = segment;

    FAULT(SEGMENT_DETACHED);
    segment_free(s);
}

void segment_closed(struct worker *w, uint32_t handle)
{
    struct client_segment *s = worker_segment(w, handle);

    if (!s)
        return;
    w->segments[handle] = NULL;
    store_remove(&w->control->store, "%u.segment.%u.%u", w->engine, handle, s->generation);
    store_remove(&w->control->store, "%u.reader.%u.%u", w->engine, handle, s->generation);
    s->detach.request = s->closing ? s->request : 0;
    s->detach.object = s;
    s->detach.forget = forget;
    client_detach(s->client, &s->detach,
                  (struct call_detach){.segment = true, .handle = handle, .base = s->mapping.base});
}

/* ---- regions --------------------------------------------------------------------------------- */

static void region_opened(struct call *call)
{
    struct client *c = call->owner;
    const struct engine_key *key = &call->region.key;
    Pwc__ClientReply reply = PWC__CLIENT_REPLY__INIT;
    Pwc__RegionOpened opened_reply = PWC__REGION_OPENED__INIT;
    Pwc__Key packed = PWC__KEY__INIT;

    FAULT(REGION_MADE);
    if (call->result < 0) {
        quota_give(c, QUOTA_REGIONS, 1);
        if (c->state == CLIENT_SERVED)
            reply_error(c, (uint32_t)call->cookie, call->result,
                        "a region of %llu bytes at %llu of segment %u: %s",
                        (unsigned long long)call->region.length,
                        (unsigned long long)call->region.offset, call->region.segment,
                        strerror(-call->result));
    } else if (c->state == CLIENT_SERVED) {
        packed.node = key->node;
        packed.slot = key->slot;
        packed.generation = key->generation;
        packed.secret.len = sizeof(key->secret);
        packed.secret.data = (uint8_t *)(uintptr_t)key->secret;
        opened_reply.key = &packed;
        reply.id = (uint32_t)call->cookie;
        reply.body_case = PWC__CLIENT_REPLY__BODY_REGION_OPENED;
        reply.region_opened = &opened_reply;
        client_reply(c, &reply, NULL, 0);
    }
}

void request_region_open(struct client *c, uint32_t request, const Pwc__RegionOpen *open)
{
    struct client_segment *s = segment_find(c, open->segment);
    char why[REQUEST_WHY_MAX];
    struct call *call;
    int rc;

    if (!s) {
        reply_error(c, request, -EINVAL, "segment %u is not yours, or not open", open->segment);
        return;
    }
    if (!(open->offset <= s->mapping.size && open->length <= s->mapping.size - open->offset) ||
        open->length == 0) {
        reply_error(c, request, -ERANGE, "a region of %llu bytes at %llu: segment %u has %zu",
                    (unsigned long long)open->length, (unsigned long long)open->offset,
                    open->segment, s->mapping.size);
        return;
    }
    if (open->rights == 0 || open->rights & ~(ENGINE_REMOTE_WRITE | ENGINE_REMOTE_READ)) {
        reply_error(c, request, -EINVAL, "rights 0x%x: give 1 (write), 2 (read) or 3",
                    open->rights);
        return;
    }
    rc = quota_take(c, QUOTA_REGIONS, 1, why, sizeof(why));
    if (rc < 0) {
        reply_error(c, request, rc, "a region: %s", why);
        return;
    }
    call = client_call(c, CALL_REGION_OPEN, region_opened);
    if (!call) {
        quota_give(c, QUOTA_REGIONS, 1);
        reply_error(c, request, -ENOMEM, "this daemon is out of memory");
        return;
    }
    call->cookie = request;
    call->region = (struct call_region){.client = c->number,
                                        .segment = open->segment,
                                        .offset = open->offset,
                                        .length = open->length,
                                        .rights = open->rights};
    call_post(c->worker->progress, call);
}

/* The region was being closed already; its close will answer this request when it ends. So the
 * earlier request to close the region fails now. If there is no earlier request, an earlier process
 * of the daemon had received it, and the quota does not count the region yet. */
static void ask_instead(struct client *c, const struct pending *p)
{
    struct pending_table *table = &c->control->pending;
    struct pending *other;
    uint32_t at = 0;

    while ((other = pending_next(table, &at)))
        if (other != p && other->kind == PENDING_REGION_CLOSE && other->client == c &&
            other->region == p->region) {
            uint32_t request = other->request;

            pending_remove(table, other);
            reply_error(c, request, -EALREADY, "region %u: request %u asks for the same",
                        (uint32_t)p->region, p->request);
            return;
        }
    quota_charge(c, QUOTA_REGIONS, 1);
}

static void region_close_posted(struct call *call)
{
    struct client *c = call->owner;
    struct pending *p =
        pending_find(&c->control->pending, call->region.cookie, PENDING_REGION_CLOSE);

    if (call->result == 1 && p)
        ask_instead(c, p);
    if (call->result < 0 && p) {
        uint32_t request = p->request;

        pending_remove(&c->control->pending, p);
        reply_error(c, request, call->result, "region %u%s", call->region.slot,
                    call->result == -EBUSY ? ": an offload uses it: destroy that first"
                                           : " is not yours, or not open");
    }
}

void request_region_close(struct client *c, uint32_t request, const Pwc__RegionClose *close_it)
{
    struct control *control = c->control;
    uint64_t cookie;
    struct pending *p = pending_add(&control->pending, PENDING_REGION_CLOSE, c, request, &cookie);
    struct call *call = p ? client_call(c, CALL_REGION_CLOSE, region_close_posted) : NULL;

    if (!call) {
        if (p)
            pending_remove(&control->pending, p);
        reply_error(c, request, -ENOBUFS, "too many requests wait in this daemon: try again later");
        return;
    }
    p->region = (uint64_t)close_it->generation << 32 | close_it->slot;
    call->region = (struct call_region){.client = c->number,
                                        .slot = close_it->slot,
                                        .generation = close_it->generation,
                                        .cookie = cookie};
    call_post(c->worker->progress, call);
}

void region_closed(struct control *control, uint64_t cookie)
{
    struct pending *p = pending_find(&control->pending, cookie, PENDING_REGION_CLOSE);
    struct client *c;
    uint32_t request;

    if (!p)
        return;
    c = p->client;
    request = p->request;
    pending_remove(&control->pending, p);
    quota_give(c, QUOTA_REGIONS, 1);
    reply_done(c, request);
    client_stream_resume(c);
}
