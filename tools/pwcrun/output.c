/* Forwards the lines of children. */
#include "tools/pwcrun/output.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#define HELD_MAX   ((size_t)1 << 20)
#define HELD_FIRST ((size_t)4096)

int output_open(struct output *output, int to, const char *label, bool ends_unread, int *child_end)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return -errno;
    if (fcntl(ends[0], F_SETFL, O_NONBLOCK) < 0) {
        int rc = -errno;
        close(ends[0]);
        close(ends[1]);
        return rc;
    }
    output->from = ends[0];
    output->to = to;
    output->ends_unread = ends_unread;
    output->used = 0;
    snprintf(output->label, sizeof(output->label), "%s", label);
    *child_end = ends[1];
    return 0;
}

/* Writes all parts; waits for room where `to` does not block. -EPIPE: nobody reads it any more. */
static int write_whole(int to, struct iovec *parts, int count)
{
    while (count > 0) {
        ssize_t written = writev(to, parts, count);
        if (written < 0 && errno == EAGAIN) {
            struct pollfd room = {.fd = to, .events = POLLOUT};
            poll(&room, 1, -1);
        } else if (written < 0 && errno != EINTR) {
            return -errno;
        }
        size_t done = written > 0 ? (size_t)written : 0;
        for (; count > 0 && done >= parts->iov_len; parts++, count--)
            done -= parts->iov_len;
        if (count > 0) {
            parts->iov_base = (char *)parts->iov_base + done;
            parts->iov_len -= done;
        }
    }
    return 0;
}

static void close_from(struct output *output)
{
    if (output->from >= 0)
        close(output->from);
    output->from = -1;
}

/* Makes room for `more` bytes; twice as much each time, because lines are short and many. */
static bool hold_room(struct output *output, size_t more)
{
    size_t room = output->held_room > 0 ? output->held_room : HELD_FIRST;
    char *held;
    while (room < output->held_size + more)
        room *= 2;
    if (room == output->held_room)
        return true;
    held = realloc(output->held, room);
    if (held == NULL)
        return false;
    output->held = held;
    output->held_room = room;
    return true;
}

static void keep_line(struct output *output, const struct iovec *parts, int count)
{
    for (int i = 0; i < count && output->held_size < HELD_MAX; i++) {
        if (!hold_room(output, parts[i].iov_len))
            return;
        memcpy(output->held + output->held_size, parts[i].iov_base, parts[i].iov_len);
        output->held_size += parts[i].iov_len;
    }
}

/* Writes a line by one call, so that lines of several children don't mix. */
static void write_line(struct output *output, const char *text, size_t size)
{
    static const char newline = '\n';
    struct iovec parts[3] = {
        {(void *)output->label, strlen(output->label)},
        {(void *)text, size},
        {(void *)&newline, 1},
    };
    if (output->hold)
        keep_line(output, parts, 3);
    else if (write_whole(output->to, parts, 3) == -EPIPE && output->ends_unread)
        close_from(output);
}

void output_hold(struct output *output)
{
    output->hold = true;
}

void output_release(struct output *output)
{
    struct iovec all = {output->held, output->held_size};
    if (output->held_size > 0)
        (void)write_whole(output->to, &all, 1);
    free(output->held);
    output->held = NULL;
    output->held_size = output->held_room = 0;
    output->hold = false;
}

static void write_lines(struct output *output)
{
    char *start = output->line, *end = output->line + output->used, *newline;
    while ((newline = memchr(start, '\n', (size_t)(end - start))) != NULL) {
        write_line(output, start, (size_t)(newline - start));
        start = newline + 1;
    }
    output->used = (size_t)(end - start);
    memmove(output->line, start, output->used);
    if (output->used == sizeof(output->line)) { /* longer than any line should be: cut */
        write_line(output, output->line, output->used);
        output->used = 0;
    }
}

static void finish(struct output *output)
{
    if (output->used > 0)
        write_line(output, output->line, output->used);
    output->used = 0;
    close_from(output);
}

/* Returns the number of bytes that have come. */
static size_t forward_one_read(struct output *output)
{
    ssize_t got;
    if (output->from < 0)
        return 0;
    do
        got = read(output->from, output->line + output->used, sizeof(output->line) - output->used);
    while (got < 0 && errno == EINTR);
    if (got < 0 && errno == EAGAIN)
        return 0;
    if (got <= 0) {
        finish(output);
        return 0;
    }
    output->used += (size_t)got;
    write_lines(output);
    return (size_t)got;
}

void output_forward(struct output *output)
{
    forward_one_read(output);
}

void output_drain(struct output *output)
{
    int room = fcntl(output->from, F_GETPIPE_SZ);
    size_t left = room > 0 ? (size_t)room : 0, got;
    while (left > 0 && (got = forward_one_read(output)) > 0)
        left -= got < left ? got : left;
}

void output_close(struct output *output)
{
    output_drain(output);
    if (output->from >= 0)
        finish(output);
    free(output->held);
    output->held = NULL;
    output->held_size = output->held_room = 0;
}
