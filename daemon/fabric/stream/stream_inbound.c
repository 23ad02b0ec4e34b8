/*
 * Owns the receiving on connections of the stream fabric: writes and reads of peers, and answers to
 * ours.
 *
 * A large payload is read from the socket into its memory. All other bytes, whose place is not
 * known yet, are read into the fabric's buffer, which is empty again before the next read.
 *
 * Thread: the progress thread.
 */
#include <errno.h>
#include <string.h>
#include <sys/uio.h>
#include "daemon/fabric/stream/stream_private.h"
#include "shm_ring/clock.h"

/* A payload with at least so many bytes left is read directly to its place. */
#define DIRECT_LEAST 4096u
/* Bytes read into the buffer after a payload that is read directly: enough for the frames that
 * announce it, but so few of a next payload that to copy them costs less than a call. */
#define BEHIND 1024u
/* A turn ends so long after its first STREAM_PIECE bytes, even if bytes are left. */
#define TURN_NS 250000u

static int answer(struct stream *s, struct stream_connection *c, struct stream_frame frame,
                  const uint8_t *payload, uint32_t memory)
{
    struct stream_item *item;

    if (c->answers_due == STREAM_ANSWERS)
        return -EPROTO;
    item = stream_item_take(&s->items);
    if (!item)
        return -ENOMEM;
    *item =
        (struct stream_item){.frame = frame, .payload = payload, .memory = memory, .peer = c->peer};
    c->answers_due++;
    stream_queue_push(&c->answers, item);
    return 0;
}

static int answer_done(struct stream *s, struct stream_connection *c, int status)
{
    return answer(s, c, (struct stream_frame){.kind = STREAM_DONE, .key = (uint64_t)-status}, NULL,
                  STREAM_NOBODY);
}

/* Ends the oldest item that waits for an answer. */
static void answered(struct stream *s, struct stream_connection *c, int status)
{
    struct stream_item *item = stream_queue_pop(&c->awaiting);

    c->answers_awaited--;
    stream_item_ended(s, item, status);
}

static int write_begins(struct stream *s, struct stream_connection *c)
{
    struct stream_inbound *in = &c->in;

    if (in->frame.flags & ~(unsigned)(STREAM_ANNOUNCE | STREAM_PLACED))
        return -EPROTO;
    in->to = stream_memory_named(&s->memories, &in->frame, FABRIC_REMOTE_WRITE, &in->memory);
    in->left = in->frame.length;
    /* A refused write with `placed` is answered with DONE. The origin of another refused write
     * would assume that it was placed, so the connection ends. */
    return in->to || in->frame.flags & STREAM_PLACED ? 0 : -EACCES;
}

static int read_asked(struct stream *s, struct stream_connection *c)
{
    const struct stream_frame *frame = &c->in.frame;
    uint32_t memory;
    const uint8_t *from = stream_memory_named(&s->memories, frame, FABRIC_REMOTE_READ, &memory);
    struct stream_frame data = {.kind = STREAM_DATA, .length = frame->length};

    if (frame->flags)
        return -EPROTO;
    return from ? answer(s, c, data, from, memory) : answer_done(s, c, -EACCES);
}

/* Begins to receive an answer, or a part of one. */
static int data_begins(struct stream_connection *c)
{
    const struct stream_item *item = c->awaiting.head;
    struct stream_inbound *in = &c->in;

    if (!item || item->frame.kind != STREAM_READ || in->frame.length > item->rest ||
        (in->frame.length == 0 && item->rest > 0) || in->frame.flags)
        return -EPROTO;
    in->to = item->destination;
    in->memory = item->memory;
    in->left = in->frame.length;
    return 0;
}

static void data_ends(struct stream *s, struct stream_connection *c)
{
    struct stream_item *item = c->awaiting.head;

    item->rest -= c->in.frame.length;
    item->destination += c->in.frame.length;
    if (item->rest == 0)
        answered(s, c, 0);
}

static int done_comes(struct stream *s, struct stream_connection *c)
{
    const struct stream_item *item = c->awaiting.head;
    const struct stream_frame *frame = &c->in.frame;

    if (!item || frame->length > 0 || frame->flags || frame->key > 4095 ||
        (item->frame.kind == STREAM_READ &&
         (frame->key == 0 || item->rest < item->frame.length))) /* a part of its data has come
                                                                 * already */
        return -EPROTO;
    answered(s, c, -(int)frame->key);
    return 0;
}

/* Handles a frame's head, which has been read completely. */
static int frame_begins(struct stream *s, struct stream_connection *c)
{
    c->in.left = 0;
    c->in.to = NULL;
    c->in.copied = false;
    if (c->in.frame.zero != 0)
        return -EPROTO;
    switch (c->in.frame.kind) {
    case STREAM_WRITE:
        return write_begins(s, c);
    case STREAM_READ:
        return read_asked(s, c);
    case STREAM_DATA:
        return data_begins(c);
    case STREAM_DONE:
        return done_comes(s, c);
    default:
        return -EPROTO;
    }
}

