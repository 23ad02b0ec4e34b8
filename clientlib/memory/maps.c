/* Owns readers of /proc/thread-self/maps (maps.h). Thread: any. */
#include "clientlib/memory/maps.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

int maps_open(struct maps *maps)
{
    maps->skipping = false;
    maps->at = maps->filled = 0;
    /* /proc/self/maps is empty once the first thread has ended. */
    maps->fd = open("/proc/thread-self/maps", O_RDONLY | O_CLOEXEC);
    return maps->fd < 0 ? -errno : 0;
}

void maps_close(struct maps *maps)
{
    close(maps->fd);
}

static bool parse(const char *text, struct maps_line *line)
{
    unsigned major_number, minor_number;
    char rights[5];
    int name_at = 0;

    if (sscanf(text, "%" SCNxPTR "-%" SCNxPTR " %4s %" SCNx64 " %x:%x %" SCNu64 " %n", &line->start,
               &line->end, rights, &line->offset, &major_number, &minor_number, &line->inode,
               &name_at) < 7)
        return false;
    line->device = makedev(major_number, minor_number);
    line->readable = rights[0] == 'r';
    line->writable = rights[1] == 'w';
    line->executable = rights[2] == 'x';
    line->shared = rights[3] != 'p';
    snprintf(line->name, sizeof(line->name), "%s", text + name_at);
    return true;
}

/* Moves the unread rest to the start of the buffer and reads more after it: how much, 0 at the end,
 * or a negative errno. */
static ssize_t fill(struct maps *maps)
{
    ssize_t got;

    memmove(maps->buffer, maps->buffer + maps->at, maps->filled - maps->at);
    maps->filled -= maps->at;
    maps->at = 0;
    do
        got = read(maps->fd, maps->buffer + maps->filled, sizeof(maps->buffer) - maps->filled);
    while (got < 0 && (errno == EINTR || errno == EAGAIN));
    if (got < 0)
        return -errno;
    maps->filled += (uint32_t)got;
    return got;
}

int maps_next(struct maps *maps, struct maps_line *line)
{
    for (;;) {
        char *text = maps->buffer + maps->at;
        uint32_t left = maps->filled - maps->at;
        char *end = memchr(text, '\n', left);
        bool skipped = maps->skipping;
        ssize_t got;

        if (end) {
            *end = '\0';
            maps->at += (uint32_t)(end - text) + 1;
            maps->skipping = false;
            if (!skipped && parse(text, line))
                return 1;
            continue;
        }
        if (left == sizeof(maps->buffer)) { /* the buffer has all of the line except the end of its
                                               name */
            maps->at = maps->filled;
            maps->skipping = true;
            maps->buffer[sizeof(maps->buffer) - 1] = '\0';
            if (!skipped && parse(maps->buffer, line))
                return 1;
            continue;
        }
        got = fill(maps);
        if (got <= 0)
            return (int)got;
    }
}

int maps_find(uintptr_t at, struct maps_line *line)
{
    struct maps maps;
    int rc = maps_open(&maps);

    if (rc < 0)
        return rc;
    do
        rc = maps_next(&maps, line);
    while (rc > 0 && line->end <= at);
    maps_close(&maps);
    return rc > 0 ? line->start <= at : rc;
}
