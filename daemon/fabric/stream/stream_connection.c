/*
 * Owns the connections of the stream fabric: their sockets, the chain of connections that are due,
 * and the sending of frames. stream_inbound.c receives.
 *
 * Sockets are edge-triggered: `readable`, `writable` and `hung` keep what the kernel has reported,
 * until a call finds that it is no longer so. EPOLLOUT is set only while a send waits for room. So
 * sockets that were read meanwhile cause no event, and the caller can sleep on the set as it is. A
 * payload is sent directly from its memory.
 *
 * Thread: the progress thread.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/uio.h>
#include <unistd.h>
#include "daemon/fabric/stream/stream_private.h"

#define TOGETHER     64          /* most items in one call */
#define JOINED_MOST  (512 << 10) /* most bytes of payloads in one frame */
#define NEAR_SEND    (256 << 10)
#define NEAR_RECEIVE (1 << 20)

/* ---- sockets --------------------------------------------------------------------------------- */

/* Replaces the congestion control BBR, which paces by a model of a long way: between the nodes of a
 * cluster it holds large payloads back to a third (docs/lab/fabric.md). Each kernel has Reno, and
 * by default lets every user choose it. A connection that has begun with BBR goes on pacing. */
static void avoid_pacing(int fd)
{
    static const char bbr[] = "bbr", reno[] = "reno"; /* BBR's versions have names that begin so */
    char name[16] = "";                               /* the kernel's TCP_CA_NAME_MAX */
    socklen_t size = sizeof(name);

    if (getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, &size) == 0 &&
        strncmp(name, bbr, sizeof(bbr) - 1) == 0)
        (void)setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, reno, sizeof(reno) - 1);
}

int stream_socket(int family)
{
    int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    if (fd >= 0)
        avoid_pacing(fd);
    return fd;
}

/* ---- the chain of connections to look at ----------------------------------------------------- */

void stream_connection_due(struct stream *s, struct stream_connection *c)
{
    if (c->due)
        return;
    c->due = true;
    c->next_due = NULL;
    c->previous_due = s->due_tail;
    if (s->due_tail)
        s->due_tail->next_due = c;
    else
        s->due_head = c;
    s->due_tail = c;
    s->due_count++;
}

static void not_due(struct stream *s, struct stream_connection *c)
{
    if (!c->due)
        return;
    c->due = false;
    s->due_count--;
    if (c->previous_due)
        c->previous_due->next_due = c->next_due;
    else
        s->due_head = c->next_due;
    if (c->next_due)
        c->next_due->previous_due = c->previous_due;
    else
        s->due_tail = c->previous_due;
}

/* ---- opening and closing --------------------------------------------------------------------- */

static bool same_host(const struct sockaddr_storage *a, const struct sockaddr_storage *b)
{
    const struct sockaddr_in *four = (const struct sockaddr_in *)a;
    const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)a;

    if (a->ss_family != b->ss_family)
        return false;
    return a->ss_family == AF_INET
               ? four->sin_addr.s_addr == ((const struct sockaddr_in *)b)->sin_addr.s_addr
               : IN6_ARE_ADDR_EQUAL(&six->sin6_addr, &((const struct sockaddr_in6 *)b)->sin6_addr);
}

/* Sets small socket buffers where both ends are on this machine, so that data under way stays in
 * the cache. The kernel's sizes, made for long wires, are too large for that
 * (docs/lab/fabric.md). */
static void keep_near(int fd)
{
    struct sockaddr_storage ours, theirs;
    socklen_t size = sizeof(ours), their_size = sizeof(theirs);
    int send_bytes = NEAR_SEND, receive_bytes = NEAR_RECEIVE;

    if (getsockname(fd, (struct sockaddr *)&ours, &size) < 0 ||
        getpeername(fd, (struct sockaddr *)&theirs, &their_size) < 0 || !same_host(&ours, &theirs))
        return;
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &send_bytes, sizeof(send_bytes));
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &receive_bytes, sizeof(receive_bytes));
}