/* Handles the end of a frame, whose payload has been read completely. */
static int frame_ends(struct stream *s, struct stream_connection *c)
{
    const struct stream_frame *frame = &c->in.frame;

    c->in.got = 0;
    if (frame->kind == STREAM_DATA)
        data_ends(s, c);
    if (frame->kind != STREAM_WRITE)
        return 0;
    if (frame->flags & STREAM_ANNOUNCE && c->in.to)
        s->arrivals[s->arrival_tail++ % STREAM_ARRIVALS] =
            (struct stream_arrival){c->peer, frame->immediate};
    return frame->flags & STREAM_PLACED ? answer_done(s, c, c->in.to ? 0 : -EACCES) : 0;
}

static void placed(struct stream_inbound *in, uint64_t bytes)
{
    if (in->to)
        in->to += bytes;
    in->left -= bytes;
}

/* Handles bytes that were read into the buffer. */
static int take(struct stream *s, struct stream_connection *c, const uint8_t *at, size_t size)
{
    struct stream_inbound *in = &c->in;
    int rc = 0;

    for (;;) {
        if (in->got < STREAM_FRAME) {
            size_t n = STREAM_FRAME - in->got < size ? STREAM_FRAME - in->got : size;

            memcpy((uint8_t *)&in->frame + in->got, at, n);
            in->got += (uint32_t)n;
            at += n;
            size -= n;
            if (in->got < STREAM_FRAME)
                return 0;
            rc = frame_begins(s, c);
        }
        if (rc == 0 && in->left > 0) {
            size_t n = in->left < size ? in->left : size;

            if (in->to)
                memcpy(in->to, at, n);
            placed(in, n);
            at += n;
            size -= n;
            if (in->left > 0)
                return 0;
        }
        if (rc == 0)
            rc = frame_ends(s, c);
        if (rc < 0)
            return rc;
    }
}

/* Makes one call: reads what is left of a payload to its place, and what follows into the
 * buffer. */
static ssize_t receive_once(struct stream *s, struct stream_connection *c)
{
    struct stream_inbound *in = &c->in;
    bool direct = in->got == STREAM_FRAME && in->to && in->left >= DIRECT_LEAST && !in->copied;
    uint64_t place = !direct ? 0 : in->left < STREAM_PIECE ? in->left : STREAM_PIECE;
    size_t rest = !direct ? STREAM_BUFFER : place < in->left ? 0 : BEHIND;
    struct iovec parts[2] = {{in->to, place}, {s->buffer, rest}};
    size_t asked = place + rest;
    ssize_t n = readv(c->socket, direct ? parts : parts + 1, direct ? 2 : 1);
    size_t first;
    int rc;

    if (n < 0)
        return -errno;
    if (n == 0)
        return -ECONNRESET;
    s->fabric.received++;
    /* Only a short read into the buffer shows that the socket is empty: a read into client memory
     * may also stop at a page that faults. */
    if ((size_t)n < asked && !direct && !c->hung)
        c->readable = false;
    first = (size_t)n < parts[0].iov_len ? (size_t)n : parts[0].iov_len;
    if (direct) {
        placed(in, first);
        rc = in->left == 0 ? frame_ends(s, c) : 0;
        if (rc < 0)
            return rc;
    }
    if ((size_t)n > first) {
        rc = take(s, c, s->buffer, (size_t)n - first);
        if (rc < 0)
            return rc;
    }
    return n;
}

/* Whether a turn takes too long, which happens with a large payload into new memory, where the
 * kernel must fill each page. */
static bool takes_long(uint64_t bytes, uint64_t *began)
{
    uint64_t now;

    if (bytes < STREAM_PIECE)
        return false;
    now = clock_ns();
    if (*began == 0)
        *began = now;
    return now - *began > TURN_NS;
}

int stream_receive(struct stream *s, struct stream_connection *c)
{
    uint64_t bytes = 0, began = 0;

    while (c->readable && bytes < STREAM_TURN && stream_arrivals_room(s) &&
           !takes_long(bytes, &began)) {
        ssize_t n = receive_once(s, c);

        if (n == -EAGAIN && c->hung) /* a send has failed, which reads do not report */
            return -ECONNRESET;
        if (n == -EAGAIN)
            c->readable = false;
        else if (n == -EFAULT)
            c->in.copied = true;
        else if (n < 0)
            return (int)n;
        else {
            bytes += (uint64_t)n;
            c->cold = 0;
        }
    }
    return 0;
}
