/*
 * Owns nothing: makes regions of memory that the application already has, through a copy or moved
 * in place (pwc_register).
 *
 * Thread: any; the client's lock is held throughout.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "clientlib/attach/client.h"
#include "clientlib/memory/movable.h"
#include "clientlib/memory/region.h"

enum { WHY_MAX = DAEMON_TEXT_MAX };

static const char given_back[] = "its pages were moved for a region, and given back to the system "
                                 "since (munmap, free): free that region first";

static int refuse_overlap(struct pwc_client *client)
{
    return daemon_link_refuse(&client->link, -EEXIST,
                              "the memory, or a page of it where it is moved, belongs to another "
                              "region: free that one first, or register no page of it");
}

/* Makes a region through a copy: the daemon reaches a shadow of the memory, in a segment. */
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
    return rc == -EEXIST ? refuse_overlap(client) : rc;
}

/* Returns `rc`; if it is -EINVAL, sets the text that says why the memory cannot be moved. */
static int refuse_move(struct pwc_region *region, int rc, const char *fault)
{
    char why[WHY_MAX];

    if (rc != -EINVAL)
        return rc;
    snprintf(why, sizeof(why),
             region->kind == REGION_MOVED
                 ? "%zu bytes at %p cannot be moved: %s; give whole pages as mmap returns"
                 : "%zu bytes at %p cannot be shared: %s",
             region->len, region->addr, fault);
    return daemon_link_refuse(&region->client->link, -EINVAL, why);
}

/* Makes a tract of whole pages that belong to no tract yet. */
static int make_tract(struct pwc_region *region, uintptr_t start, size_t length)
{
    struct pwc_client *client = region->client;
    enum movable what = region->kind == REGION_MOVED ? MOVABLE_ANONYMOUS : MOVABLE_PRIVATE;
    char fault[MOVABLE_WHY_MAX];
    int rc = movable_check(what, (void *)start, length, fault);

    if (rc < 0)
        return refuse_move(region, rc, fault);
    rc = tract_make(&client->tracts, start, length, &region->tract);
    return rc == -EEXIST ? refuse_overlap(client) : rc;
}

static int refuse_partly(struct pwc_region *region, const struct tract *tract)
{
    char why[WHY_MAX];

    snprintf(why, sizeof(why),
             "a part of the pages of %zu bytes at %p is moved already, %zu bytes at %p: register "
             "the bytes in these pages and those outside apart",
             region->len, region->addr, tract->moved.length, (void *)tract->moved.start);
    return daemon_link_refuse(&region->client->link, -EEXIST, why);
}

/* Finds the region's tract, or makes a new one of the pages that hold its bytes. */
static int take_tract(struct pwc_region *region)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t first = (uintptr_t)region->addr, end = first + region->len;
    uintptr_t start = first & ~(page - 1);
    size_t length = ((end + page - 1) & ~(page - 1)) - start;
    struct tract *tract;

    if (start + length < start) /* the last page of the address space, which no process has */
        return refuse_move(region, -EINVAL, "it is not mapped");
    if (region->kind == REGION_MOVED)
        return start == first && length == region->len
                   ? make_tract(region, start, length)
                   : refuse_move(region, -EINVAL, "it is not whole pages");
    switch (tracts_overlap(&region->client->tracts, start, length, &tract)) {
    case TRACT_NONE:
        return make_tract(region, start, length);
    case TRACT_PARTLY:
        return refuse_partly(region, tract);
    case TRACT_INSIDE:
        break;
    }
    region->tract = tract;
    return refuse_move(region, tract_take(tract, start, length), given_back);
}

static int register_moved(struct pwc_region *region)
{
    struct pwc_client *client = region->client;
    int rc = take_tract(region);

    if (rc < 0)
        return rc;
    rc = region_publish(region, region->tract->segment,
                        (uintptr_t)region->addr - region->tract->moved.start);
    /* If the tract cannot be moved back, it stays without a region, for the next region in its
     * pages. */
    if (rc < 0 && tract_give(&client->tracts, region->tract) < 0)
        region->tract->regions--;
    return rc;
}

