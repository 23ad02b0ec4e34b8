/*
 * pwc_register: memory that the application already has, through a copy or moved in place.
 *
 * Thread: any; the client's lock is held throughout.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "clientlib/attach/client.h"
#include "clientlib/memory/move.h"
#include "clientlib/memory/region.h"

enum { WHY_MAX = 192 };

static struct pwc_region *find_same(struct pwc_client *client, const void *addr, size_t len)
{
    struct pwc_region *region = client->regions;

    while (region && (region->addr != addr || region->len != len))
        region = region->next;
    return region;
}

/* The daemon reaches a shadow of this memory, in a segment. */
static int register_copied(struct pwc_region *region)
{
    struct pwc_client *client = region->client;
    int rc;

    if (region->len > client->bounce_max) {
        char why[WHY_MAX];

        snprintf(why, sizeof(why),
                 "%zu bytes to go through a copy: the daemon allows %zu; use PWC_MOVE "
                 "or pwc_alloc",
                 region->len, (size_t)client->bounce_max);
        return daemon_link_refuse(&client->link, -EINVAL, why);
    }
    rc = segments_take(&client->segments, region->len, &region->range);
    if (rc < 0)
        return rc;

    struct span span = {
        .start = (uintptr_t)region->addr,
        .length = region->len,
        .offset = region->range.offset,
        .segment = region->range.segment->id,
        .shadow = segment_range_base(&region->range),
    };

    rc = span_table_add(&client->spans, &span);
    if (rc < 0)
        segments_give(&client->segments, &region->range);
    return rc;
}

static int register_moved(struct pwc_region *region)
{
    struct pwc_client *client = region->client;
    uint64_t length = region->len;
    struct span span;
    int fd;
    int rc = move_check(region->addr, region->len);

    if (rc == -EINVAL) {
        char why[WHY_MAX];

        snprintf(why, sizeof(why),
                 "%zu bytes at %p cannot be moved: give whole pages of private anonymous memory, "
                 "as mmap returns, not stack, heap or a file",
                 region->len, region->addr);
        return daemon_link_refuse(&client->link, -EINVAL, why);
    }
    if (rc < 0)
        return rc;
    rc = segment_request(&client->link, &length, &region->segment, &fd);
    if (rc < 0)
        return rc;
    rc = length == region->len ? 0 : -EPROTO;
    span = (struct span){
        .start = (uintptr_t)region->addr,
        .length = region->len,
        .segment = region->segment,
    };
    if (rc == 0)
        rc = span_table_add(&client->spans, &span);
    if (rc < 0)
        goto release_segment;
    rc = move_in(&region->moved, fd, region->addr, region->len);
    if (rc < 0)
        goto remove_span;
    mapping_close_fd(&region->moved);
    rc = region_publish(region, region->segment, 0);
    if (rc < 0)
        goto move_back;
    return 0;

move_back:
    (void)move_out(&region->moved);
    fd = -1;
remove_span:
    span_table_remove(&client->spans, (uintptr_t)region->addr);
release_segment:
    if (fd >= 0)
        close(fd);
    (void)segment_release(&client->link, region->segment);
    return rc;
}

/* Counts one more registration of a range that is a region already: 0 or -EEXIST. */
static int count_again(struct pwc_region *region, enum region_kind kind, unsigned rights)
{
    if (region->kind != kind || region->rights != rights)
        return -EEXIST;
    region->count++;
    return 0;
}

int pwc_register(pwc_client *client, void *addr, size_t len, unsigned rights, unsigned flags,
                 pwc_region **out)
{
    enum region_kind kind = flags & PWC_MOVE ? REGION_MOVED : REGION_COPIED;
    struct pwc_region *region;
    int rc = client_may_ask(client);

    if (rc < 0)
        return rc;
    if (!addr || len == 0 || (uintptr_t)addr + len < (uintptr_t)addr ||
        (rights & ~(unsigned)PWC_REMOTE_RW) || (flags & ~(unsigned)PWC_MOVE))
        return daemon_link_refuse(
            &client->link, -EINVAL,
            "no memory, a range that wraps around, or unknown rights or flags: "
            "give memory, PWC_REMOTE_READ, PWC_REMOTE_WRITE, both or 0, and "
            "PWC_MOVE or 0");
    if (rights != 0 && kind == REGION_COPIED)
        return daemon_link_refuse(&client->link, -ENOTSUP,
                                  "memory that goes through a copy is local only: use pwc_alloc, "
                                  "or PWC_MOVE, for memory that peers reach");

    pthread_mutex_lock(&client->lock);
    region = find_same(client, addr, len);
    if (region) {
        rc = count_again(region, kind, rights);
        goto unlock;
    }
    region = calloc(1, sizeof(*region));
    if (!region) {
        rc = -ENOMEM;
        goto unlock;
    }
    *region = (struct pwc_region){
        .client = client,
        .kind = kind,
        .rights = rights,
        .count = 1,
        .addr = addr,
        .len = len,
        .moved.fd = -1,
    };
    rc = kind == REGION_MOVED ? register_moved(region) : register_copied(region);
    if (rc < 0) {
        free(region);
        goto unlock;
    }
    region->next = client->regions;
    client->regions = region;
unlock:
    pthread_mutex_unlock(&client->lock);
    if (rc == 0)
        *out = region;
    return rc;
}
