/* Owns the router between the net and the loop (router.h). Thread: the progress thread. */
#include "daemon/fabric/router.h"

#include <errno.h>
#include <stdlib.h>
#include "daemon/fabric/loop.h"
#include "daemon/fabric/places.h"

#define MEMORIES_DEFAULT 4096u
#define TAKEN_BACK       UINT64_MAX /* cookie of a drop that the caller has not asked for */

/* A registration that the net has not answered yet. */
struct adding {
    void *base;
    uint64_t length;
    uint64_t cookie;
    unsigned access;
};

struct router {
    struct fabric base;
    struct fabric *net;
    struct fabric *loop;
    uint32_t self;
    uint32_t first; /* the side that the next poll begins with: 0 the net, 1 the loop */
    struct adding *adding;
    struct places places; /* of `adding` */
};

static struct router *router_of(struct fabric *fabric)
{
    return (struct router *)fabric;
}

static void router_close(struct fabric *fabric)
{
    struct router *r = router_of(fabric);

    r->net->ops->close(r->net);
    r->loop->ops->close(r->loop);
    places_close(&r->places);
    free(r->adding);
    free(r);
}

static int router_address(struct fabric *fabric, struct fabric_address *out)
{
    return fabric_address_of(router_of(fabric)->net, out);
}

static struct fabric *side_of(struct router *r, uint32_t peer)
{
    return peer == r->self ? r->loop : r->net;
}

static int router_connect(struct fabric *fabric, uint32_t peer,
                          const struct fabric_address *address)
{
    struct router *r = router_of(fabric);
    struct fabric_address own;
    int status;

    if (peer != r->self)
        return fabric_connect(r->net, peer, address);
    status = fabric_address_of(r->loop, &own); /* the engine has only the net's address */
    return status < 0 ? status : fabric_connect(r->loop, peer, &own);
}

static int router_disconnect(struct fabric *fabric, uint32_t peer)
{
    return fabric_disconnect(side_of(router_of(fabric), peer), peer);
}

static int router_mem_add(struct fabric *fabric, void *base, uint64_t length, unsigned access,
                          uint64_t cookie)
{
    struct router *r = router_of(fabric);
    uint32_t place = places_take(&r->places);
    int status;

    if (place == PLACES_NONE)
        return -ENOSPC;
    status = fabric_mem_add(r->net, base, length, access, place);
    if (status == 0)
        r->adding[place] = (struct adding){base, length, cookie, access};
    else
        places_give(&r->places, place);
    return status;
}

static int router_mem_drop(struct fabric *fabric, uint32_t memory, uint64_t cookie)
{
    struct router *r = router_of(fabric);
    int status = fabric_mem_drop(r->net, memory, cookie);

    if (status == 0)
        loop_disown(r->loop, memory);
    return status;
}

static int router_write(struct fabric *fabric, const struct fabric_write *write)
{
    return fabric_post_write(side_of(router_of(fabric), write->peer), write);
}

static int router_read(struct fabric *fabric, const struct fabric_read *read)
{
    return fabric_post_read(side_of(router_of(fabric), read->peer), read);
}

/* Handles the net's answer to a registration: the loop adopts the memory with the net's names. If
 * it cannot, the net drops the memory again. */
static void added(struct router *r, struct fabric_event *event)
{
    uint32_t place = (uint32_t)event->cookie;
    const struct adding *a = &r->adding[place];

    if (event->status == 0) {
        event->status = loop_adopt(r->loop, &event->memory, a->base, a->length, a->access);
        if (event->status < 0)
            (void)fabric_mem_drop(r->net, event->memory.index, TAKEN_BACK);
    }
    event->cookie = a->cookie;
    places_give(&r->places, place);
}

/* Handles the net's events; returns how many of them are for the caller. */
static int sift(struct router *r, struct fabric_event *events, int n)
{
    int kept = 0;

    for (int i = 0; i < n; i++) {
        if (events[i].kind == FABRIC_ADDED)
            added(r, &events[i]);
        if (events[i].kind != FABRIC_DROPPED || events[i].cookie != TAKEN_BACK)
            events[kept++] = events[i];
    }
    return kept;
}

/* Polls both sides, each of them first in every second call, so that a side that fills all the
 * room, or fails, does not keep the other side's events away. */
static int router_poll(struct fabric *fabric, struct fabric_event *events, int room)
{
    struct router *r = router_of(fabric);
    struct fabric *sides[] = {r->net, r->loop};
    int n = 0, status = 0;

    r->first ^= 1;
    for (uint32_t i = 0; i < 2 && n < room; i++) {
        uint32_t side = r->first ^ i;
        int got = fabric_poll(sides[side], events + n, room - n);

        if (got < 0)
            status = got;
        else
            n += side == 0 ? sift(r, events + n, got) : got;
    }
    fabric->received = r->net->received;
    return n > 0 ? n : status;
}

static int router_arm(struct fabric *fabric, int *descriptor)
{
    struct router *r = router_of(fabric);
    int unused, status = fabric_arm(r->loop, &unused);

    return status == -EAGAIN ? status : fabric_arm(r->net, descriptor);
}

static void router_silent(struct fabric *fabric)
{
    fabric_silent(router_of(fabric)->net);
}

static const struct fabric_ops router_ops = {
    .name = "router",
    .close = router_close,
    .address = router_address,
    .connect = router_connect,
    .disconnect = router_disconnect,
    .mem_add = router_mem_add,
    .mem_drop = router_mem_drop,
    .write = router_write,
    .read = router_read,
    .poll = router_poll,
    .arm = router_arm,
    .silent = router_silent,
};

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

int router_open(const struct router_config *config, struct fabric *net, struct fabric *loop,
                struct fabric **out)
{
    uint32_t max = config->memories_max ? config->memories_max : MEMORIES_DEFAULT;
    struct router *r = calloc(1, sizeof(*r));
    struct adding *adding = calloc(max, sizeof(*adding));
    struct places places = {0};

    if (!r || !adding || places_open(&places, max) < 0) {
        net->ops->close(net);
        loop->ops->close(loop);
        places_close(&places);
        free(adding);
        free(r);
        return -ENOMEM;
    }
    *r = (struct router){.base = {&router_ops, net->traits},
                         .net = net,
                         .loop = loop,
                         .self = config->node,
                         .adding = adding,
                         .places = places};
    r->base.traits.message_max = smaller(net->traits.message_max, loop->traits.message_max);
    r->base.traits.ordered_write_max =
        smaller(net->traits.ordered_write_max, loop->traits.ordered_write_max);
    *out = &r->base;
    return 0;
}
