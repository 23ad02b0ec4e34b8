/*
 * Owns the stream fabric (stream.h): opens and closes it, posts writes and reads, and polls.
 *
 * Thread: the progress thread owns all of it.
 *
 * An announced write, and the first read after a poll, are sent at once, if nothing waits before
 * them. A write without announcement, and further reads, are sent with the next announced write or
 * in the next poll: more is often posted right after them, and a call for each would make a long
 * step. From post to event there is no lock and no division, and no malloc except for a great
 * number of answers (stream_item.c).
 */
#include "daemon/fabric/stream/stream.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>
#include "daemon/fabric/share.h"
#include "daemon/fabric/stream/stream_private.h"

#define LOOKS              64 /* most sockets that one epoll_wait reports */
#define ASK_EVERY          16 /* while connections are hot: polls without asking the kernel */
#define COLD               64 /* after so many reads without data a connection is hot no more */
#define RESTS              2  /* polls before the next sleep, as a rule */
#define DEFAULT_PEERS      16384
#define DEFAULT_OPERATIONS 4096
#define DEFAULT_MEMORIES   4096

static struct stream *stream_of(struct fabric *fabric)
{
    return (struct stream *)fabric;
}

/* ---- posting --------------------------------------------------------------------------------- */

/* How an operation takes part in the limits. */
struct demand {
    uint32_t peer;
    bool answered;
    bool record;
};

/* Finds the connection for a peer's frames. A negative errno: none can be sent now. */
static int way_to(struct stream *s, const struct demand *d, struct stream_connection **out)
{
    const struct stream_peer *peer;

    if (d->peer >= s->peers.count)
        return -EINVAL;
    peer = &s->peers.table[d->peer];
    if (!peer->connected)
        return -ENOTCONN;
    if (!peer->connection || peer->connection->connecting ||
        !share_left(s->operations_max, s->operations_max - s->operations, peer->operations,
                    d->record) ||
        (d->answered && peer->connection->answers_awaited == STREAM_ANSWERS))
        return -EAGAIN;
    *out = peer->connection;
    return 0;
}

/* Whether the item waits for the next announced write, or for the next poll. */
static bool leaves_later(const struct stream *s, struct stream_connection *c,
                         const struct stream_item *item)
{
    bool asked = c->asked_at == s->polls;

    if (item->frame.kind == STREAM_WRITE)
        return !(item->frame.flags & STREAM_ANNOUNCE);
    c->asked_at = s->polls;
    return asked;
}

static int post(struct stream *s, struct stream_connection *c, const struct stream_item *what,
                bool answered)
{
    struct stream_item *item = stream_item_take(&s->items);

    if (!item)
        return -EAGAIN;
    *item = *what;
    s->operations++;
    s->peers.table[item->peer].operations++;
    c->answers_awaited += answered;
    stream_queue_push(&c->posted, item);
    if (leaves_later(s, c, item))
        stream_connection_due(s, c);
    else
        stream_connection_flush(s, c);
    return 0;
}

static int stream_write(struct fabric *fabric, const struct fabric_write *w)
{
    struct stream *s = stream_of(fabric);
    struct stream_connection *c;
    int rc;

    if (!stream_memory_holds(&s->memories, w->memory, w->source, w->length))
        return -EINVAL;
    rc = way_to(s, &(struct demand){w->peer, w->placed, w->record}, &c);
    if (rc < 0)
        return rc;
    return post(s, c,
                &(struct stream_item){
                    .frame = {.kind = STREAM_WRITE,
                              .flags = (uint8_t)((w->announce ? STREAM_ANNOUNCE : 0) |
                                                 (w->placed ? STREAM_PLACED : 0)),
                              .immediate = w->immediate,
                              .length = w->length,
                              .address = w->remote_address,
                              .key = w->remote_key},
                    .payload = w->source,
                    .memory = w->memory,
                    .cookie = w->cookie,
                    .peer = w->peer,
                    .event = FABRIC_WRITTEN,
                },
                w->placed);
}

