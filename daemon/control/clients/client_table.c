/* Owns the look-ups of what belongs to a client (client_table.h). Thread: control. */
#include "daemon/control/clients/client_table.h"

#include <unistd.h>
#include "shm_ring/clock.h"

#define GROUP_FRESH_NS UINT64_C(1000000000)

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

/* Our own group, which changes when the system's administrator changes control groups. */
static const struct sched_group *our_group(struct control *control)
{
    uint64_t now = clock_ns();

    if (now - control->group_found_ns > GROUP_FRESH_NS) {
        (void)sched_group_find("", getpid(), &control->group);
        control->group_found_ns = now;
    }
    return &control->group;
}

void client_find_relation(struct client *c)
{
    /* A client is not to wait asleep for a thread that never sleeps. */
    if (c->control->config->progress == PATIENCE_DEDICATED)
        c->relation = SCHED_UNKNOWN;
    else
        c->relation = sched_group_relation("", c->pid, our_group(c->control));
}

void client_await_question(struct client *c)
{
    uv_timer_start(&c->deadline, c->deadline.timer_cb, CLIENT_DEADLINE_MS, 0);
}
