/* Attaches, binds, and knows which bytes belong where (rank.h). Thread: one at a time for each
 * rank. */
#include "tests/lib/rank.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

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

/* Eight bytes of a round. Tests write and compare megabytes, so they do it in words. The loops
 * below copy a fixed length, because with sanitizers any other memcpy is a slow call. */
static uint64_t word_of(size_t at, uint64_t seed)
{
    return (seed * 31 + at / 8 + 1) * UINT64_C(0x9e3779b97f4a7c15);
}

void rank_fill(uint8_t *to, size_t length, uint64_t seed)
{
    size_t whole = length & ~(size_t)7;
    uint64_t word;

    for (size_t at = 0; at < whole; at += 8) {
        word = word_of(at, seed);
        memcpy(to + at, &word, 8);
    }
    word = word_of(whole, seed);
    memcpy(to + whole, &word, length - whole);
}

int rank_check(const uint8_t *at, size_t length, uint64_t seed)
{
    size_t whole = length & ~(size_t)7, i = 0;
    uint64_t word, there = 0;

    for (; i < whole; i += 8) {
        memcpy(&there, at + i, 8);
        word = word_of(i, seed);
        if (there != word)
            goto differs;
    }
    word = word_of(i, seed);
    if (memcmp(at + i, &word, length - i) == 0)
        return 0;
differs:
    fprintf(stderr, "the 8 bytes from %zu of %zu are not %016llx\n", i, length,
            (unsigned long long)word);
    return -EIO;
}
