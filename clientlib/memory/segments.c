/*
 * Owns the client's segments: their mappings and their free ranges. Thread: the one that holds the
 * client's lock.
 */
#include "clientlib/memory/segments.h"
#include "shm_ring/fault.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "clientlib/memory/populate.h"

#define FIRST_LENGTH (UINT64_C(4) << 20)
#define LENGTH_MAX   (UINT64_C(64) << 20) /* a longer segment is for one region only */
#define POPULATE_MIN (UINT64_C(64) << 10) /* fewer new pages are not worth a system call */

enum { CACHE_LINE = 64 };

static uint64_t page_bytes(void)
{
    return (uint64_t)sysconf(_SC_PAGESIZE);
}

static uint64_t round_up(uint64_t length, uint64_t align)
{
    return (length + align - 1) & ~(align - 1);
}

/* ---- requests to the daemon ------------------------------------------------------------------ */

struct opened {
    uint64_t length;
    uint32_t id;
    int fd;
};

static int accept_opened(void *context, const Pwc__ClientReply *reply, int *fds, int fd_count)
{
    struct opened *opened = context;

    if (fd_count > 1)
        return -EPROTO;
    opened->length = reply->segment_opened->length;
    opened->id = reply->segment_opened->segment;
    opened->fd = -1;
    if (fd_count == 1) {
        opened->fd = fds[0];
        fds[0] = -1;
    }
    return 1;
}

int segment_request(struct daemon_link *link, uint64_t *length, uint32_t *id, int *fd)
{
    Pwc__ClientRequest request = PWC__CLIENT_REQUEST__INIT;
    Pwc__SegmentOpen open = PWC__SEGMENT_OPEN__INIT;
    struct opened opened;
    int rc;

    open.length = *length;
    request.body_case = PWC__CLIENT_REQUEST__BODY_SEGMENT_OPEN;
    request.segment_open = &open;
    rc = daemon_call_again(link, &request, PWC__CLIENT_REPLY__BODY_SEGMENT_OPENED, accept_opened,
                           &opened);
    if (rc < 0)
        return rc;
    if (opened.fd < 0) { /* this process can open no more descriptors */
        (void)segment_release(link, opened.id);
        return -EMFILE;
    }
    if (opened.length < *length || opened.length % page_bytes() != 0) {
        close(opened.fd);
        return -EPROTO;
    }
    *length = opened.length;
    *id = opened.id;
    *fd = opened.fd;
    return 0;
}

int segment_release(struct daemon_link *link, uint32_t id)
{
    Pwc__ClientRequest request = PWC__CLIENT_REQUEST__INIT;
    Pwc__SegmentClose close_request = PWC__SEGMENT_CLOSE__INIT;

    close_request.segment = id;
    request.body_case = PWC__CLIENT_REQUEST__BODY_SEGMENT_CLOSE;
    request.segment_close = &close_request;
    return daemon_end(link, &request);
}

/* ---- the list ------------------------------------------------------------------------------- */

void segments_init(struct segments *segments, struct daemon_link *link, struct span_table *spans)
{
    *segments = (struct segments){
        .link = link,
        .spans = spans,
        .next_length = FIRST_LENGTH,
    };
}

static void free_segment(struct client_segment *segment)
{
    extents_destroy(&segment->extents);
    mapping_destroy(&segment->mapping);
    free(segment);
}

void segments_destroy(struct segments *segments)
{
    while (segments->list) {
        struct client_segment *segment = segments->list;

        segments->list = segment->next;
        free_segment(segment);
    }
}

