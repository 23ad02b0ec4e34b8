/*
 * Owns the control connection and the list of calls that wait on it. Threads: any; one that waits
 * may read for all.
 */
#include "clientlib/attach/daemon_link.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>
#include "clientlib/attach/daemon_post.h"
#include "clientlib/attach/deadline.h"
#include "shm_ring/fault.h"

enum {
    AGAIN_MOST = 16, /* most times that a request is sent to daemons that are restarted */
    CLOSE_WAIT_MS = 1000,
    ERRNO_MAX = 4095,
    SHORT_BYTES = 512, /* most requests are not longer */
};

int daemon_link_open(struct daemon_link *link, int fd, int timeout_ms)
{
    pthread_condattr_t attr;

    memset(link, 0, sizeof(*link));
    frames_init(&link->frames, fd);
    link->timeout_ms = timeout_ms;
    link->posted_max = DAEMON_POSTED_MAX;
    link->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    pthread_mutex_init(&link->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&link->changed, &attr);
    pthread_condattr_destroy(&attr);
    return 0;
}

/* Waits, for a second at most, until the daemon has hung up: whether it has. */
static bool hangs_up(struct daemon_link *link)
{
    struct pollfd hang_up = {.fd = link->frames.fd, .events = POLLRDHUP};
    int64_t deadline = deadline_after_ms(CLOSE_WAIT_MS);
    int rc;

    do
        rc = poll(&hang_up, 1, deadline_poll_ms(deadline));
    while (rc < 0 && errno == EINTR);
    return rc > 0;
}

void daemon_link_close(struct daemon_link *link)
{
    /* Waits until the daemon has freed the rank, so that the rank can attach again at once. */
    if (shutdown(link->frames.fd, SHUT_WR) == 0) {
        FAULT(DETACH_SHUT);
        (void)hangs_up(link);
    }
    frames_close(&link->frames);
    late_destroy(&link->late);
    if (link->bell >= 0)
        close(link->bell);
    pthread_cond_destroy(&link->changed);
    pthread_mutex_destroy(&link->lock);
}

static void finish(struct daemon_link *link, struct daemon_call *call, int result)
{
    call->done = true;
    call->result = result;
    if (call->post)
        daemon_post_answered(link, call->post);
}

/* Ends the connection and all calls under way; later calls fail. The daemon then frees what this
 * client has, and hangs up. */
static void give_up(struct daemon_link *link, int status)
{
    (void)shutdown(link->frames.fd, SHUT_WR);
    /* With -ECONNABORTED, daemon_end would ask again forever. */
    link->over = status == -ECONNABORTED ? -ESHUTDOWN : status;
    for (struct daemon_call *call = link->calls, *next; call; call = next) {
        next = call->next;
        if (!call->done)
            finish(link, call, link->over);
    }
    daemon_posts_over(link);
}

/* ---- requests -------------------------------------------------------------------------------
 */

static void number(struct daemon_link *link, Pwc__ClientRequest *request)
{
    request->id = ++link->last_id == 0 ? ++link->last_id : link->last_id;
}

static int send_request(struct daemon_link *link, const Pwc__ClientRequest *request,
                        int64_t deadline)
{
    size_t length = pwc__client_request__get_packed_size(request);
    uint8_t room[SHORT_BYTES], *body = room;
    int rc;

    if (length > sizeof(room))
        body = malloc(length);
    if (!body)
        return -ENOMEM;
    pwc__client_request__pack(request, body);
    rc = frames_send(&link->frames, body, length, deadline);
    if (body != room)
        free(body);
    /* A daemon that has hung up may have sent the reason first: wait_done reads it. */
    return rc == -ESHUTDOWN ? 0 : rc;
}

int daemon_link_send(struct daemon_link *link, Pwc__ClientRequest *request, int64_t deadline)
{
    number(link, request);
    return send_request(link, request, deadline);
}

/* For the answer to a call whose caller has given up: asks the daemon to end the thing that the
 * answer has brought. Where the socket takes no request now, the thing stays until the client, or
 * its context, ends. */
static void give_back(struct daemon_link *link, const Pwc__ClientReply *reply)
{
    struct late_end end;

    if (!late_answer(&link->late, reply, &end))
        return;
    (void)daemon_link_send(link, &end.request, 0);
}

/* ---- replies --------------------------------------------------------------------------------
 */

/* Keeps the text of an Error, and returns its status. */
static int note_error(struct daemon_link *link, const Pwc__Error *error)
{
    snprintf(link->text, sizeof(link->text), "%s", error->text ? error->text : "");
    return error->status < 0 && error->status >= -ERRNO_MAX ? error->status : -EPROTO;
}

