/*
 * Owns regions: their keys until these are withdrawn, and the regions of pwc_alloc. Thread: any;
 * the client's lock is held throughout.
 */
#include "clientlib/memory/region.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "clientlib/attach/client.h"
#include "shm_ring/fault.h"

static int accept_key(void *context, const Pwc__ClientReply *reply, int *fds, int fd_count)
{
    const Pwc__Key *key = reply->region_opened->key;
    struct pwc_key *out = context;

    if (!key || key->secret.len != sizeof(out->secret))
        return -EPROTO;
    out->node = key->node;
    out->slot = key->slot;
    out->generation = key->generation;
    memcpy(out->secret, key->secret.data, sizeof(out->secret));
    return 1;
}

/* Withdraws the key, and blocks until no peer can use it any more: 0. After an error a peer may
 * still reach the memory. */
static int region_withdraw(struct pwc_region *region)
{
    Pwc__ClientRequest request = PWC__CLIENT_REQUEST__INIT;
    Pwc__RegionClose close_request = PWC__REGION_CLOSE__INIT;

    close_request.slot = region->key.slot;
    close_request.generation = region->key.generation;
    request.body_case = PWC__CLIENT_REQUEST__BODY_REGION_CLOSE;
    request.region_close = &close_request;
    return daemon_end(&region->client->link, &request);
}

int region_publish(struct pwc_region *region, uint32_t segment, uint64_t offset)
{
    struct pwc_client *client = region->client;
    Pwc__ClientRequest request = PWC__CLIENT_REQUEST__INIT;
    Pwc__RegionOpen open = PWC__REGION_OPEN__INIT;
    int rc;

    open.segment = segment;
    open.offset = offset;
    open.length = region->len;
    open.rights = region->rights;
    request.body_case = PWC__CLIENT_REQUEST__BODY_REGION_OPEN;
    request.region_open = &open;
    if (region->rights == 0)
        return 0;
    rc = daemon_call_again(&client->link, &request, PWC__CLIENT_REPLY__BODY_REGION_OPENED,
                           accept_key, &region->key);
    if (rc < 0)
        return rc;
    FAULT(REGION_OPENED);
    rc = landing_table_add(&client->landings, region->key.slot, region->key.generation,
                           region->addr, region->len);
    if (rc < 0)
        (void)region_withdraw(region);
    return rc;
}

int pwc_alloc(pwc_client *client, size_t len, unsigned rights, pwc_region **out)
{
    struct pwc_region *region;
    int rc;

    rc = client_may_ask(client);
    if (rc < 0)
        return rc;
    if (len == 0 || (rights & ~(unsigned)PWC_REMOTE_RW))
        return daemon_link_refuse(&client->link, -EINVAL,
                                  "memory of 0 bytes, or unknown rights: give a length, and "
                                  "PWC_REMOTE_READ, PWC_REMOTE_WRITE, both or 0");
    region = calloc(1, sizeof(*region));
    if (!region)
        return -ENOMEM;
    region->client = client;
    region->kind = REGION_ALLOCATED;
    region->rights = rights;
    region->count = 1;
    region->len = len;

    pthread_mutex_lock(&client->lock);
    rc = segments_take(&client->segments, len, &region->range);
    if (rc < 0)
        goto unlock;
    region->addr = segment_range_base(&region->range);
    rc = region_publish(region, region->range.segment->id, region->range.offset);
    if (rc < 0) {
        segments_give(&client->segments, &region->range);
        goto unlock;
    }
    region->next = client->regions;
    client->regions = region;
unlock:
    pthread_mutex_unlock(&client->lock);
    if (rc < 0)
        free(region);
    else
        *out = region;
    return rc;
}

/* Gives back the region's range or its part of a tract. */
static int region_free_memory(struct pwc_region *region)
{
    struct pwc_client *client = region->client;

    switch (region->kind) {
    case REGION_COPIED:
        span_table_remove(&client->spans, (uintptr_t)region->addr);
        segments_give(&client->segments, &region->range);
        return 0;
    case REGION_ALLOCATED:
        segments_give(&client->segments, &region->range);
        return 0;
    case REGION_MOVED:
    case REGION_SHARED:
        return tract_give(&client->tracts, region->tract);
    }
    return 0;
}

static void unlink_region(struct pwc_region *region)
{
    struct pwc_region **at = &region->client->regions;

    while (*at != region)
        at = &(*at)->next;
    *at = region->next;
}

int pwc_region_free(pwc_region *region)
{
    struct pwc_client *client = region->client;
    int rc = client_may_ask(client);

    if (rc < 0)
        return rc;
    pthread_mutex_lock(&client->lock);
    if (region->count > 1) {
        region->count--;
        goto unlock;
    }
    region->withdrawn = region->rights != 0;
    if (region->withdrawn)
        rc = region_withdraw(region);
    FAULT(REGION_CLOSED);
    if (rc < 0)
        goto unlock;
    if (region->rights != 0)
        landing_table_remove(&client->landings, region->key.slot, region->key.generation);
    rc = region_free_memory(region);
    if (rc < 0)
        goto unlock;
    unlink_region(region);
    free(region);
unlock:
    pthread_mutex_unlock(&client->lock);
    return rc;
}

void *pwc_region_addr(const pwc_region *region)
{
    return region->addr;
}

size_t pwc_region_len(const pwc_region *region)
{
    return region->len;
}

int pwc_region_key(const pwc_region *region, struct pwc_key *out)
{
    if (client_is_forked(region->client))
        return -EOWNERDEAD;
    if (region->rights == 0)
        return daemon_link_refuse(&region->client->link, -ENOTSUP,
                                  "the region is local only: give it PWC_REMOTE_READ, "
                                  "PWC_REMOTE_WRITE or both when it is made");
    *out = region->key;
    return 0;
}

int region_key_for_all(const struct pwc_region *region, struct pwc_client *client,
                       struct pwc_key *out)
{
    if (region->client != client)
        return daemon_link_refuse(&client->link, -EINVAL,
                                  "the region belongs to another client of this process");
    return pwc_region_key(region, out);
}

int region_refused_by(struct pwc_client *client, uint32_t rank, int why)
{
    char text[DAEMON_TEXT_MAX];

    snprintf(text, sizeof(text), "rank %u of the job cannot take part: %s", rank,
             pwc_strerror(why));
    return daemon_link_refuse(&client->link, -ECANCELED, text);
}
