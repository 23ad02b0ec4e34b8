/* Owns a rank's attachment to the daemon, and the steps that every test needs. */
#include "tools/pwcperf/world.h"
#include "proto/clock.h"
#include <errno.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int world_error(const struct world *world, int rc, const char *format, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    char why[256] = ""; /* the daemon's reason, if a control call has failed */
    if (world->client != NULL)
        pwc_error_text(world->client, why, sizeof(why));
    fprintf(stderr, "pwcperf: rank %u: %s: %s%s%s\n", world->rank, text, pwc_strerror(rc),
            why[0] != '\0' ? "; " : "", why);
    return rc;
}

__attribute__((format(printf, 2, 0))) static void say(const struct world *world, const char *format,
                                                      va_list arguments)
{
    char text[512];
    vsnprintf(text, sizeof(text), format, arguments);
    fprintf(stderr, "pwcperf: rank %u: %s\n", world->rank, text);
}

int world_wrong(const struct world *world, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    say(world, format, arguments);
    va_end(arguments);
    return -EBADMSG;
}

int world_refuse(const struct world *world, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    say(world, format, arguments);
    va_end(arguments);
    return -EINVAL;
}

static int pin(const struct world *world)
{
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(world->node % (unsigned long)processors, &set);
    if (sched_setaffinity(0, sizeof(set), &set) < 0)
        return world_error(world, -errno, "--pin to processor %lu",
                           world->node % (unsigned long)processors);
    return 0;
}

int world_open(struct world *world, const struct options *options)
{
    const char *node = getenv("PWC_NODE");
    *world = (struct world){.options = options, .node = node != NULL ? (uint32_t)atoi(node) : 0};
    int rc = options->pin ? pin(world) : 0;
    if (rc < 0)
        return rc;
    char why[256] = "";
    struct pwc_attr attr = {.error = why, .error_size = sizeof(why)};
    rc = pwc_init(&attr, &world->client);
    if (rc < 0) {
        fprintf(stderr, "pwcperf: attaching to the daemon: %s\n",
                why[0] != '\0' ? why : pwc_strerror(rc));
        return rc;
    }
    world->rank = pwc_rank(world->client);
    world->size = pwc_size(world->client);
    rc = pwc_ctx_create(world->client, NULL, &world->ctx);
    if (rc < 0)
        return world_error(world, rc, "making a context");
    return 0;
}

void world_close(struct world *world)
{
    if (world->ctx != NULL)
        pwc_ctx_destroy(world->ctx);
    if (world->client != NULL)
        pwc_finalize(world->client);
}

int world_keys(struct world *world, const pwc_region *region, struct pwc_key *keys)
{
    struct pwc_key mine;
    int rc = pwc_region_key(region, &mine);
    if (rc == 0)
        rc = pwc_exchange(world->ctx, &mine, sizeof(mine), keys);
    return rc < 0 ? world_error(world, rc, "exchanging keys") : 0;
}

static int wait_ms(struct world *world, pwc_peer peer, unsigned kinds, struct pwc_event *event,
                   int timeout_ms)
{
    int rc = pwc_wait(world->ctx, peer, kinds, event, timeout_ms);
    if (rc == 0)
        return world_error(world, -ETIMEDOUT, "no event for %u s (--timeout)",
                           world->options->timeout_s);
    if (rc < 0)
        return world_error(world, rc, "waiting for an event");
    if (event->status < 0)
        return world_error(world, event->status, "an operation with rank %u failed",
                           pwc_peer_rank(event->peer));
    return 0;
}

int world_wait(struct world *world, pwc_peer peer, unsigned kinds, struct pwc_event *event)
{
    return wait_ms(world, peer, kinds, event, (int)world->options->timeout_s * 1000);
}

int world_wait_end(struct world *world, pwc_peer peer, struct pwc_event *event)
{
    return wait_ms(world, peer, PWC_REMOTE, event, -1);
}

int world_again(struct world *world, uint64_t *since)
{
    uint64_t now = now_ns();
    if (*since == 0)
        *since = now;
    if (now - *since > world->options->timeout_s * UINT64_C(1000000000))
        return world_error(world, -ETIMEDOUT, "no room to submit for %u s (--timeout)",
                           world->options->timeout_s);
    sched_yield();
    return 0;
}

int world_notify(struct world *world, pwc_remote *to, uint64_t id)
{
    uint64_t since = 0;
    int rc;
    while ((rc = pwc_put(to, 0, NULL, 0, pwc_cid_u64(0), pwc_cid_u64(id), PWC_NO_LCE)) == -EAGAIN)
        if (world_again(world, &since) < 0)
            return -ETIMEDOUT;
    return rc < 0 ? world_error(world, rc, "notifying a peer") : 0;
}
