/* Owns the frames about published names, to jobs' homes and as a home (names_client.h). Thread:
 * control. */
#include "daemon/control/nodes/names_client.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "daemon/control/clients/client.h"
#include "daemon/control/clients/client_stream.h"
#include "daemon/control/nodes/directory_client.h"
#include "daemon/control/nodes/peers.h"
#include "daemon/peering/names.h"

static struct directory_id id_of(const struct client *c)
{
    return (struct directory_id){.uid = c->uid, .job = c->job};
}

static uint32_t home_of(const struct client *c)
{
    const struct directory_id id = id_of(c);

    return directory_home(&id, c->control->node_count);
}

/* Sends a frame to a node, which may be our own. Without a link the frame is dropped, because
 * names_client_node_up sends it again. */
static void send_to(struct control *control, uint32_t node, const Pwc__PeerFrame *frame)
{
    if (node != control->node)
        peers_send_now(control, node, frame);
    else
        (void)names_client_frame(control, node, frame);
}

/* ---- for clients ----------------------------------------------------------------------------- */

/* Publishes the name that the client's membership has at `index`. Cookie 0: no request waits for
 * the answer. */
static void publish(struct client *c, uint32_t index, uint64_t cookie)
{
    const struct membership_name *n = membership_name(&c->control->memberships, c->slot, index);
    Pwc__PeerFrame frame = PWC__PEER_FRAME__INIT;
    Pwc__Publication p = PWC__PUBLICATION__INIT;

    if (!n)
        return;
    p.uid = c->uid;
    p.job = c->job;
    p.rank = c->rank;
    p.name = (char *)(uintptr_t)n->name;
    p.data.data = (uint8_t *)(uintptr_t)n->data;
    p.data.len = n->length;
    p.cookie = cookie;
    frame.body_case = PWC__PEER_FRAME__BODY_PUBLICATION;
    frame.publication = &p;
    send_to(c->control, home_of(c), &frame);
}

static void take_back(struct client *c, const char *name, uint64_t cookie)
{
    Pwc__PeerFrame frame = PWC__PEER_FRAME__INIT;
    Pwc__Publication p = PWC__PUBLICATION__INIT;

    p.uid = c->uid;
    p.job = c->job;
    p.rank = c->rank;
    p.name = (char *)(uintptr_t)name;
    p.gone = true;
    p.cookie = cookie;
    frame.body_case = PWC__PEER_FRAME__BODY_PUBLICATION;
    frame.publication = &p;
    send_to(c->control, home_of(c), &frame);
}

static void look_for(struct client *c, const char *name, uint64_t cookie, bool wait, bool gone)
{
    Pwc__PeerFrame frame = PWC__PEER_FRAME__INIT;
    Pwc__LookFor l = PWC__LOOK_FOR__INIT;

    l.cookie = cookie;
    l.uid = c->uid;
    l.job = c->job;
    l.rank = c->rank;
    l.name = (char *)(uintptr_t)name;
    l.wait = wait;
    l.gone = gone;
    frame.body_case = PWC__PEER_FRAME__BODY_LOOK_FOR;
    frame.look_for = &l;
    send_to(c->control, home_of(c), &frame);
}

void names_client_ask(struct control *control, struct pending *p)
{
    uint64_t cookie = pending_cookie(&control->pending, p);
    struct client *c = p->client;
    char name[DIRECTORY_PUBLISHED_NAME];
    int index;

    memcpy(name, p->name, sizeof(name)); /* the answer may come at once, and free the entry */
    p->node = home_of(c);
    if (p->kind == PENDING_LOOKUP) {
        look_for(c, name, cookie, p->how == PENDING_WAITS, false);
        return;
    }
    if (p->how == PENDING_TAKES_BACK) {
        take_back(c, name, cookie);
        return;
    }
    index = membership_find(&control->memberships, c->slot, name);
    if (index >= 0)
        publish(c, (uint32_t)index, cookie);
    else /* another request of the client has dropped the name: the library asks again */
        p->located(control, p, -ECONNABORTED, p->node, 0);
}

void names_client_give_up(struct control *control, const struct pending *p)
{
    look_for(p->client, p->name, pending_cookie(&control->pending, p), false, true);
}

void names_client_announce(struct client *c)
{
    for (uint32_t i = 0; i < MEMBERSHIP_NAMES_MAX; i++)
        publish(c, i, 0);
}

void names_client_node_up(struct control *control, uint32_t node)
{
    struct pending *p;

    names_node_waits_no_longer(control->directory, node);
    for (struct client *c = control->clients; c; c = c->next)
        if (c->state == CLIENT_SERVED && home_of(c) == node)
            names_client_announce(c);
    /* A question may be answered twice: the second answer finds no pending request. */
    for (uint32_t at = 0; (p = pending_next(&control->pending, &at)) != NULL;)
        if (p->node == node && (p->kind == PENDING_PUBLISH || p->kind == PENDING_LOOKUP))
            names_client_ask(control, p);
}