/* Counts one more registration of a region, whose pages must still be the moved ones. */
static int count_again(struct pwc_region *region)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t first = (uintptr_t)region->addr, start = first & ~(page - 1);
    int rc = 0;

    if (region->tract)
        rc = move_holds(&region->tract->moved, start, first + region->len - start);
    if (rc == 0)
        region->count++;
    return refuse_move(region, rc, given_back);
}

/* Whether a region of the same range may be counted once more, instead of a new one. */
static bool is_same(const struct pwc_region *r, const struct pwc_region *asked)
{
    return r->kind == asked->kind && r->rights == asked->rights && !r->withdrawn && !r->own_key &&
           !asked->own_key;
}

/*
 * Looks for a region of exactly this range. 1: *out is the same, and is counted once more; -EEXIST:
 * a region of another kind or other rights, or with a key that may be revoked, is in the way; 0:
 * none is. Regions of PWC_SHARE may share a range.
 */
static int find_again(const struct pwc_region *asked, struct pwc_region **out)
{
    int rc = 0;

    for (struct pwc_region *r = asked->client->regions; r; r = r->next) {
        if (r->addr != asked->addr || r->len != asked->len)
            continue;
        if (is_same(r, asked)) {
            *out = r;
            return 1;
        }
        if (asked->kind != REGION_SHARED || r->kind == REGION_COPIED)
            rc = -EEXIST;
    }
    return rc;
}

static enum region_kind kind_of(unsigned flags)
{
    return flags == 0 ? REGION_COPIED : flags == PWC_MOVE ? REGION_MOVED : REGION_SHARED;
}

/* Makes a new region as asked: 0 with *out. */
static int register_new(const struct pwc_region *asked, struct pwc_region **out)
{
    struct pwc_client *client = asked->client;
    struct pwc_region *region = malloc(sizeof(*region));
    int rc;

    if (!region)
        return -ENOMEM;
    *region = *asked;
    rc = region->kind == REGION_COPIED ? register_copied(region) : register_moved(region);
    if (rc < 0) {
        free(region);
        return rc;
    }
    region->next = client->regions;
    client->regions = region;
    *out = region;
    return 0;
}

int pwc_register(pwc_client *client, void *addr, size_t len, unsigned rights, unsigned flags,
                 pwc_region **out)
{
    const struct pwc_region asked = {
        .client = client,
        .kind = kind_of(flags),
        .rights = rights,
        .own_key = flags & PWC_OWN_KEY,
        .count = 1,
        .addr = addr,
        .len = len,
    };
    struct pwc_region *region = NULL;
    int rc = client_may_ask(client);

    if (rc < 0)
        return rc;
    if (!addr || len == 0 || (uintptr_t)addr + len < (uintptr_t)addr ||
        (rights & ~(unsigned)PWC_REMOTE_RW) ||
        (flags != 0 && flags != PWC_MOVE && (flags & ~(unsigned)PWC_OWN_KEY) != PWC_SHARE))
        return daemon_link_refuse(
            &client->link, -EINVAL,
            "no memory, a range that wraps around, or unknown rights or flags: "
            "give memory, PWC_REMOTE_READ, PWC_REMOTE_WRITE, both or 0, and "
            "PWC_SHARE, PWC_SHARE | PWC_OWN_KEY, PWC_MOVE or 0");
    if (rights != 0 && flags == 0)
        return daemon_link_refuse(&client->link, -ENOTSUP,
                                  "memory that goes through a copy is local only: use pwc_alloc, "
                                  "PWC_SHARE or PWC_MOVE for memory that peers reach");

    pthread_mutex_lock(&client->lock);
    rc = find_again(&asked, &region);
    if (rc == -EEXIST)
        rc = refuse_overlap(client);
    else if (rc == 0)
        rc = register_new(&asked, &region);
    else
        rc = count_again(region);
    pthread_mutex_unlock(&client->lock);
    if (rc == 0)
        *out = region;
    return rc;
}
