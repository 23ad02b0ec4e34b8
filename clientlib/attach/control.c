/*
 * Owns the control connection and the list of calls that wait on it. Threads: any; who waits may
 * read for all.
 */
#include "clientlib/attach/control.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include "clientlib/attach/deadline.h"
#include "shm_ring/fault.h"

enum {
    CLOSE_WAIT_MS = 1000,
    ERRNO_MAX = 4095,
    REQUEST_MAX = 8192, /* the longest carries PWC_EXCHANGE_MAX bytes */
};

/* Lives on the stack of its caller while it is in control.calls. */
struct control_call {
    struct control_call *next;
    uint32_t id;
    Pwc__ClientReply__BodyCase expected;
    control_accept *accept;
    void *context;
    bool done;
    int result;
};

int control_open(struct control *control, int fd, int timeout_ms)
{
    pthread_condattr_t attr;

    memset(control, 0, sizeof(*control));
    frames_init(&control->frames, fd);
    control->timeout_ms = timeout_ms;
    pthread_mutex_init(&control->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&control->changed, &attr);
    pthread_condattr_destroy(&attr);
    return 0;
}

void control_close(struct control *control)
{
    struct pollfd hang_up = {.fd = control->frames.fd, .events = POLLRDHUP};

    /* So that a rank that attaches again does not meet its own shadow. */
    if (shutdown(control->frames.fd, SHUT_WR) == 0) {
        FAULT(DETACH_SHUT);
        (void)poll(&hang_up, 1, CLOSE_WAIT_MS);
    }
    frames_close(&control->frames);
    pthread_cond_destroy(&control->changed);
    pthread_mutex_destroy(&control->lock);
}

static void finish(struct control_call *call, int result)
{
    call->done = true;
    call->result = result;
}

/* The connection is of no more use: every call ends, now and later, and the daemon lets go of what
 * we have of it, and hangs up. */
static void give_up(struct control *control, int status)
{
    (void)shutdown(control->frames.fd, SHUT_WR);
    /* Else who asks again would do so for ever. */
    control->over = status == -ECONNABORTED ? -ESHUTDOWN : status;
    for (struct control_call *call = control->calls; call; call = call->next)
        if (!call->done)
            finish(call, control->over);
}

/* The status of an Error, whose text is kept. */
static int note_error(struct control *control, const Pwc__Error *error)
{
    snprintf(control->text, sizeof(control->text), "%s", error->text ? error->text : "");
    return error->status < 0 && error->status >= -ERRNO_MAX ? error->status : -EPROTO;
}

static struct control_call *call_of(struct control *control, uint32_t id)
{
    struct control_call *call = control->calls;

    while (call && (call->id != id || call->done))
        call = call->next;
    return call;
}

static void handle_reply(struct control *control, const Pwc__ClientReply *reply)
{
    struct control_call *call = call_of(control, reply->id);
    bool is_error = reply->body_case == PWC__CLIENT_REPLY__BODY_ERROR;
    int rc = 1;

    if (reply->id == 0) {
        give_up(control, is_error ? note_error(control, reply->error) : -EPROTO);
        return;
    }
    if (!call) /* its caller has given up waiting */
        return;
    if (is_error) {
        finish(call, note_error(control, reply->error));
        return;
    }
    if (reply->body_case != call->expected) {
        give_up(control, -EPROTO);
        return;
    }
    if (call->accept)
        rc = call->accept(call->context, reply, control->frames.fds, control->frames.fd_count);
    if (rc != 0)
        finish(call, rc < 0 ? rc : 0);
}

static void handle_frame(struct control *control, const uint8_t *body, size_t length)
{
    Pwc__ClientReply *reply = pwc__client_reply__unpack(NULL, length, body);

    if (!reply) {
        give_up(control, -EPROTO);
        return;
    }
    handle_reply(control, reply);
    pwc__client_reply__free_unpacked(reply, NULL);
}

/* Reads one frame for all that wait. Called and left with the lock held. */
static int read_for_all(struct control *control, int64_t deadline)
{
    const uint8_t *body;
    size_t length;
    int rc;

    control->reading = true;
    pthread_mutex_unlock(&control->lock);
    rc = frames_receive(&control->frames, &body, &length, deadline);
    pthread_mutex_lock(&control->lock);
    control->reading = false;
    if (rc == 0)
        handle_frame(control, body, length);
    else if (rc != -ETIMEDOUT)
        give_up(control, rc);
    pthread_cond_broadcast(&control->changed);
    return rc == -ETIMEDOUT ? rc : 0;
}

static int wait_done(struct control *control, struct control_call *call, int64_t deadline)
{
    struct timespec until = deadline_timespec(deadline);
    int rc = 0;

    while (!call->done && rc == 0) {
        if (!control->reading)
            rc = read_for_all(control, deadline);
        else
            rc = -pthread_cond_timedwait(&control->changed, &control->lock, &until);
    }
    return call->done ? call->result : rc;
}

static int send_request(struct control *control, const Pwc__ClientRequest *request,
                        int64_t deadline)
{
    size_t length = pwc__client_request__get_packed_size(request);
    uint8_t body[REQUEST_MAX];
    int rc;

    if (length > sizeof(body))
        return -EMSGSIZE;
    pwc__client_request__pack(request, body);
    rc = frames_send(&control->frames, body, length, deadline);
    /* A daemon that hung up may have said why: that is still to be read. */
    return rc == -ESHUTDOWN ? 0 : rc;
}

static void forget(struct control *control, struct control_call *call)
{
    struct control_call **at = &control->calls;

    while (*at != call)
        at = &(*at)->next;
    *at = call->next;
}

int control_call(struct control *control, Pwc__ClientRequest *request,
                 Pwc__ClientReply__BodyCase expected, control_accept *accept, void *context)
{
    int64_t deadline = deadline_after_ms(control->timeout_ms);
    struct control_call call = {.expected = expected, .accept = accept, .context = context};
    int rc;

    pthread_mutex_lock(&control->lock);
    rc = control->over;
    if (rc == 0) {
        control->text[0] = '\0';
        call.id = request->id = ++control->last_id == 0 ? ++control->last_id : control->last_id;
        call.next = control->calls;
        control->calls = &call;
        rc = send_request(control, request, deadline);
        if (rc == 0)
            rc = wait_done(control, &call, deadline);
        forget(control, &call);
    }
    pthread_mutex_unlock(&control->lock);
    return rc;
}

/* The connection is over, and the daemon has hung up, which it does when it has let go of all. */
static bool all_is_gone(struct control *control)
{
    struct pollfd hang_up = {.fd = control->frames.fd, .events = POLLRDHUP};
    bool over;

    pthread_mutex_lock(&control->lock);
    over = control->over != 0;
    pthread_mutex_unlock(&control->lock);
    return over && poll(&hang_up, 1, CLOSE_WAIT_MS) > 0;
}

int control_end(struct control *control, Pwc__ClientRequest *request)
{
    int rc;

    do
        rc = control_call(control, request, PWC__CLIENT_REPLY__BODY_DONE, NULL, NULL);
    while (rc == -ECONNABORTED);
    return rc == -EINVAL || (rc < 0 && all_is_gone(control)) ? 0 : rc;
}

size_t control_text(struct control *control, char *text, size_t size)
{
    size_t length;

    pthread_mutex_lock(&control->lock);
    length = (size_t)snprintf(text, size, "%s", control->text);
    pthread_mutex_unlock(&control->lock);
    return length;
}
