/* Owns the staging of a context (staging.h). Thread: the one that owns the context. */
#include "clientlib/memory/staging.h"

#include "clientlib/attach/client.h"

int staging_take(struct staging *staging, struct pwc_client *client)
{
    int rc = client_may_ask(client);

    if (rc < 0)
        return rc;
    pthread_mutex_lock(&client->lock);
    rc = segments_take(&client->segments, (uint64_t)GRAINS * GRAIN_BYTES, &staging->range);
    pthread_mutex_unlock(&client->lock);
    staging->taken = rc == 0;
    return rc;
}

void staging_close(struct staging *staging, struct pwc_client *client)
{
    if (!staging->taken)
        return;
    pthread_mutex_lock(&client->lock);
    segments_give(&client->segments, &staging->range);
    pthread_mutex_unlock(&client->lock);
    staging->taken = false;
}