static struct daemon_call *call_of(struct daemon_link *link, uint32_t id)
{
    struct daemon_call *call = link->calls;

    while (call && (call->id != id || call->done))
        call = call->next;
    return call;
}

static void handle_reply(struct daemon_link *link, const Pwc__ClientReply *reply)
{
    struct daemon_call *call = call_of(link, reply->id);
    bool is_error = reply->body_case == PWC__CLIENT_REPLY__BODY_ERROR;
    int rc = 1;

    if (reply->id == 0) {
        give_up(link, is_error ? note_error(link, reply->error) : -EPROTO);
        return;
    }
    if (!call) { /* the caller has given up waiting */
        give_back(link, reply);
        return;
    }
    if (is_error) {
        finish(link, call, note_error(link, reply->error));
        return;
    }
    if (reply->body_case != call->expected) {
        give_up(link, -EPROTO);
        return;
    }
    if (call->accept)
        rc = call->accept(call->context, reply, link->frames.fds, link->frames.fd_count);
    if (rc != 0)
        finish(link, call, rc < 0 ? rc : 0);
}

static void handle_frame(struct daemon_link *link, const uint8_t *body, size_t length)
{
    Pwc__ClientReply *reply = pwc__client_reply__unpack(NULL, length, body);

    if (!reply) {
        give_up(link, -EPROTO);
        return;
    }
    handle_reply(link, reply);
    pwc__client_reply__free_unpacked(reply, NULL);
}

/* Wakes the caller at work, which may wait for the frame that this thread has read. The lock is
 * held. */
static void ring(struct daemon_link *link)
{
    if (link->at_work > 0 && link->bell >= 0 && !link->rung)
        link->rung = eventfd_write(link->bell, 1) == 0;
}

/* Undoes ring. The lock is held. */
static void silence(struct daemon_link *link)
{
    eventfd_t count;

    if (link->rung)
        (void)eventfd_read(link->bell, &count);
    link->rung = false;
}

/* Reads one frame for all that wait. Called and left with the lock held. */
static int read_for_all(struct daemon_link *link, int64_t deadline)
{
    const uint8_t *body;
    size_t length;
    int rc;

    link->reading = true;
    pthread_mutex_unlock(&link->lock);
    rc = frames_receive(&link->frames, &body, &length, deadline);
    pthread_mutex_lock(&link->lock);
    link->reading = false;
    if (rc == 0)
        handle_frame(link, body, length);
    else if (rc != -ETIMEDOUT)
        give_up(link, rc);
    pthread_cond_broadcast(&link->changed);
    ring(link);
    return rc == -ETIMEDOUT ? rc : 0;
}

int daemon_link_read(struct daemon_link *link, int64_t deadline)
{
    return link->reading ? -ETIMEDOUT : read_for_all(link, deadline);
}

static int wait_done(struct daemon_link *link, struct daemon_call *call, int64_t deadline)
{
    struct timespec until = deadline_timespec(deadline);
    int rc = 0;

    while (!call->done && rc == 0) {
        if (!link->reading)
            rc = read_for_all(link, deadline);
        else
            rc = -pthread_cond_timedwait(&link->changed, &link->lock, &until);
    }
    return call->done ? call->result : rc;
}

/* As wait_done, while the caller works. */
static int wait_at_work(struct daemon_link *link, struct daemon_call *call,
                        const struct daemon_meanwhile *meanwhile)
{
    int64_t deadline = meanwhile->deadline;

    while (!call->done) {
        int fd = link->reading ? -1 : link->frames.fd;
        bool late = clock_now() >= deadline;

        link->at_work++;
        pthread_mutex_unlock(&link->lock);
        meanwhile->work(meanwhile->context, fd, link->bell, deadline);
        pthread_mutex_lock(&link->lock);
        link->at_work--;
        silence(link);
        if (call->done)
            break;
        if (!link->reading)
            (void)read_for_all(link, 0); /* reads the frames that are there now */
        if (!call->done && late)
            return -ETIMEDOUT;
    }
    return call->result;
}

void daemon_link_forget(struct daemon_link *link, struct daemon_call *call)
{
    struct daemon_call **at = &link->calls;

    while (*at != call)
        at = &(*at)->next;
    *at = call->next;
}

static int send_until(struct daemon_link *link, Pwc__ClientRequest *request, int64_t deadline)
{
    int rc;

    pthread_mutex_lock(&link->lock);
    rc = link->over;
    if (rc == 0)
        rc = daemon_link_send(link, request, deadline);
    pthread_mutex_unlock(&link->lock);
    return rc;
}

