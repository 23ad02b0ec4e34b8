/* Owns reading and writing on clients' connections (client_stream.h). Thread: control. */
#include "daemon/control/clients/client_stream.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "daemon/control/clients/client.h"
#include "daemon/control/nodes/frame.h"
#include "shm_ring/fault.h"
#include "daemon/control/clients/message.h"
#include "daemon/control/clients/client_table.h"
#include "daemon/control/clients/turns.h"

enum {
    FRAMES_A_WAKE = 8,
    FIRST_LOOK = 4096, /* bytes; most frames are shorter */
    AGAIN_MS = 5,      /* between looks at a frame that is not complete */
    ID_MAX = 6,        /* bytes of a reply's id */
};
/* A socket takes an answer of at most this size completely or not at all. */
#define WHOLE_MAX 32768u

static void on_socket(uv_poll_t *poll, int status, int events);

int client_stream_open(struct client *c, client_on_request on_request, client_on_end on_end)
{
    int rc = uv_poll_init(&c->control->loop, &c->socket, c->descriptor);

    if (rc < 0)
        return rc;
    c->socket.data = c;
    c->on_request = on_request;
    c->on_end = on_end;
    c->uv_handles++;
    uv_poll_start(&c->socket, UV_READABLE | UV_DISCONNECT, on_socket);
    return 0;
}

void client_body_drop(struct client_body *body)
{
    if (!body || --body->refs > 0)
        return;
    body->user->output -= body->size;
    free(body);
}

static void output_free(struct client *c, struct client_output *o)
{
    c->user->output -= sizeof(*o) + o->own;
    client_body_drop(o->body);
    for (uint32_t i = 0; i < o->descriptor_count; i++)
        close(o->descriptors[i]);
    free(o);
}

void client_stream_free(struct client *c)
{
    while (c->output) {
        struct client_output *o = c->output;

        c->output = o->next;
        output_free(c, o);
    }
    c->output_tail = &c->output;
    c->output_bytes = 0;
    turns_leave(c);
}

/* Whether no request may be read now: the daemon hands over or ends, or the client ends, waits in
 * line, or has too much under way. */
static bool held_back(const struct client *c)
{
    return c->control->leaving || c->control->stopping || c->state == CLIENT_ENDING || c->in_line ||
           c->asks || c->output_bytes > CLIENT_OUTPUT_PAUSE ||
           c->waiting + c->calls >= CLIENT_PENDING_MAX || inflight_full(client_inflight(c));
}

/* Polls for the events that the connection waits for now. */
static void poll_again(struct client *c)
{
    int events = c->output ? UV_WRITABLE : 0;

    if (!held_back(c) && !c->partial)
        events |= UV_READABLE;
    /* During a hand-over the next process will notice hang-ups; here they would wake us without
     * end. */
    if (c->state != CLIENT_ENDING && !c->control->leaving)
        events |= UV_DISCONNECT;
    if (events == 0)
        uv_poll_stop(&c->socket);
    else
        uv_poll_start(&c->socket, events, on_socket);
}

/* ---- out ------------------------------------------------------------------------------------- */

