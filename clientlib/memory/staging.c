/* Owns the staging of a context (staging.h). Thread: the one that owns the context. */
#include "clientlib/memory/staging.h"

#include <errno.h>
#include "clientlib/attach/client.h"

static int take_memory(struct staging *staging, struct pwc_client *client)
{
    uint32_t place_bytes = (client->packed_max + 63) & ~63u;
    uint32_t places = STAGING_BYTES / place_bytes;
    int rc = client_may_ask(client);

    if (rc < 0)
        return rc;
    if (places > STAGING_PLACES)
        places = STAGING_PLACES;
    if (places == 0)
        places = 1;
    pthread_mutex_lock(&client->lock);
    do /* once more where the daemon was started anew */
        rc = segments_take(&client->segments, (uint64_t)places * place_bytes, &staging->range);
    while (rc == -ECONNABORTED);
    pthread_mutex_unlock(&client->lock);
    if (rc < 0)
        return rc;
    staging->place_bytes = place_bytes;
    staging->places = places;
    return 0;
}

int staging_find(struct staging *staging, struct pwc_client *client,
                 const struct pending_slots *pending, uint32_t *place, uint8_t **at,
                 uint64_t *offset)
{
    int rc = staging->places > 0 ? 0 : take_memory(staging, client);
    uint32_t free;

    if (rc < 0)
        return rc;
    if (pending->places == UINT64_MAX)
        return -EAGAIN;
    free = (uint32_t)__builtin_ctzll(~pending->places);
    if (free >= staging->places)
        return -EAGAIN;
    *place = free;
    *at = segment_range_base(&staging->range) + (uint64_t)free * staging->place_bytes;
    *offset = staging->range.offset + (uint64_t)free * staging->place_bytes;
    return 0;
}

void staging_close(struct staging *staging, struct pwc_client *client)
{
    if (staging->places == 0)
        return;
    pthread_mutex_lock(&client->lock);
    segments_give(&client->segments, &staging->range);
    pthread_mutex_unlock(&client->lock);
    staging->places = 0;
}