int daemon_send(struct daemon_link *link, Pwc__ClientRequest *request)
{
    return send_until(link, request, deadline_after_ms(link->timeout_ms));
}

int daemon_try_to_send(struct daemon_link *link, Pwc__ClientRequest *request)
{
    return send_until(link, request, 0);
}

/* The three forms of daemon_call. `meanwhile` NULL: the caller has no work. */
static int call_by(struct daemon_link *link, Pwc__ClientRequest *request,
                   Pwc__ClientReply__BodyCase expected, daemon_accept *accept, void *context,
                   const struct daemon_meanwhile *meanwhile, int64_t deadline)
{
    struct daemon_call call = {.expected = expected, .accept = accept, .context = context};
    int rc;

    pthread_mutex_lock(&link->lock);
    rc = link->over;
    if (rc == 0) {
        link->text[0] = '\0';
        number(link, request);
        call.id = request->id;
        call.next = link->calls;
        link->calls = &call;
        rc = send_request(link, request, deadline);
        if (rc == 0) {
            rc =
                meanwhile ? wait_at_work(link, &call, meanwhile) : wait_done(link, &call, deadline);
            if (!call.done)
                late_note(&link->late, request);
        }
        daemon_link_forget(link, &call);
        if (rc == -ETIMEDOUT && !call.done)
            snprintf(link->text, sizeof(link->text),
                     "the daemon has not answered within %d ms: it waits for other ranks, or is "
                     "busy",
                     link->timeout_ms);
    }
    pthread_mutex_unlock(&link->lock);
    return rc;
}

int daemon_call(struct daemon_link *link, Pwc__ClientRequest *request,
                Pwc__ClientReply__BodyCase expected, daemon_accept *accept, void *context)
{
    return call_by(link, request, expected, accept, context, NULL,
                   deadline_after_ms(link->timeout_ms));
}

int daemon_call_again(struct daemon_link *link, Pwc__ClientRequest *request,
                      Pwc__ClientReply__BodyCase expected, daemon_accept *accept, void *context)
{
    int rc = -ECONNABORTED;

    for (int sent = 0; rc == -ECONNABORTED && sent < AGAIN_MOST; sent++)
        rc = daemon_call(link, request, expected, accept, context);
    return rc;
}

int daemon_call_until(struct daemon_link *link, Pwc__ClientRequest *request,
                      Pwc__ClientReply__BodyCase expected, daemon_accept *accept, void *context,
                      int64_t deadline)
{
    return call_by(link, request, expected, accept, context, NULL, deadline);
}

int daemon_call_meanwhile(struct daemon_link *link, Pwc__ClientRequest *request,
                          Pwc__ClientReply__BodyCase expected, daemon_accept *accept, void *context,
                          const struct daemon_meanwhile *meanwhile)
{
    return call_by(link, request, expected, accept, context, meanwhile, meanwhile->deadline);
}

/* Whether the connection is over and the daemon has hung up: then it has freed all that the client
 * had. */
static bool all_is_gone(struct daemon_link *link)
{
    bool over;

    pthread_mutex_lock(&link->lock);
    over = link->over != 0;
    pthread_mutex_unlock(&link->lock);
    return over && hangs_up(link);
}

int daemon_end(struct daemon_link *link, Pwc__ClientRequest *request)
{
    int rc;

    do
        rc = daemon_call(link, request, PWC__CLIENT_REPLY__BODY_DONE, NULL, NULL);
    while (rc == -ECONNABORTED);
    return rc == -EINVAL || (rc < 0 && all_is_gone(link)) ? 0 : rc;
}

void daemon_link_begin(struct daemon_link *link)
{
    pthread_mutex_lock(&link->lock);
    if (link->over == 0) /* else keep the reason why the connection is over */
        link->text[0] = '\0';
    pthread_mutex_unlock(&link->lock);
}

int daemon_link_refuse(struct daemon_link *link, int error, const char *text)
{
    pthread_mutex_lock(&link->lock);
    snprintf(link->text, sizeof(link->text), "%s", text);
    pthread_mutex_unlock(&link->lock);
    return error;
}

size_t daemon_link_text(struct daemon_link *link, char *text, size_t size)
{
    size_t length;

    pthread_mutex_lock(&link->lock);
    length = (size_t)snprintf(text, size, "%s", link->text);
    pthread_mutex_unlock(&link->lock);
    return length;
}
