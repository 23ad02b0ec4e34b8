/*
 * Addresses of contexts (pwc/open.h). Owns nothing. Thread: any; for pwc_address the context's.
 *
 *     offset  0        4       8           16      20         24
 *             | magic, | node  | instance  | rank  | context  | check of the bytes before |
 *             | version|       |           |       |          |                           |
 *
 * Numbers are little-endian. The check detects bytes that are no address. Anybody can compute the
 * check for other bytes, and this does no harm: an address gives its reader no new right.
 */
#include <errno.h>
#include <string.h>
#include "clientlib/attach/client.h"
#include "clientlib/attach/context.h"
#include "pwc/open.h"

#define MAGIC 0x31415750u /* "PWA1" */

enum { AT_MAGIC = 0, AT_NODE = 4, AT_INSTANCE = 8, AT_RANK = 16, AT_CONTEXT = 20, AT_CHECK = 24 };

static_assert(sizeof(struct pwc_address) == 32, "pwc_address");

static void put(uint8_t *to, uint64_t value, size_t size)
{
    for (size_t i = 0; i < size; i++)
        to[i] = (uint8_t)(value >> (8 * i));
}

static uint64_t get(const uint8_t *from, size_t size)
{
    uint64_t value = 0;

    for (size_t i = 0; i < size; i++)
        value |= (uint64_t)from[i] << (8 * i);
    return value;
}

/* FNV-1a of 64 bits. */
static uint64_t check_of(const uint8_t *bytes)
{
    uint64_t hash = UINT64_C(14695981039346656037);

    for (size_t i = 0; i < AT_CHECK; i++)
        hash = (hash ^ bytes[i]) * UINT64_C(1099511628211);
    return hash;
}

int pwc_address(pwc_ctx *ctx, struct pwc_address *out)
{
    struct pwc_client *client = ctx->client;

    if (client_is_forked(client))
        return -EOWNERDEAD;
    if (client->instance == 0)
        return daemon_link_refuse(&client->link, -ENOTSUP,
                                  "the daemon of the job's home is older than 0.6, and gives jobs "
                                  "no instance: update it, then start the job anew");
    put(out->bytes + AT_MAGIC, MAGIC, 4);
    put(out->bytes + AT_NODE, client->node, 4);
    put(out->bytes + AT_INSTANCE, client->instance, 8);
    put(out->bytes + AT_RANK, client->rank, 4);
    put(out->bytes + AT_CONTEXT, ctx->number, 4);
    put(out->bytes + AT_CHECK, check_of(out->bytes), 8);
    return 0;
}

int pwc_address_peer(pwc_client *client, const struct pwc_address *address, pwc_peer *out)
{
    const uint8_t *bytes = address->bytes;
    uint32_t rank = (uint32_t)get(bytes + AT_RANK, 4);

    if (client_is_forked(client))
        return -EOWNERDEAD;
    if (get(bytes + AT_MAGIC, 4) != MAGIC || get(bytes + AT_CHECK, 8) != check_of(bytes) ||
        get(bytes + AT_INSTANCE, 8) == 0 || rank >= client->size)
        return daemon_link_refuse(&client->link, -EINVAL,
                                  "these bytes are no address of pwc_address");
    if (get(bytes + AT_INSTANCE, 8) != client->instance)
        return daemon_link_refuse(&client->link, -EHOSTUNREACH,
                                  "the address is one of another job, or of an earlier instance of "
                                  "this job, which has ended");
    *out = pwc_peer_of(rank, (uint32_t)get(bytes + AT_CONTEXT, 4));
    return 0;
}