static ssize_t send_output(struct client *c, struct client_output *o)
{
    _Alignas(struct cmsghdr) uint8_t room[MESSAGE_ROOM(CLIENT_DESCRIPTORS)] = {0};
    size_t own = o->sent < o->own ? o->own - o->sent : 0;
    struct iovec parts[2] = {{.iov_base = o->bytes + o->own - own, .iov_len = own}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 1};

    if (o->body) {
        size_t from = o->sent + own - o->own;

        parts[1] =
            (struct iovec){.iov_base = o->body->bytes + from, .iov_len = o->body->size - from};
        message.msg_iovlen = 2;
    }

    /* The descriptors travel with the first byte. */
    if (o->descriptor_count > 0)
        message_attach(&message, room, o->descriptors, o->descriptor_count);
    return sendmsg(c->descriptor, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* Sends as much as the socket has room for. */
static int flush(struct client *c)
{
    while (c->output) {
        struct client_output *o = c->output;
        ssize_t sent;

        if (o->size > WHOLE_MAX)
            client_inflight(c)->lost |= INFLIGHT_HALF;
        sent = send_output(c, o);

        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0)
            return errno == EAGAIN || errno == ETOOMANYREFS ? 0 : -errno;
        o->sent += (size_t)sent;
        c->output_bytes -= (size_t)sent;
        for (uint32_t i = 0; i < o->descriptor_count; i++)
            close(o->descriptors[i]);
        o->descriptor_count = 0;
        if (o->sent < o->size)
            return 0;
        if (o->size > WHOLE_MAX)
            client_inflight(c)->lost &= ~(uint32_t)INFLIGHT_HALF;
        if (o->answers != 0)
            inflight_done(client_inflight(c), o->answers);
        c->output = o->next;
        if (!c->output)
            c->output_tail = &c->output;
        output_free(c, o);
    }
    return 0;
}

void client_doom(struct client *c, enum client_doom why)
{
    c->doom = why;
    uv_async_send(&c->control->resume);
}

/* Dooms the client of this user that has the most unread output. */
static void doom_one_of(struct control *control, const struct quota_user *u)
{
    struct client *most = NULL;

    for (struct client *c = control->clients; c; c = c->next)
        if (c->user == u && c->state != CLIENT_ENDING && !c->doom &&
            (!most || c->output_bytes > most->output_bytes))
            most = c;
    if (most)
        client_doom(most, CLIENT_OVERFULL);
}

static void queue_output(struct client *c, struct client_output *o)
{
    *c->output_tail = o;
    c->output_tail = &o->next;
    c->output_bytes += o->size;
    c->user->output += sizeof(*o) + o->own;
    FAULT(REPLY_QUEUED);
    if (c->user->output > CLIENT_USER_OUTPUT_MAX)
        doom_one_of(c->control, c->user);
    if (c->output_bytes > CLIENT_OUTPUT_MAX)
        client_doom(c, CLIENT_OVERFULL);
    if (c->doom)
        return;
    (void)flush(c); /* an error shows again as a hang-up */
    client_stream_resume(c);
}

struct client_body *client_body_new(struct quota_user *user, const Pwc__ClientReply *reply)
{
    Pwc__ClientReply of_all = *reply;
    struct client_body *body;
    size_t size;

    of_all.id = 0; /* a number of 0 is not written */
    size = pwc__client_reply__get_packed_size(&of_all);
    body = size <= CLIENT_REPLY_MAX - ID_MAX ? malloc(sizeof(*body) + size) : NULL;
    if (!body)
        return NULL;
    *body = (struct client_body){.refs = 1, .user = user, .size = size};
    pwc__client_reply__pack(&of_all, body->bytes);
    user->output += size;
    return body;
}

void client_reply_body(struct client *c, uint32_t request, struct client_body *body, bool ends)
{
    Pwc__ClientReply head = PWC__CLIENT_REPLY__INIT;
    struct client_output *o = NULL;
    size_t own;

    if (c->state == CLIENT_ENDING || c->doom)
        return;
    /* A message consists of its fields, one after another: first the request's number, then the
     * body's fields. */
    head.id = request;
    own = FRAME_HEAD_BYTES + pwc__client_reply__get_packed_size(&head);
    if (body)
        o = malloc(sizeof(*o) + own);
    if (!o) {
        client_doom(c, CLIENT_UNANSWERED);
        return;
    }
    body->refs++;
    *o = (struct client_output){
        .size = own + body->size, .own = own, .body = body, .answers = ends ? request : 0};
    frame_head_write(o->bytes, (uint32_t)(o->size - FRAME_HEAD_BYTES));
    pwc__client_reply__pack(&head, o->bytes + FRAME_HEAD_BYTES);
    queue_output(c, o);
}

void client_reply(struct client *c, const Pwc__ClientReply *reply, const int *descriptors,
                  uint32_t descriptor_count)
{
    size_t size = pwc__client_reply__get_packed_size(reply);
    struct client_output *o = NULL;

    if (c->state != CLIENT_ENDING && !c->doom && size <= CLIENT_REPLY_MAX)
        o = malloc(sizeof(*o) + FRAME_HEAD_BYTES + size);
    if (!o) {
        if (c->state != CLIENT_ENDING && !c->doom)
            client_doom(c, CLIENT_UNANSWERED);
        for (uint32_t i = 0; i < descriptor_count; i++)
            close(descriptors[i]);
        return;
    }
    *o = (struct client_output){.size = FRAME_HEAD_BYTES + size,
                                .own = FRAME_HEAD_BYTES + size,
                                .answers = reply->id,
                                .descriptor_count = descriptor_count};
    if (descriptor_count > 0)
        memcpy(o->descriptors, descriptors, descriptor_count * sizeof(int));
    frame_head_write(o->bytes, (uint32_t)size);
    pwc__client_reply__pack(reply, o->bytes + FRAME_HEAD_BYTES);
    queue_output(c, o);
}

/* ---- in -------------------------------------------------------------------------------------- */

/* Receives bytes from the socket, or with MSG_PEEK only looks at them. As recv, but with -errno. */
static ssize_t receive(struct client *c, size_t size, int flags, bool *descriptors)
{
    struct iovec part = {.iov_base = c->control->frame, .iov_len = size};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    ssize_t got;

    do
        got = recvmsg(c->descriptor, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC | flags);
    while (got < 0 && errno == EINTR);
    /* There is no room for descriptors here: the kernel closes them and sets MSG_CTRUNC. */
    *descriptors = got > 0 && message.msg_flags & MSG_CTRUNC;
    return got < 0 ? -errno : got;
}

/* Looks at the frame at the head of the socket, and returns its length, head included. 0: there is
 * no complete frame. -ECONNRESET: the client hung up; -EMSGSIZE: the frame is too long; -EPROTO:
 * descriptors came with the frame. */
static ssize_t peek_frame(struct client *c)
{
    size_t look = FIRST_LOOK, size;

    c->partial = false;
    for (;;) {
        bool descriptors;
        ssize_t got = receive(c, look, MSG_PEEK, &descriptors);

        if (got == -EAGAIN)
            return 0;
        if (got <= 0)
            return -ECONNRESET;
        if (descriptors)
            return -EPROTO;
        c->partial = true;
        if (got < (ssize_t)FRAME_HEAD_BYTES)
            return 0;
        size = FRAME_HEAD_BYTES + (size_t)frame_head_read(c->control->frame);
        if (size > CLIENT_FRAME_MAX + FRAME_HEAD_BYTES)
            return -EMSGSIZE;
        if (size <= (size_t)got) {
            c->partial = false;
            return (ssize_t)size;
        }
        if ((size_t)got < look || look >= size)
            return 0;
        look = size;
    }
}

/* Removes a frame from the socket, which peek_frame has found to be complete. */
static int take_out(struct client *c, size_t size)
{
    while (size > 0) {
        bool descriptors;
        ssize_t got = receive(c, size, 0, &descriptors);

        if (got <= 0)
            return -ECONNRESET;
        size -= (size_t)got;
    }
    return 0;
}

/* Memory for an unpacked frame. `refused` distinguishes a lack of memory from a malformed frame. */
static void *take(void *refused, size_t size)
{
    void *memory = malloc(size);

    if (!memory)
        *(bool *)refused = true;
    return memory;
}

static void give(void *refused, void *memory)
{
    free(memory);
}

/* Unpacks the frame that peek_frame has found. NULL: it is malformed, or there is no memory for it;
 * the client has ended. */
static Pwc__ClientRequest *unpack(struct client *c, size_t size)
{
    bool refused = false;
    ProtobufCAllocator memory = {.alloc = take, .free = give, .allocator_data = &refused};
    struct log_subject about = client_subject(c);
    Pwc__ClientRequest *r = pwc__client_request__unpack(&memory, size - FRAME_HEAD_BYTES,
                                                        c->control->frame + FRAME_HEAD_BYTES);

    if (!r && refused)
        log_about(&c->control->log, LOG_LEVEL_ERROR, &about,
                  "out of memory: a request of pid %d cannot be read, it is hung up on",
                  (int)c->pid);
    if (!r)
        c->on_end(c, refused ? NULL : "a frame that is no request");
    return r;
}

static void end_for(struct client *c, ssize_t reason)
{
    c->on_end(c, reason == -EMSGSIZE ? "a frame of more than 65536 bytes was announced"
                 : reason == -EPROTO ? "it sent descriptors: the daemon takes none"
                                     : NULL);
}

/* 1: a request was taken and carried out; 0: there is none, or the client has ended. */
static int take_request(struct client *c)
{
    ssize_t size = peek_frame(c);
    Pwc__ClientRequest *r;

    if (size < 0)
        end_for(c, size);
    if (size <= 0)
        return 0;
    r = unpack(c, (size_t)size);
    if (!r)
        return 0;
    if (r->id == 0) {
        c->on_end(c, "a request with id 0");
    } else {
        inflight_begin(client_inflight(c), r->id);
        if (take_out(c, (size_t)size) < 0) {
            c->on_end(c, NULL);
        } else {
            inflight_taken(client_inflight(c));
            c->on_request(c, r);
        }
    }
    pwc__client_request__free_unpacked(r, NULL);
    return c->state != CLIENT_ENDING;
}

uint32_t client_next_request(struct client *c)
{
    ssize_t size = peek_frame(c);
    Pwc__ClientRequest *r = NULL;
    uint32_t id;

    if (size > 0)
        r = unpack(c, (size_t)size);
    id = r ? r->id : 0;
    if (r)
        pwc__client_request__free_unpacked(r, NULL);
    return id;
}

/* Sets a deadline for a frame that was begun. Time in which we read nothing from the client does
 * not count. */
static void watch_frame(struct client *c)
{
    bool partial = c->partial && !held_back(c);

    /* The frame is not complete, and the socket stays readable: do not poll it, but look again in a
     * few milliseconds. */
    if (partial && !uv_is_active((uv_handle_t *)&c->control->again))
        uv_timer_start(&c->control->again, clients_look_again, AGAIN_MS, 0);
    if (c->state == CLIENT_ENDING || c->state == CLIENT_STRANGER || c->state == CLIENT_LOOKING)
        return; /* clients in these states have a deadline anyway */
    if (!partial)
        uv_timer_stop(&c->deadline);
    else if (!uv_is_active((uv_handle_t *)&c->deadline))
        uv_timer_start(&c->deadline, c->deadline.timer_cb, CLIENT_DEADLINE_MS, 0);
}

static void read_requests(struct client *c)
{
    for (int n = 0; n < FRAMES_A_WAKE && !held_back(c) && turns_may(c) && take_request(c); n++)
        turns_count(c);
}

static void serve(struct client *c, int status, int events)
{
    uv_poll_t *poll = &c->socket;

    if (c->state == CLIENT_ENDING) {
        if (status < 0 || flush(c) < 0 || !c->output)
            uv_poll_stop(poll);
        return;
    }
    if (status < 0 || (events & UV_WRITABLE && flush(c) < 0)) {
        c->on_end(c, NULL);
        return;
    }
    if (events & (UV_READABLE | UV_DISCONNECT))
        read_requests(c);
    /* While nothing is read (the client is held back, or its frame is not complete), no read finds
     * the hang-up. */
    if (events & UV_DISCONNECT && (held_back(c) || c->partial) && !c->control->leaving)
        c->on_end(c, NULL);
    client_stream_resume(c);
}

static void on_socket(uv_poll_t *poll, int status, int events)
{
    struct client *c = poll->data;
    struct control *control = c->control;
    struct account *before;

    if (uv_is_closing((uv_handle_t *)poll))
        return;
    before = account_begin(control, &c->user->account);
    serve(c, status, events);
    account_end(control, before);
}

void client_stream_resume(struct client *c)
{
    if (uv_is_closing((uv_handle_t *)&c->socket))
        return;
    watch_frame(c);
    poll_again(c);
}

void clients_next_turn(uv_check_t *check)
{
    struct control *control = check->data;
    struct client *c;

    control->turn++;
    while ((c = turns_next(control)) != NULL)
        client_stream_resume(c);
}

void clients_look_again(uv_timer_t *timer)
{
    struct control *control = timer->data;
    struct account *before;

    for (struct client *c = control->clients, *next; c; c = next) {
        next = c->next;
        if (!c->partial || c->state == CLIENT_ENDING)
            continue;
        before = account_begin(control, &c->user->account);
        read_requests(c);
        client_stream_resume(c);
        account_end(control, before);
    }
    if (control->in_line > 0) /* turns_next runs after the loop's next wait, which may be long */
        uv_async_send(&control->resume);
}

void clients_resume(uv_async_t *async)
{
    struct control *control = async->data;

    for (struct client *c = control->clients; c; c = c->next) {
        struct log_subject about = client_subject(c);

        if (c->doom == CLIENT_OVERFULL)
            c->on_end(c, "it does not read its replies");
        if (c->doom == CLIENT_UNANSWERED && c->state != CLIENT_ENDING) {
            log_about(&control->log, LOG_LEVEL_ERROR, &about,
                      "out of memory: pid %d cannot be answered, it is hung up on", (int)c->pid);
            c->on_end(c, NULL);
        }
        if (c->doom == CLIENT_UNREGISTERED)
            c->on_end(c, NULL);
    }
}
