/* Owns the questions for views that are under way (request_inspect.h). Thread: control. */
#include "daemon/control/watch/request_inspect.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "daemon/control/clients/client_stream.h"
#include "daemon/control/clients/client_table.h"
#include "daemon/control/clients/reply.h"
#include "shm_ring/clock.h"
#include "daemon/control/watch/document.h"

enum {
    ANSWER_MS = 1000,
    VIEW_SHARE = 8, /* one part of the control thread's time */
};

enum inspection_state {
    INSPECTION_WAITS = 1,
    INSPECTION_ASKED,
    INSPECTION_COOLS,
};

/* A view that one or more clients of a user ask for. It exists until the user has paid for it and
 * all calls have returned. */
struct inspection {
    struct inspection *next; /* in control->inspections */
    struct control *control;
    struct quota_user *user;
    enum inspection_state state;
    struct question question;
    struct client *askers; /* list, by `asks_beside` */
    struct call echoes[NODES_ENGINES_MAX];
    uint32_t calls; /* echoes that have not returned */
    uv_timer_t timer;
    bool timer_closed;
};

static void inspection_free(struct inspection *i)
{
    struct inspection **at = &i->control->inspections;

    if (i->calls > 0 || !i->timer_closed)
        return;
    while (*at != i)
        at = &(*at)->next;
    *at = i->next;
    quota_release(i->control, i->user);
    free(i);
}

static void timer_closed(uv_handle_t *handle)
{
    struct inspection *i = handle->data;

    i->timer_closed = true;
    inspection_free(i);
}

static void finish(struct inspection *i)
{
    if (!uv_is_closing((uv_handle_t *)&i->timer))
        uv_close((uv_handle_t *)&i->timer, timer_closed);
}

/* ---- the answer ------------------------------------------------------------------------------ */

static struct client_body *write_body(const struct inspection *i)
{
    char *text = document_text(i->control, &i->question);
    Pwc__ClientReply reply = PWC__CLIENT_REPLY__INIT;
    Pwc__Inspected inspected = PWC__INSPECTED__INIT;
    struct client_body *body = NULL;

    inspected.json = text;
    reply.body_case = PWC__CLIENT_REPLY__BODY_INSPECTED;
    reply.inspected = &inspected;
    if (text)
        body = client_body_new(i->user, &reply);
    free(text);
    return body;
}

static void answer_all(struct inspection *i)
{
    struct client_body *body = write_body(i);

    while (i->askers) {
        struct client *c = i->askers;

        i->askers = c->asks_beside;
        c->asks = NULL;
        if (c->state == CLIENT_LOOKING)
            client_await_question(c);
        if (body)
            client_reply_body(c, c->asks_request, body, true);
        else
            reply_error(c, c->asks_request, -EMSGSIZE, "%s: the answer does not fit a reply",
                        topic_name(i->question.topic));
        client_stream_resume(c);
    }
    client_body_drop(body);
}

/* In how many milliseconds the user has paid for the views so far. */
static uint64_t until_paid(const struct quota_user *u, uint64_t now)
{
    return u->views_at > now ? (u->views_at - now) / 1000000 + 1 : 0;
}

static void timer_over(uv_timer_t *timer);

static void write_answer(struct inspection *i)
{
    struct quota_user *u = i->user;
    uint64_t begun = clock_ns(), now;

    i->state = INSPECTION_COOLS;
    if (i->askers)
        answer_all(i);
    now = clock_ns();
    u->views_at = (u->views_at > begun ? u->views_at : begun) + VIEW_SHARE * (now - begun);
    uv_timer_start(&i->timer, timer_over, until_paid(u, now), 0);
}

static void echoed(struct call *call)
{
    struct inspection *i = call->owner;

    i->question.echoed[call - i->echoes] = true;
    if (--i->calls == 0 && i->state == INSPECTION_ASKED && !uv_is_closing((uv_handle_t *)&i->timer))
        write_answer(i);
    inspection_free(i);
}

static void ask(struct inspection *i)
{
    struct control *control = i->control;

    i->state = INSPECTION_ASKED;
    uv_timer_start(&i->timer, timer_over, ANSWER_MS, 0);
    for (uint32_t e = 0; e < control->worker_count; e++) {
        const struct worker *w = &control->workers[e];

        if (!w->progress) /* the daemon ends */
            continue;
        call_init(&i->echoes[e], &w->target, CALL_ECHO, i, echoed);
        i->calls++;
        call_post(w->progress, &i->echoes[e]);
    }
}

static void timer_over(uv_timer_t *timer)
{
    struct inspection *i = timer->data;

    if (i->state == INSPECTION_COOLS || !i->askers)
        finish(i);
    else if (i->state == INSPECTION_WAITS)
        ask(i);
    else
        write_answer(i);
}

/* ---- the question ---------------------------------------------------------------------------- */

/* Finds an inspection with the same answer, which is not written yet. */
static struct inspection *find_same(const struct client *c, const struct topic *topic)
{
    for (struct inspection *i = c->control->inspections; i; i = i->next)
        if (i->user == c->user && i->question.topic == topic &&
            i->question.sees_all == c->sees_all && i->state != INSPECTION_COOLS &&
            !uv_is_closing((uv_handle_t *)&i->timer))
            return i;
    return NULL;
}

static struct inspection *begin(struct client *c, const struct topic *topic)
{
    struct control *control = c->control;
    struct inspection *i = calloc(1, sizeof(*i));
    uint64_t wait;

    if (!i)
        return NULL;
    i->control = control;
    i->user = c->user;
    i->user->views++;
    i->question = (struct question){.topic = topic, .uid = c->uid, .sees_all = c->sees_all};
    i->timer.data = i;
    i->next = control->inspections;
    control->inspections = i;
    uv_timer_init(&control->loop, &i->timer);
    wait = until_paid(i->user, clock_ns());
    i->state = INSPECTION_WAITS;
    if (wait > 0)
        uv_timer_start(&i->timer, timer_over, wait, 0);
    else
        ask(i);
    return i;
}

void request_inspect(struct client *c, uint32_t request, const Pwc__Inspect *inspect)
{
    const struct topic *topic = topic_find(inspect->what);
    struct inspection *i;

    if (!topic) {
        reply_error(c, request, -EINVAL,
                    "nothing is called \"%.32s\": ask for status, nodes, clients, queues, ledgers, "
                    "regions, programs, offloads, teams, collectives, jobs, ops, latency, counters "
                    "or config",
                    inspect->what);
        return;
    }
    if (c->state == CLIENT_STRANGER && !client_may_look(c, request))
        return;
    i = find_same(c, topic);
    if (!i)
        i = begin(c, topic);
    if (!i) {
        reply_error(c, request, -ENOMEM, "this daemon is out of memory");
        return;
    }
    if (c->state == CLIENT_LOOKING)
        uv_timer_stop(&c->deadline); /* no deadline until the question is answered */
    c->asks = i;
    c->asks_request = request;
    c->asks_beside = i->askers;
    i->askers = c;
}

void inspections_leave(struct client *c)
{
    struct client **at;

    if (!c->asks)
        return;
    for (at = &c->asks->askers; *at != c; at = &(*at)->asks_beside)
        continue;
    *at = c->asks_beside;
    c->asks = NULL;
}

void inspections_close(struct control *control)
{
    for (struct inspection *i = control->inspections; i; i = i->next)
        finish(i);
}
