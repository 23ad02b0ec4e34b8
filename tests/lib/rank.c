/* Attaches, binds, and knows which bytes belong where (rank.h). Thread: one at a time for each
 * rank. */
#include "tests/lib/rank.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>

int rank_attach(struct rank *r, const char *socket, const char *job, uint32_t number, uint32_t size,
                size_t length)
{
    char why[200] = "";
    const struct pwc_attr attr = {
        .socket = socket,
        .job = job,
        .rank = number,
        .size = size,
        .error = why,
        .error_size = sizeof(why),
    };
    int rc;

    *r = (struct rank){.number = number, .length = length};
    rc = pwc_init(&attr, &r->client);
    if (rc == 0)
        rc = pwc_ctx_create(r->client, NULL, &r->ctx);
    if (rc == 0)
        rc = pwc_alloc(r->client, length, PWC_REMOTE_RW, &r->region);
    if (rc == 0) {
        r->memory = pwc_region_addr(r->region);
        return 0;
    }
    if (r->client)
        pwc_error_text(r->client, why, sizeof(why));
    fprintf(stderr, "rank %u does not attach: %s. %s\n", number, pwc_strerror(rc), why);
    rank_detach(r);
    return rc;
}

void rank_detach(struct rank *r)
{
    if (r->client)
        pwc_abort(r->client);
    *r = (struct rank){0};
}

static int bind_key(struct rank *r, uint32_t number, const struct pwc_key *key)
{
    int rc = pwc_bind(r->ctx, pwc_peer_of(number, 0), key, &r->remote);

    if (rc < 0)
        fprintf(stderr, "rank %u does not bind rank %u: %s\n", r->number, number, pwc_strerror(rc));
    return rc;
}

int rank_bind(struct rank *r, const struct rank *to)
{
    struct pwc_key key;
    int rc = pwc_region_key(to->region, &key);

    return rc < 0 ? rc : bind_key(r, to->number, &key);
}

int rank_bind_other(struct rank *r)
{
    struct pwc_key mine, all[2];
    int rc = pwc_region_key(r->region, &mine);

    if (rc == 0)
        rc = pwc_exchange(r->ctx, &mine, sizeof(mine), all);
    return rc < 0 ? rc : bind_key(r, 1 - r->number, &all[1 - r->number]);
}

static uint8_t byte_of(size_t at, uint64_t seed)
{
    return (uint8_t)(seed * 31 + at * 7 + (at >> 8) + 1);
}

void rank_fill(uint8_t *to, size_t length, uint64_t seed)
{
    for (size_t i = 0; i < length; i++)
        to[i] = byte_of(i, seed);
}

int rank_check(const uint8_t *at, size_t length, uint64_t seed)
{
    for (size_t i = 0; i < length; i++)
        if (at[i] != byte_of(i, seed)) {
            fprintf(stderr, "byte %zu of %zu is %02x, not %02x\n", i, length, at[i],
                    byte_of(i, seed));
            return -EIO;
        }
    return 0;
}
