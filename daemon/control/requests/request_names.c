/* Owns the checks of clients' requests about names, and their answers in words (request_names.h).
 * Thread: control. */
#include "daemon/control/requests/request_names.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "daemon/control/clients/client_stream.h"
#include "daemon/control/clients/reply.h"
#include "daemon/control/nodes/names_client.h"
#include "daemon/peering/names.h"

/* Fewer than the requests that a client may have under way, so that it can always give a lookup
 * up. */
enum { LOOKUPS_MAX = CLIENT_PENDING_MAX / 2 };

static const char *text_of(int status)
{
    switch (status) {
    case -EADDRINUSE:
        return "another process of the job has published this name: take another one";
    case -ENOENT:
        return "nobody has published it";
    case -ENOSPC:
        return "the job has as many names, or processes that wait for one, as its home keeps";
    case -EDQUOT:
        return "this user's jobs and names take as much memory at the job's home as it gives a "
               "user: let some end";
    case -ESTALE:
        return "the job's home does not know this process any more, because it has lost its state: "
               "end the job's processes, and start them anew";
    case -EHOSTDOWN:
        return "the node that is the job's home cannot be reached";
    default:
        return strerror(-status);
    }
}

/* Whether the request can be sent to the job's home. If it cannot, the client has got an error. */
static bool may_ask(struct client *c, uint32_t request, const char *name)
{
    if (!names_valid(name)) {
        reply_error(c, request, -EINVAL,
                    "name \"%.64s\": give 1 to %u printable characters without spaces", name,
                    DIRECTORY_PUBLISHED_NAME - 1);
        return false;
    }
    if (c->instance == 0) {
        reply_error(
            c, request, -ENOTSUP,
            "the daemon of the job's home is older than 0.6, and keeps no names: update it, "
            "then start the job anew");
        return false;
    }
    return true;
}

static void fail(struct control *control, struct pending *p, int status)
{
    struct client *c = p->client;
    uint32_t request = p->request;
    char name[DIRECTORY_PUBLISHED_NAME];

    memcpy(name, p->name, sizeof(name));
    pending_remove(&control->pending, p);
    reply_error(c, request, status, "name %s: %s", name, text_of(status));
    client_stream_resume(c);
}

/* ---- publish --------------------------------------------------------------------------------- */

/* Gives the name, which stands at `index`, back what it had before the request, which has failed:
 * its bytes, or nothing. Where a later request for new bytes is under way, that request decides: if
 * it fails, too, the name gets the same back. */
static void restore(struct client *c, struct pending *p, uint32_t index)
{
    struct pending_table *t = &c->control->pending;
    struct membership_name *before = p->replaced;
    struct pending *later = NULL;

    for (struct pending *q = pending_of(t, c); q != p; q = pending_after(t, q)) /* newest first */
        if (q->kind == PENDING_PUBLISH && strcmp(q->name, p->name) == 0)
            later = q;
    if (later && later->how == PENDING_REPLACES) {
        p->replaced = later->replaced;
        later->replaced = before;
        later->how = p->how;
    } else if (!later && before) {
        (void)membership_put(&c->control->memberships, c->slot, before->name, before->data,
                             before->length); /* has room: the name is there */
    } else if (!later) {
        membership_drop(&c->control->memberships, c->slot, index);
    }
}

/* The name is another process's, even if an earlier daemon has noted it as this client's. */
static void never_had(struct pending *p)
{
    free(p->replaced);
    p->replaced = NULL;
    p->how = PENDING_FRESH;
}

/* Takes the answer of the job's home to a publication or its withdrawal. */
static void published(struct control *control, struct pending *p, int status, uint32_t node,
                      uint32_t engine)
{
    struct client *c = p->client;
    uint32_t request = p->request;
    int index;

    /* Where a link was lost, the home is asked a second time, and may have removed the name the
     * first time. */
    if (p->how == PENDING_TAKES_BACK && status == -ENOENT)
        status = 0;
    if (status < 0) {
        index = membership_find(&control->memberships, c->slot, p->name);
        if (p->how != PENDING_TAKES_BACK && index >= 0) {
            if (status == -EADDRINUSE)
                never_had(p);
            restore(c, p, (uint32_t)index);
        }
        fail(control, p, status);
        return;
    }
    pending_remove(&control->pending, p);
    reply_done(c, request);
    client_stream_resume(c);
}

