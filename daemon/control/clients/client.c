/* Owns the life of clients, from accept until the engine has released everything (client.h).
 * Thread: control. */
#include "daemon/control/clients/client.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "shm_ring/clock.h"
#include "daemon/control/nodes/frame.h"
#include "daemon/control/survive/handover.h"
#include "shm_ring/fault.h"
#include "daemon/control/nodes/directory_client.h"
#include "daemon/control/watch/request_inspect.h"
#include "daemon/control/watch/tracing.h"
#include "daemon/control/clients/client_stream.h"
#include "daemon/control/clients/client_table.h"
#include "daemon/control/clients/client_calls.h"
#include "daemon/control/clients/reply.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77 /* since Linux 6.5 */
#endif

/* ---- the way out ----------------------------------------------------------------------------- */

static void drop_pending(struct client *c)
{
    struct pending_table *t = &c->control->pending;
    struct pending *p;

    while ((p = pending_of(t, c)) != NULL)
        pending_remove(t, p);
}

/* Remembers a client that broke the protocol, for pwcctl. */
static void remember(struct client *c, const char *reason)
{
    struct control *control = c->control;
    struct quarantined *q = &control->history[control->history_count++ % QUARANTINE_HISTORY];

    *q = (struct quarantined){.engine = c->worker ? c->worker->engine : 0,
                              .client = c->number,
                              .uid = c->uid,
                              .pid = (uint32_t)c->pid,
                              .rank = c->rank,
                              .at_ns = clock_ns()};
    memcpy(q->job, c->job, sizeof(q->job));
    snprintf(q->reason, sizeof(q->reason), "%s", reason);
    atomic_fetch_add_explicit(&(c->worker ? c->worker : control->workers)->counters.quarantined, 1,
                              memory_order_relaxed);
}

void client_end(struct client *c, const char *reason)
{
    struct log *log = &c->control->log;
    struct log_subject about;
    enum client_state state = c->state;
    bool stranger = c->state == CLIENT_STRANGER || c->state == CLIENT_LOOKING;

    if (c->state == CLIENT_ENDING)
        return;
    about = client_subject(c);
    if (reason) {
        if (stranger)
            log_hostile(log, LOG_SOURCE_CONNECTION, &about, "connection of pid %d, user %u: %s",
                        (int)c->pid, (unsigned)c->uid, reason);
        else
            log_hostile(log, LOG_SOURCE_CLIENT, &about, "client of pid %d, user %u: %s",
                        (int)c->pid, (unsigned)c->uid, reason);
        reply_error(c, 0, -EPROTO, "%s", reason);
        if (!stranger) /* anybody can connect, and often, so only log it */
            remember(c, reason);
    } else if (!stranger) {
        log_about(log, LOG_LEVEL_INFO, &about, "rank %u of job %s, pid %d, has left", c->rank,
                  c->job, (int)c->pid);
    }
    FAULT(CLIENT_ENDS);
    client_becomes(c, CLIENT_ENDING);
    client_inflight(c)->lost |= INFLIGHT_ENDED;
    service_clients_changed(c->control);
    handover_forget(c->control, c);
    tracing_leave(c);
    inspections_leave(c);
    uv_timer_stop(&c->deadline);
    if (c->uv_handles == 3)
        uv_poll_stop(&c->process);
    drop_pending(c);
    if (state == CLIENT_ATTACHING || state == CLIENT_SERVED)
        directory_client_detach(c);
    membership_end(&c->control->memberships, c->slot);
    if (client_is_in_engine(c))
        client_leave_engine(c);
    client_stream_resume(c); /* sends the rest of the output, and reads nothing more */
    client_free_ended(c);
}

/* ---- the way in ------------------------------------------------------------------------------ */

static void process_exited(uv_poll_t *poll, int status, int events)
{
    struct client *c = poll->data;
    struct control *control = c->control;
    struct account *before = account_begin(control, &c->user->account);

    client_end(c, NULL);
    account_end(control, before);
}

static void deadline_passed(uv_timer_t *timer)
{
    struct client *c = timer->data;
    struct control *control = c->control;
    struct account *before;

    if (c->in_line) { /* the client is silent because we read nothing from it */
        client_await_question(c);
        return;
    }
    before = account_begin(control, &c->user->account);
    if (c->state == CLIENT_LOOKING) { /* no offence: the user may connect again */
        reply_error(c, 0, -ETIMEDOUT, "nothing was asked for 5 s");
        client_end(c, NULL);
    } else if (c->state == CLIENT_STRANGER) {
        client_end(c, "no Hello within 5 s of connecting");
    } else {
        client_end(c, "a frame was begun and not ended within 5 s");
    }
    account_end(control, before);
}

/* A pidfd of the process that connected. Since Linux 6.5 the pidfd names that process even if its
 * pid has been reused; on older kernels it names the process that has the pid now. -ESRCH: the
 * process is gone. */
static int open_process(const struct client *c)
{
    int pidfd = -1;
    socklen_t size = sizeof(pidfd);

    if (getsockopt(c->descriptor, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &size) == 0)
        return pidfd;
    if (errno == ENOPROTOOPT) {
        pidfd = (int)syscall(SYS_pidfd_open, c->pid, 0);
        return pidfd < 0 ? -errno : pidfd;
    }
    return errno == EINVAL || errno == ENODATA ? -ESRCH : -errno; /* kernels differ in the errno */
}

static int watch_process(struct client *c)
{
    int rc;

    if (c->pidfd < 0)
        c->pidfd = open_process(c);
    if (c->pidfd < 0)
        return c->pidfd;
    rc = uv_poll_init(&c->control->loop, &c->process, c->pidfd);
    if (rc < 0)
        return rc;
    c->process.data = c;
    c->uv_handles++;
    return uv_poll_start(&c->process, UV_READABLE, process_exited);
}