static int open_segment(struct segments *segments, uint64_t length)
{
    struct client_segment *segment = calloc(1, sizeof(*segment));
    int fd;
    int rc;

    if (!segment)
        return -ENOMEM;
    segment->mapping.fd = -1;
    rc = segment_request(segments->link, &length, &segment->id, &fd);
    if (rc < 0)
        goto release_memory;
    FAULT(SEGMENT_OPENED);
    rc = mapping_adopt(&segment->mapping, fd, length);
    if (rc < 0) {
        close(fd);
        goto release_segment;
    }
    mapping_close_fd(&segment->mapping);
    rc = extents_init(&segment->extents, length);
    if (rc < 0)
        goto release_segment;

    struct span span = {
        .start = (uintptr_t)segment->mapping.base,
        .length = length,
        .segment = segment->id,
    };

    rc = span_table_add(segments->spans, &span);
    if (rc < 0)
        goto release_segment;
    segment->next = segments->list;
    segments->list = segment;
    FAULT(SEGMENT_MAPPED);
    return 0;

release_segment:
    (void)segment_release(segments->link, segment->id);
release_memory:
    free_segment(segment);
    return rc;
}

/*
 * Puts new pages into memory, zeroed: all in one call, which takes less than a fault a page. So the
 * caller pays for them, and no put waits for them later. -ENOMEM: there is no memory left.
 */
static int populate(uint8_t *from, uint64_t length)
{
    uint64_t before = (uintptr_t)from % page_bytes();

    if (length >= POPULATE_MIN) {
        if (madvise(from - before, before + length, MADV_POPULATE_WRITE) == 0)
            return 0;
        if (errno == ENOMEM || errno == EFAULT || errno == EHWPOISON)
            return -ENOMEM;
    }
    memset(from, 0, length); /* a few pages, or Linux before 5.14 */
    return 0;
}

/* Zeroes a range: bytes that were given out before, and pages that are new. */
static int clear(const struct segment_range *range)
{
    struct client_segment *segment = range->segment;
    uint64_t end = range->offset + range->length, used = 0;
    int rc = 0;

    if (range->offset < segment->used)
        used = (end < segment->used ? end : segment->used) - range->offset;
    memset(segment_range_base(range), 0, used);
    if (used < range->length)
        rc = populate(segment_range_base(range) + used, range->length - used);
    if (rc == 0 && segment->used < end)
        segment->used = end;
    return rc;
}

static int take_from(struct client_segment *segment, uint64_t length, uint64_t align,
                     struct segment_range *out)
{
    int rc = extents_take(&segment->extents, length, align, &out->offset);

    if (rc < 0)
        return rc;
    out->segment = segment;
    out->length = length;
    rc = clear(out);
    if (rc < 0)
        extents_give(&segment->extents, out->offset, length);
    return rc;
}

/* Gives an empty segment back to the daemon, unless it is the only one left. */
static void release_if_empty(struct segments *segments, struct client_segment *segment)
{
    struct client_segment **at = &segments->list;
    bool only = segments->list == segment && !segment->next;

    if (segment->extents.taken > 0 || only)
        return;
    while (*at != segment)
        at = &(*at)->next;
    *at = segment->next;
    span_table_remove(segments->spans, (uintptr_t)segment->mapping.base);
    (void)segment_release(segments->link, segment->id);
    free_segment(segment);
}

int segments_take(struct segments *segments, uint64_t length, struct segment_range *out)
{
    uint64_t page = page_bytes();
    uint64_t align = length >= page ? page : CACHE_LINE;
    uint64_t rounded = round_up(length, align);
    uint64_t open_length;
    int rc;

    if (length == 0 || rounded < length)
        return -EINVAL;
    for (struct client_segment *segment = segments->list; segment; segment = segment->next)
        if (take_from(segment, rounded, align, out) == 0)
            return 0;

    open_length = round_up(rounded, page);
    if (open_length < segments->next_length) {
        rc = open_segment(segments, segments->next_length);
        if (rc == 0 && segments->next_length < LENGTH_MAX)
            segments->next_length *= 2;
        /* Near the quota a segment that has only this range may still fit. */
        if (rc == -EDQUOT || rc == -ENOMEM)
            rc = open_segment(segments, open_length);
    } else {
        rc = open_segment(segments, open_length);
    }
    if (rc < 0)
        return rc;
    rc = take_from(segments->list, rounded, align, out);
    if (rc < 0)
        release_if_empty(segments, segments->list);
    return rc;
}

void segments_give(struct segments *segments, const struct segment_range *range)
{
    extents_give(&range->segment->extents, range->offset, range->length);
    release_if_empty(segments, range->segment);
}