/* ---- at home --------------------------------------------------------------------------------- */

static void answer(struct control *control, uint32_t to, uint64_t cookie, int status,
                   const struct directory_published *found)
{
    Pwc__PeerFrame frame = PWC__PEER_FRAME__INIT;
    Pwc__NameIs is = PWC__NAME_IS__INIT;

    is.cookie = cookie;
    is.status = status;
    if (found) {
        is.data.data = (uint8_t *)(uintptr_t)found->data;
        is.data.len = names_data_length(found);
    }
    frame.body_case = PWC__PEER_FRAME__BODY_NAME_IS;
    frame.name_is = &is;
    send_to(control, to, &frame);
}

/* Answers all lookups that have waited for this name. */
static void answer_waiters(struct control *control, const struct directory_id *id, const char *name)
{
    const struct directory_published *found = names_find(control->directory, id, name);
    struct names_waiter w;

    while (found && names_next_waiter(control->directory, id, name, &w))
        answer(control, w.node, w.cookie, 0, found);
}

static void publication(struct control *control, uint32_t from, const Pwc__Publication *p)
{
    const struct directory_id id = {.uid = p->uid, .job = p->job};
    const struct names_item item = {.rank = p->rank,
                                    .node = from,
                                    .name = p->name,
                                    .data = p->data.data,
                                    .length = (uint32_t)p->data.len};
    int status = p->gone ? names_unpublish(control->directory, &id, &item)
                         : names_publish(control->directory, &id, &item);

    if (p->cookie != 0)
        directory_client_answer(control, from, p->cookie, status);
    if (status == 0 && !p->gone)
        answer_waiters(control, &id, p->name);
}

static void question(struct control *control, uint32_t from, const Pwc__LookFor *l)
{
    const struct directory_id id = {.uid = l->uid, .job = l->job};
    struct names_waiter waiter = {.rank = l->rank, .node = from, .cookie = l->cookie};
    const struct directory_published *found;
    uint32_t engine;
    int status = -ENOENT;

    if (l->gone) {
        names_waits_no_longer(control->directory, &id, from, l->cookie);
        return;
    }
    found = names_find(control->directory, &id, l->name);
    if (directory_where(control->directory, &id, l->rank, &engine) != (int)from) {
        found = NULL;
        status = -ESTALE;
    } else if (found) {
        status = 0;
    } else if (l->wait) {
        snprintf(waiter.name, sizeof(waiter.name), "%s", l->name);
        status = names_wait(control->directory, &id, &waiter);
        if (status == 0)
            return;
    }
    answer(control, from, l->cookie, status, found);
}

/* ---- answers --------------------------------------------------------------------------------- */

static void name_is(struct control *control, uint32_t from, const Pwc__NameIs *is)
{
    struct pending *p = pending_find(&control->pending, is->cookie, PENDING_LOOKUP);
    Pwc__ClientReply reply = PWC__CLIENT_REPLY__INIT;
    Pwc__Found found = PWC__FOUND__INIT;
    struct client *c;

    /* Only the node that was asked may answer. */
    if (!p || p->node != from || is->status > 0)
        return;
    if (is->status < 0 || is->data.len > DIRECTORY_PUBLISHED_DATA) {
        p->located(control, p, is->status < 0 ? directory_client_errno(is->status) : -EPROTO, from,
                   0);
        return;
    }
    c = p->client;
    reply.id = p->request;
    pending_remove(&control->pending, p);
    found.data = is->data;
    reply.body_case = PWC__CLIENT_REPLY__BODY_FOUND;
    reply.found = &found;
    client_reply(c, &reply, NULL, 0);
    client_stream_resume(c);
}

int names_client_frame(struct control *control, uint32_t from, const Pwc__PeerFrame *frame)
{
    switch (frame->body_case) {
    case PWC__PEER_FRAME__BODY_PUBLICATION:
        if (!directory_name_valid(frame->publication->job) ||
            !names_valid(frame->publication->name))
            return -EPROTO;
        publication(control, from, frame->publication);
        return 0;
    case PWC__PEER_FRAME__BODY_LOOK_FOR:
        if (!directory_name_valid(frame->look_for->job) || !names_valid(frame->look_for->name))
            return -EPROTO;
        question(control, from, frame->look_for);
        return 0;
    case PWC__PEER_FRAME__BODY_NAME_IS:
        name_is(control, from, frame->name_is);
        return 0;
    default:
        return -EPROTO;
    }
}