static int stream_read(struct fabric *fabric, const struct fabric_read *r)
{
    struct stream *s = stream_of(fabric);
    struct stream_connection *c;
    int rc;

    if (!stream_memory_holds(&s->memories, r->memory, r->destination, r->length))
        return -EINVAL;
    rc = way_to(s, &(struct demand){.peer = r->peer, .answered = true}, &c);
    if (rc < 0)
        return rc;
    return post(s, c,
                &(struct stream_item){
                    .frame = {.kind = STREAM_READ,
                              .length = r->length,
                              .address = r->remote_address,
                              .key = r->remote_key},
                    .destination = r->destination,
                    .rest = r->length,
                    .memory = r->memory,
                    .cookie = r->cookie,
                    .peer = r->peer,
                    .event = FABRIC_READ,
                },
                true);
}

/* ---- events ---------------------------------------------------------------------------------- */

static int deliver_ended(struct stream *s, struct fabric_event *events, int room)
{
    int n = 0;

    while (n < room && s->ended.head) {
        struct stream_item *item = stream_queue_pop(&s->ended);

        events[n++] = (struct fabric_event){
            .kind = item->event,
            .status = item->status,
            .peer = item->peer,
            .cookie = item->cookie,
        };
        s->operations--;
        s->peers.table[item->peer].operations--;
        stream_item_release(&s->items, item);
    }
    return n;
}

static int deliver_arrivals(struct stream *s, struct fabric_event *events, int room)
{
    int n = 0;

    while (n < room && s->arrival_head != s->arrival_tail) {
        const struct stream_arrival *arrival = &s->arrivals[s->arrival_head++ % STREAM_ARRIVALS];

        if (arrival->peer != STREAM_NOBODY)
            events[n++] = (struct fabric_event){
                .kind = FABRIC_ARRIVED, .peer = arrival->peer, .immediate = arrival->immediate};
    }
    return n;
}

/* Makes a connection hot, because data has come: from now on it is read without asking the kernel
 * first. It replaces the connection that has been hot for the longest time. */
static void warm(struct stream *s, struct stream_connection *c)
{
    c->cold = 0;
    for (uint32_t i = 0; i < STREAM_HOT; i++)
        if (s->hot[i] == c)
            return;
    s->hot[s->next_hot++ % STREAM_HOT] = c;
}