/* A copy of the name that the client has published under this index, or NULL. */
static struct membership_name *copy_of(const struct client *c, uint32_t index)
{
    struct membership_name *copy = malloc(sizeof(*copy));

    if (copy)
        *copy = *membership_name(&c->control->memberships, c->slot, index);
    return copy;
}

void request_publish(struct client *c, uint32_t request, const Pwc__Publish *publish)
{
    struct memberships *m = &c->control->memberships;
    struct pending *p;
    uint64_t cookie;
    int index;

    if (!may_ask(c, request, publish->name))
        return;
    if (publish->data.len > DIRECTORY_PUBLISHED_DATA) {
        reply_error(c, request, -EINVAL, "%zu bytes under name %s: a name may have %u",
                    publish->data.len, publish->name, DIRECTORY_PUBLISHED_DATA);
        return;
    }
    index = membership_find(m, c->slot, publish->name);
    if (publish->gone && index < 0) {
        reply_error(c, request, -ENOENT, "name %s: this process has not published it",
                    publish->name);
        return;
    }
    p = pending_add(&c->control->pending, PENDING_PUBLISH, c, request, &cookie);
    if (!p) {
        reply_error(c, request, -ENOBUFS, "too many requests wait in this daemon: try again later");
        return;
    }
    snprintf(p->name, sizeof(p->name), "%s", publish->name);
    p->located = published;
    p->how = publish->gone ? PENDING_TAKES_BACK : index < 0 ? PENDING_FRESH : PENDING_REPLACES;
    p->replaced = p->how == PENDING_REPLACES ? copy_of(c, (uint32_t)index) : NULL;
    if (p->how == PENDING_REPLACES && !p->replaced) {
        pending_remove(&c->control->pending, p);
        reply_error(c, request, -ENOMEM, "this daemon is out of memory");
        return;
    }
    if (publish->gone) {
        membership_drop(m, c->slot, (uint32_t)index);
    } else if (membership_put(m, c->slot, publish->name, publish->data.data,
                              (uint32_t)publish->data.len) < 0) {
        pending_remove(&c->control->pending, p);
        reply_error(c, request, -EDQUOT, "name %s: a process may publish %u names at a time",
                    publish->name, MEMBERSHIP_NAMES_MAX);
        return;
    }
    names_client_ask(c->control, p);
}

/* ---- lookup ---------------------------------------------------------------------------------- */

/* Takes an error of the job's home. A name that was found has another way (names_client.h). */
static void not_found(struct control *control, struct pending *p, int status, uint32_t node,
                      uint32_t engine)
{
    fail(control, p, status);
}

/* Ends an earlier lookup of the client that waits. */
static void give_up(struct client *c, uint32_t request)
{
    struct pending_table *t = &c->control->pending;

    for (struct pending *p = pending_of(t, c); p; p = pending_after(t, p))
        if (p->kind == PENDING_LOOKUP && p->request == request) {
            names_client_give_up(c->control, p);
            fail(c->control, p, -ENOENT);
            return;
        }
}

/* Whether the client has as many waiting lookups as it may have. */
static bool waits_much(struct client *c)
{
    struct pending_table *t = &c->control->pending;
    uint32_t count = 0;

    for (struct pending *p = pending_of(t, c); p; p = pending_after(t, p))
        count += p->kind == PENDING_LOOKUP && p->how == PENDING_WAITS;
    return count >= LOOKUPS_MAX;
}

void request_lookup(struct client *c, uint32_t request, const Pwc__Lookup *lookup)
{
    struct pending *p;
    uint64_t cookie;

    if (lookup->give_up != 0) {
        give_up(c, lookup->give_up);
        reply_done(c, request);
        return;
    }
    if (!may_ask(c, request, lookup->name))
        return;
    if (lookup->wait && waits_much(c)) {
        reply_error(c, request, -ENOBUFS, "name %s: %u lookups of this process wait already",
                    lookup->name, LOOKUPS_MAX);
        return;
    }
    p = pending_add(&c->control->pending, PENDING_LOOKUP, c, request, &cookie);
    if (!p) {
        reply_error(c, request, -ENOBUFS, "too many requests wait in this daemon: try again later");
        return;
    }
    snprintf(p->name, sizeof(p->name), "%s", lookup->name);
    p->located = not_found;
    p->how = lookup->wait ? PENDING_WAITS : PENDING_LOOKS;
    names_client_ask(c->control, p);
}
