/* Owns the look-ups of what belongs to a client (client_table.h). Thread: control. */
#include "daemon/control/clients/client_table.h"

void client_becomes(struct client *c, enum client_state state)
{
    struct quota_user *u = c->user;

    u->strangers -= c->state == CLIENT_STRANGER;
    u->lookers -= c->state == CLIENT_LOOKING;
    c->state = state;
    u->strangers += c->state == CLIENT_STRANGER;
    u->lookers += c->state == CLIENT_LOOKING;
}

struct client_session *client_session_find(struct client *c, uint32_t handle)
{
    struct client_session *s = worker_session(c->worker, handle);

    return s && s->client == c && !s->closing ? s : NULL;
}

bool client_is_in_engine(const struct client *c)
{
    return c->worker && worker_client(c->worker, c->number) == c;
}

struct inflight_entry *client_inflight(const struct client *c)
{
    return &c->control->inflight.entries[c->slot];
}

struct log_subject client_subject(const struct client *c)
{
    struct log_subject subject = log_nobody();

    subject.pid = c->pid;
    subject.user = c->uid;
    if (client_is_in_engine(c)) {
        subject.client = c->number;
        subject.rank = c->rank;
        subject.job = c->job;
    }
    return subject;
}

void client_find_apart(struct client *c)
{
    /* A thread that never sleeps is not to be waited for asleep. */
    c->apart = c->control->config->progress != PATIENCE_DEDICATED &&
               sched_group_is_other("", c->pid, &c->control->group);
}

void client_await_question(struct client *c)
{
    uv_timer_start(&c->deadline, c->deadline.timer_cb, CLIENT_DEADLINE_MS, 0);
}