/* Asks the kernel which sockets are ready and marks them. */
static void ask(struct stream *s)
{
    struct epoll_event ready[LOOKS];
    int n = epoll_wait(s->set, ready, LOOKS, 0);
    bool strangers = false;

    s->unasked = 0;
    for (int i = 0; i < n; i++) {
        struct stream_connection *c = ready[i].data.ptr;

        if (!c) {
            strangers = true;
            continue;
        }
        c->readable |= (ready[i].events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0;
        c->hung |= (ready[i].events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0;
        c->writable |= (ready[i].events & EPOLLOUT) != 0;
        if (c->readable && c->peer != STREAM_NOBODY)
            warm(s, c);
        stream_connection_due(s, c);
    }
    if (strangers)
        stream_listener_look(s);
}

/* Lets hot sockets, which had data lately, be read without asking the kernel first: to ask would
 * cost as much as a read, and in addition to it. The kernel is asked now and then, and always while
 * something waits to be sent. After a sleep the hot sockets are left alone for a few polls, because
 * the caller is about to sleep again, and the set will wake it. Returns whether the kernel need not
 * be asked. */
static bool look_at_hot(struct stream *s)
{
    bool any = false;

    if (s->blocked > 0)
        return false;
    if (s->rests > 0) {
        s->rests--;
        return true;
    }
    for (uint32_t i = 0; i < STREAM_HOT; i++) {
        struct stream_connection *c = s->hot[i];

        if (c && c->cold++ == COLD)
            s->hot[i] = NULL;
        else if (c) {
            c->readable = any = true;
            stream_connection_due(s, c);
        }
    }
    return any && s->unasked++ < ASK_EVERY;
}

/* The caller is about to sleep again. */
static void rest(struct stream *s)
{
    s->slept_on = false;
    s->rests = RESTS;
}

/* Reports lost peers, and added or dropped memory, after all writes that had arrived before. */
static int deliver_rest(struct stream *s, struct fabric_event *events, int room)
{
    int n = stream_peers_deliver(&s->peers, s->arrival_head, events, room);

    return n + stream_memories_deliver(&s->memories, s->arrival_head, events + n, room - n);
}

/* Gives one turn to each connection that may have work. */
static void progress(struct stream *s)
{
    for (uint32_t i = s->due_count; i > 0 && s->due_head && stream_arrivals_room(s); i--)
        stream_connection_progress(s, s->due_head);
}

static int stream_poll(struct fabric *fabric, struct fabric_event *events, int room)
{
    struct stream *s = stream_of(fabric);
    int n;

    s->polls++;
    /* Events that wait already get at most half of the room, so that events of the sockets have
     * room, too. */
    n = deliver_ended(s, events, (room + 1) >> 1);
    n += deliver_rest(s, events + n, room - n);
    if (!look_at_hot(s))
        ask(s);
    progress(s);
    if (s->slept_on && s->arrival_head == s->arrival_tail) { /* a socket that is not hot has woken
                                                              * us */
        ask(s);
        progress(s);
    }
    if (s->slept_on)
        rest(s);
    n += deliver_arrivals(s, events + n, room - n);
    n += deliver_rest(s, events + n, room - n);
    return n + deliver_ended(s, events + n, room - n);
}

/* The set is edge-triggered and reports what has come until now, so the caller may sleep without
 * another look. */
static int stream_arm(struct fabric *fabric, int *descriptor)
{
    struct stream *s = stream_of(fabric);

    if (s->ended.head || s->due_head || s->arrival_head != s->arrival_tail ||
        s->memories.due_head != UINT32_MAX || s->peers.broken_head != STREAM_NOBODY)
        return -EAGAIN;
    s->slept_on = true;
    s->rests = 0;
    *descriptor = s->set;
    return 0;
}

static void stream_silent(struct fabric *fabric)
{
    rest(stream_of(fabric));
}

/* ---- opening and closing --------------------------------------------------------------------- */

static void stream_close(struct fabric *fabric)
{
    struct stream *s = stream_of(fabric);

    for (uint32_t i = 0; s->peers.table && i < s->peers.count; i++)
        if (s->peers.table[i].connection)
            stream_connection_close(s, s->peers.table[i].connection, -ECANCELED);
    stream_listener_close(s);
    if (s->set >= 0)
        close(s->set);
    stream_memories_close(&s->memories);
    stream_items_close(&s->items);
    free(s->peers.table);
    free(s);
}

static const struct fabric_ops stream_ops = {
    .name = "stream",
    .close = stream_close,
    .address = stream_address,
    .connect = stream_connect,
    .disconnect = stream_disconnect,
    .mem_add = stream_mem_add,
    .mem_drop = stream_mem_drop,
    .write = stream_write,
    .read = stream_read,
    .poll = stream_poll,
    .arm = stream_arm,
    .silent = stream_silent,
};

static uint32_t or_default(uint32_t value, uint32_t otherwise)
{
    return value ? value : otherwise;
}

int stream_open(const struct stream_config *config, struct fabric **out)
{
    struct stream *s = aligned_alloc(64, sizeof(*s));
    int rc;

    if (!s)
        return -ENOMEM;
    memset(s, 0, sizeof(*s));
    s->fabric.ops = &stream_ops;
    s->fabric.traits = (struct fabric_traits){.message_max = UINT64_C(1) << 40,
                                              .ordered_write_max = UINT64_C(1) << 40,
                                              .can_sleep = true,
                                              .rails = 1};
    s->operations_max = or_default(config->operations_max, DEFAULT_OPERATIONS);
    s->listener.socket = s->listener.timer = -1;
    s->peers.count = or_default(config->peers_max, DEFAULT_PEERS);
    s->peers.broken_head = STREAM_NOBODY;
    stream_queue_open(&s->ended);
    s->set = epoll_create1(EPOLL_CLOEXEC);
    rc = s->set < 0 ? -errno : stream_listener_open(s, config);
    if (rc < 0)
        goto fail;
    rc = -ENOMEM;
    /* calloc leaves the pages of peers that never connect untouched. */
    s->peers.table = calloc(s->peers.count, sizeof(*s->peers.table));
    if (!s->peers.table || stream_items_open(&s->items, s->operations_max) < 0 ||
        stream_memories_open(&s->memories, or_default(config->memories_max, DEFAULT_MEMORIES)) < 0)
        goto fail;
    *out = &s->fabric;
    return 0;

fail:
    stream_close(&s->fabric);
    return rc;
}