static void end_unwatched(struct client *c, int rc)
{
    struct log_subject about = client_subject(c);

    if (rc != -ESRCH) { /* with -ESRCH the process is gone, and reads no reply */
        log_hostile(&c->control->log, LOG_SOURCE_CONNECTION, &about,
                    "the process of a client, pid %d, cannot be watched: %s", (int)c->pid,
                    strerror(-rc));
        reply_error(c, 0, rc, "this daemon cannot watch your process: %s", strerror(-rc));
    }
    client_end(c, NULL);
}

/* Answers a connection that is refused, and closes it. With -EAGAIN the library tries again, within
 * its timeout. */
static void refuse(struct control *control, int descriptor, int status, const char *text)
{
    Pwc__ClientReply reply = PWC__CLIENT_REPLY__INIT;
    Pwc__Error error = PWC__ERROR__INIT;
    uint8_t frame[512];
    size_t size;

    error.status = status;
    error.text = (char *)(uintptr_t)text;
    reply.body_case = PWC__CLIENT_REPLY__BODY_ERROR;
    reply.error = &error;
    size = pwc__client_reply__get_packed_size(&reply);
    if (size + FRAME_HEAD_BYTES <= sizeof(frame)) {
        frame_head_write(frame, (uint32_t)size);
        pwc__client_reply__pack(&reply, frame + FRAME_HEAD_BYTES);
        (void)send(descriptor, frame, FRAME_HEAD_BYTES + size, MSG_DONTWAIT | MSG_NOSIGNAL);
    }
    close(descriptor);
}

/* Takes over both descriptors, unless the result is NULL. The returned client may have ended
 * already. */
static struct client *client_new(struct control *control, uint32_t slot, int descriptor,
                                 int process, const struct ucred *peer, struct quota_user *user,
                                 client_on_request on_request)
{
    struct client *c = calloc(1, sizeof(*c));
    int rc;

    if (!c)
        return NULL;
    c->control = control;
    c->user = user;
    c->slot = slot;
    c->descriptor = descriptor;
    c->pidfd = process;
    c->pid = peer->pid;
    c->uid = peer->uid;
    c->may_serve = admission_allows(&control->admission, descriptor, peer->uid, peer->gid);
    c->sees_all = admission_sees_all(&control->admission, descriptor, peer->uid, peer->gid);
    c->number = CLIENT_NONE;
    client_becomes(c, CLIENT_STRANGER);
    c->output_tail = &c->output;
    c->deadline.data = c;
    uv_timer_init(&control->loop, &c->deadline);
    uv_timer_start(&c->deadline, deadline_passed, CLIENT_DEADLINE_MS, 0);
    c->uv_handles = 1;
    c->next = control->clients;
    control->clients = c;
    control->client_count++;
    FAULT(CLIENT_ACCEPTED);
    if (client_stream_open(c, on_request, client_end) < 0) {
        client_becomes(c, CLIENT_ENDING);
        client_free_ended(c);
    } else if ((rc = watch_process(c)) < 0) {
        end_unwatched(c, rc);
    }
    return c;
}

struct client *client_accept_inherited(struct control *control, uint32_t slot, int descriptor,
                                       int process, client_on_request on_request)
{
    struct ucred peer = {0};
    socklen_t size = sizeof(peer);
    struct quota_user *user;
    struct client *c;

    if (getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0)
        return NULL;
    user = quota_inherit(control, peer.uid);
    if (!user)
        return NULL;
    c = client_new(control, slot, descriptor, process, &peer, user, on_request);
    if (!c)
        quota_leave(&(struct client){.control = control, .user = user});
    return c;
}

void client_accept(struct control *control, int descriptor, client_on_request on_request)
{
    struct log_subject about = log_nobody();
    struct ucred peer = {0};
    socklen_t size = sizeof(peer);
    struct quota_user *user;
    struct account *before;
    uint32_t connections_max = 2u * (uint32_t)control->config->clients_max;
    uint32_t slot = INFLIGHT_NONE;

    if (getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) {
        close(descriptor);
        return;
    }
    about.pid = peer.pid;
    about.user = peer.uid;
    if (!admission_allows(&control->admission, descriptor, peer.uid, peer.gid) &&
        !admission_sees_all(&control->admission, descriptor, peer.uid, peer.gid)) {
        log_hostile(&control->log, LOG_SOURCE_CONNECTION, &about,
                    "user %u (pid %d) is not served: --allow-users would", (unsigned)peer.uid,
                    (int)peer.pid);
        refuse(control, descriptor, -EACCES, CLIENT_NOT_SERVED);
        return;
    }
    user = quota_enter(control, peer.uid);
    if (user && control->client_count < connections_max)
        slot = inflight_take(&control->inflight);
    if (slot == INFLIGHT_NONE) {
        log_hostile(&control->log, LOG_SOURCE_CONNECTION, &about,
                    "too many connections: %u, or those of user %u", control->client_count,
                    (unsigned)peer.uid);
        if (user)
            quota_leave(&(struct client){.control = control, .user = user});
        refuse(control, descriptor, -EAGAIN,
               "too many connections to this daemon at a time: try again later");
        return;
    }
    before = account_begin(control, &user->account);
    if (!client_new(control, slot, descriptor, -1, &peer, user, on_request)) {
        quota_leave(&(struct client){.control = control, .user = user});
        inflight_give(&control->inflight, slot);
        close(descriptor);
    }
    account_end(control, before);
}