void stream_connection_tune(const struct stream_connection *c)
{
    int one = 1;

    (void)setsockopt(c->socket, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    keep_near(c->socket);
}

/* Sets which events of the socket the kernel reports. `room`: also when it can be written to. */
static int watch(struct stream *s, struct stream_connection *c, int how, bool room)
{
    struct epoll_event event = {
        .events = EPOLLIN | EPOLLRDHUP | EPOLLET | (room ? (uint32_t)EPOLLOUT : 0), .data.ptr = c};

    return epoll_ctl(s->set, how, c->socket, &event) < 0 ? -errno : 0;
}

int stream_connection_open(struct stream *s, int fd, bool connecting,
                           struct stream_connection **out)
{
    struct stream_connection *c = calloc(1, sizeof(*c));
    int rc = -ENOMEM;

    if (!c)
        goto fail;
    c->socket = fd;
    c->connecting = connecting;
    c->writable = !connecting;
    rc = watch(s, c, EPOLL_CTL_ADD, connecting);
    if (rc < 0)
        goto fail;
    c->peer = STREAM_NOBODY;
    stream_queue_open(&c->posted);
    stream_queue_open(&c->answers);
    stream_queue_open(&c->out);
    stream_queue_open(&c->awaiting);
    *out = c;
    return 0;

fail:
    free(c);
    close(fd);
    return rc;
}

/* Ends the items joined to this one of which all bytes, up to `sent`, are sent. */
static void joined_end(struct stream *s, struct stream_item *item, uint64_t sent, int status)
{
    while (item->joined && item->joined->sent <= sent) {
        struct stream_item *next = item->joined->next;

        stream_item_ended(s, item->joined, status);
        item->joined = next;
    }
}

static void end_all(struct stream *s, struct stream_queue *queue, int status)
{
    while (queue->head) {
        struct stream_item *item = stream_queue_pop(queue);

        joined_end(s, item, UINT64_MAX, status);
        stream_item_ended(s, item, status);
    }
}

void stream_connection_close(struct stream *s, struct stream_connection *c, int status)
{
    not_due(s, c);
    s->blocked -= c->blocked;
    for (uint32_t i = 0; i < STREAM_HOT; i++)
        if (s->hot[i] == c)
            s->hot[i] = NULL;
    /* Where a process is just being started, it may have a copy of the socket, and close would not
     * take the socket out of the set. */
    (void)epoll_ctl(s->set, EPOLL_CTL_DEL, c->socket, NULL);
    close(c->socket);
    end_all(s, &c->awaiting, status);
    end_all(s, &c->out, status);
    end_all(s, &c->posted, status);
    end_all(s, &c->answers, status);
    free(c);
}

static bool queue_uses(const struct stream_queue *queue, uint32_t memory)
{
    for (const struct stream_item *item = queue->head; item; item = item->next)
        if (item->memory == memory)
            return true;
    return false;
}

bool stream_connection_uses(const struct stream_connection *c, uint32_t memory)
{
    return (c->in.got == STREAM_FRAME && c->in.to && c->in.memory == memory) ||
           queue_uses(&c->posted, memory) || queue_uses(&c->answers, memory) ||
           queue_uses(&c->out, memory) || queue_uses(&c->awaiting, memory);
}

/* ---- sending --------------------------------------------------------------------------------- */

static uint64_t bytes_of(const struct stream_item *item)
{
    return STREAM_FRAME + (item->payload ? item->frame.length : 0);
}

static void leaves_next(struct stream_connection *c, struct stream_item *item)
{
    stream_queue_push(&c->out, item);
    c->out_count++;
    c->out_bytes += bytes_of(item);
}

/* Whether the second write continues where the first ends, at the target and at the source, and
 * neither write has a flag. */
static bool goes_on(const struct stream_item *first, const struct stream_item *second)
{
    const struct stream_frame *a = &first->frame, *b = &second->frame;

    return a->kind == STREAM_WRITE && b->kind == STREAM_WRITE && !a->flags && !b->flags &&
           a->key == b->key && a->address + a->length == b->address &&
           first->memory == second->memory && first->payload + a->length == second->payload &&
           a->length + b->length <= JOINED_MOST;
}

/* Moves the next operation of ours to the frames that leave next. Consecutive pieces of one payload
 * leave in one frame, because each frame costs the other side a call. */
static void posted_leaves(struct stream_connection *c)
{
    struct stream_item *item = stream_queue_pop(&c->posted);
    struct stream_item **last = &item->joined;

    while (c->posted.head && goes_on(item, c->posted.head)) {
        *last = stream_queue_pop(&c->posted);
        item->frame.length += (*last)->frame.length;
        (*last)->sent = bytes_of(item);
        last = &(*last)->next;
    }
    *last = NULL;
    leaves_next(c, item);
}

/* Moves the next answer to the frames that leave next. A long answer leaves in parts, and later
 * answers wait until all of it is sent. */
static void answer_leaves(struct stream_connection *c)
{
    struct stream_item *item = stream_queue_pop(&c->answers);

    if (item->frame.length > STREAM_PIECE) {
        item->rest = item->frame.length - STREAM_PIECE;
        item->frame.length = STREAM_PIECE;
        c->answering = true;
    }
    leaves_next(c, item);
}

/*
 * Chooses what leaves next. While operations of ours and answers to operations of the peer both
 * wait, they share the connection by bytes. So a write waits at most for one part of an answer, and
 * an answer at most for one payload of ours.
 */
static void choose(struct stream_connection *c)
{
    while (c->out_count < TOGETHER && c->out_bytes < STREAM_PIECE) {
        bool answer = c->answers.head && !c->answering;
        uint64_t before = c->out_bytes;

        if (!c->posted.head && !answer)
            return;
        if (!c->posted.head || !c->answers.head)
            c->lead = 0;
        if (answer && (!c->posted.head || c->lead > 0)) {
            answer_leaves(c);
            c->lead -= (int64_t)(c->out_bytes - before);
        } else if (c->posted.head) {
            posted_leaves(c);
            c->lead += (int64_t)(c->out_bytes - before);
        }
    }
}

/* Describes the unsent part of an item's frame and payload, at most STREAM_TURN bytes of
 * payload. */
static int left_of(const struct stream_item *item, struct iovec *out)
{
    uint64_t payload = bytes_of(item) - STREAM_FRAME;
    uint64_t of_payload = item->sent > STREAM_FRAME ? item->sent - STREAM_FRAME : 0;
    int n = 0;

    if (item->sent < STREAM_FRAME)
        out[n++] = (struct iovec){(uint8_t *)(uintptr_t)&item->frame + item->sent,
                                  STREAM_FRAME - item->sent};
    if (of_payload < payload) {
        uint64_t left = payload - of_payload;

        out[n++] = (struct iovec){(uint8_t *)(uintptr_t)item->payload + of_payload,
                                  left < STREAM_TURN ? left : STREAM_TURN};
    }
    return n;
}

/* Puts what is left of a long answer at the front of the answers, after one part was sent. */
static void answer_goes_on(struct stream_connection *c, struct stream_item *item)
{
    item->payload += item->frame.length;
    item->frame.length = item->rest;
    item->rest = 0;
    item->sent = 0;
    stream_queue_push_front(&c->answers, item);
    c->answering = false;
}

/* Accounts for sent bytes. An item that is sent completely waits for its answer, or has ended. */
static void sent(struct stream *s, struct stream_connection *c, uint64_t bytes)
{
    while (c->out.head) {
        struct stream_item *item = c->out.head;
        uint64_t all = bytes_of(item);
        uint64_t n = bytes < all - item->sent ? bytes : all - item->sent;

        item->sent += n;
        bytes -= n;
        joined_end(s, item, item->sent, 0);
        if (item->sent < all)
            return;
        (void)stream_queue_pop(&c->out);
        c->out_count--;
        c->out_bytes -= all;
        if (item->event == 0 && item->rest > 0) {
            answer_goes_on(c, item);
            continue;
        }
        c->answers_due -= item->event == 0;
        if (item->frame.kind == STREAM_READ || item->frame.flags & STREAM_PLACED)
            stream_queue_push(&c->awaiting, item);
        else
            stream_item_ended(s, item, 0);
    }
}

/* Sends a payload through the buffer, where the kernel cannot read it (a client's memory that
 * cannot be filled). Then our own access to the memory faults, which is counted for this client
 * only. */
static ssize_t send_copied(struct stream *s, struct stream_connection *c)
{
    struct iovec parts[2];
    int n = left_of(c->out.head, parts);
    size_t size = 0;

    for (int i = 0; i < n; i++) {
        size_t room = STREAM_BUFFER - size;
        size_t some = parts[i].iov_len < room ? parts[i].iov_len : room;

        memcpy(s->buffer + size, parts[i].iov_base, some);
        size += some;
    }
    return send(c->socket, s->buffer, size, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* Collects the parts that one call sends next. */
static size_t gather(struct stream_connection *c, struct iovec parts[2 * TOGETHER])
{
    const struct stream_item *item;
    size_t count = 0, bytes = 0;

    choose(c);
    item = c->out.head;
    for (; item && count <= 2 * TOGETHER - 2 && bytes < STREAM_TURN; item = item->next)
        for (int n = left_of(item, parts + count); n > 0; n--)
            bytes += parts[count++].iov_len;
    return count;
}

/* Notes whether the connection waits for room in its socket. While one does, the kernel is asked at
 * each poll, because only the kernel reports the room. */
static void note_blocked(struct stream *s, struct stream_connection *c, bool blocked)
{
    if (blocked == c->blocked)
        return;
    /* A failure, which is impossible for a socket in the set: try to send again without the
     * kernel's report. */
    if (watch(s, c, EPOLL_CTL_MOD, blocked) < 0 && blocked) {
        c->writable = true;
        stream_connection_due(s, c);
        return;
    }
    s->blocked += (uint32_t)blocked - (uint32_t)c->blocked;
    c->blocked = blocked;
}

static bool has_to_send(const struct stream_connection *c)
{
    return c->out.head || c->posted.head || c->answers.head;
}

void stream_connection_flush(struct stream *s, struct stream_connection *c)
{
    uint64_t bytes = 0;

    while (c->writable && has_to_send(c) && bytes < STREAM_TURN) {
        struct iovec parts[2 * TOGETHER];
        struct msghdr message = {.msg_iov = parts, .msg_iovlen = gather(c, parts)};
        ssize_t n = sendmsg(c->socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL);

        if (n < 0 && errno == EFAULT)
            n = send_copied(s, c);
        if (n < 0) { /* a read will return the error */
            c->writable = false;
            if (errno != EAGAIN) {
                c->readable = c->hung = true;
                stream_connection_due(s, c);
            }
            break;
        }
        sent(s, c, (uint64_t)n);
        bytes += (uint64_t)n;
    }
    if (c->writable && has_to_send(c))
        stream_connection_due(s, c);
    note_blocked(s, c, !c->writable && has_to_send(c));
}

/* ---- progress -------------------------------------------------------------------------------- */

/* Sends the greeting, before all frames, when the socket is connected. Returns 0, or why the socket
 * could not be connected. */
static int connected(struct stream *s, struct stream_connection *c)
{
    socklen_t size = sizeof(int);
    int error = 0;

    if (getsockopt(c->socket, SOL_SOCKET, SO_ERROR, &error, &size) < 0)
        return -errno;
    if (error)
        return -error;
    stream_connection_tune(c);
    if (send(c->socket, &c->greeting, sizeof(c->greeting), MSG_DONTWAIT | MSG_NOSIGNAL) !=
        sizeof(c->greeting))
        return -ECONNRESET;
    c->connecting = false;
    return watch(s, c, EPOLL_CTL_MOD, false);
}

void stream_connection_progress(struct stream *s, struct stream_connection *c)
{
    int rc = 0;

    not_due(s, c);
    if (c->peer == STREAM_NOBODY) {
        stream_listener_read(s, c);
        return;
    }
    if (c->connecting && (c->writable || c->hung))
        rc = connected(s, c);
    if (rc == 0 && !c->connecting)
        rc = stream_receive(s, c);
    if (rc < 0) {
        stream_peer_broken(s, c->peer, rc);
        return;
    }
    if (!c->connecting)
        stream_connection_flush(s, c);
    if (c->readable && !c->connecting)
        stream_connection_due(s, c);
}
