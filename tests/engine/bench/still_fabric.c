/* Owns nothing: see still_fabric.h. Thread: one. */
#include "tests/engine/bench/still_fabric.h"

#include <errno.h>
#include <string.h>
#include "proto/wire_abi.h"

void still_push(struct still_fabric *f, const struct fabric_event *event)
{
    struct fabric_event *to = &f->events[f->tail++ % STILL_EVENTS];

    *to = *event;
    if (event->kind == FABRIC_ARRIVED && event->peer == 0)
        to->peer = FABRIC_UNKNOWN;
}

/* Returns the fabric for operations to `peer`; NULL: they go nowhere. */
static struct fabric *way_to(struct fabric *fabric, uint32_t peer)
{
    return peer == 0 ? ((struct still_fabric *)fabric)->self : NULL;
}

static void still_close(struct fabric *fabric)
{
}

static int still_address(struct fabric *fabric, struct fabric_address *out)
{
    struct still_fabric *f = (struct still_fabric *)fabric;

    if (f->self)
        return fabric_address_of(f->self, out);
    *out = (struct fabric_address){.size = 1};
    return 0;
}

static int still_connect(struct fabric *fabric, uint32_t peer, const struct fabric_address *address)
{
    struct fabric *way = way_to(fabric, peer);

    return way ? fabric_connect(way, peer, address) : 0;
}

static int still_disconnect(struct fabric *fabric, uint32_t peer)
{
    struct fabric *way = way_to(fabric, peer);

    return way ? fabric_disconnect(way, peer) : 0;
}

static int still_mem_add(struct fabric *fabric, void *base, uint64_t length, unsigned access,
                         uint64_t cookie)
{
    struct still_fabric *f = (struct still_fabric *)fabric;
    struct fabric_event event = {.kind = FABRIC_ADDED, .cookie = cookie, .status = f->add_status};

    if (f->self)
        return fabric_mem_add(f->self, base, length, access, cookie);
    if (f->add_refused < 0)
        return f->add_refused;
    event.memory.index = f->memories++;
    event.memory.address = (uint64_t)(uintptr_t)base;
    still_push(f, &event);
    return 0;
}

static int still_mem_drop(struct fabric *fabric, uint32_t memory, uint64_t cookie)
{
    struct still_fabric *f = (struct still_fabric *)fabric;

    if (f->self)
        return fabric_mem_drop(f->self, memory, cookie);
    f->drops++;
    still_push(f, &(struct fabric_event){
                      .kind = FABRIC_DROPPED, .cookie = cookie, .status = f->drop_status});
    return 0;
}

static void note_kinds(struct still_fabric *f, const uint8_t *run, uint64_t length)
{
    for (uint64_t at = 0; at < length;) {
        const struct wire_record *record = (const struct wire_record *)(const void *)(run + at);

        f->kinds |= UINT64_C(1) << record->kind;
        at += record->words * 8u;
    }
}

/* Posts a read or a payload. Returns 0, or the error for which nothing is posted. */
static int post(struct still_fabric *f, const struct fabric_event *event)
{
    if (f->post_status < 0 && f->post_after == 0)
        return f->post_status;
    f->post_after -= f->post_status < 0;
    if (f->payloads++ == 0)
        f->runs_first = f->runs;
    if (f->holds)
        f->held[f->held_count++ % 8] = *event;
    else
        still_push(f, event);
    return 0;
}

void still_release(struct still_fabric *f)
{
    f->holds = false;
    for (uint32_t i = 0; i < f->held_count; i++)
        still_push(f, &f->held[i % 8]);
    f->held_count = 0;
}

static int still_write(struct fabric *fabric, const struct fabric_write *write)
{
    struct still_fabric *f = (struct still_fabric *)fabric;
    struct fabric *way = way_to(fabric, write->peer);

    if (way)
        return fabric_post_write(way, write);
    if (!write->announce || write->immediate >> 30 != WIRE_RUN)
        return post(f, &(struct fabric_event){.kind = FABRIC_WRITTEN, .cookie = write->cookie});
    note_kinds(f, write->source, write->length);
    f->runs++;
    if (f->watch)
        f->watch(f->watch_context);
    still_push(f, &(struct fabric_event){.kind = FABRIC_WRITTEN, .cookie = write->cookie});
    return 0;
}

static int still_read(struct fabric *fabric, const struct fabric_read *read)
{
    struct fabric *way = way_to(fabric, read->peer);

    if (way)
        return fabric_post_read(way, read);
    return post((struct still_fabric *)fabric,
                &(struct fabric_event){.kind = FABRIC_READ, .cookie = read->cookie});
}

static int still_poll(struct fabric *fabric, struct fabric_event *events, int room)
{
    struct still_fabric *f = (struct still_fabric *)fabric;
    int n = 0;

    if (f->poll_status < 0)
        return f->poll_status;
    f->base.received += f->serves;
    while (n < room && f->head != f->tail)
        events[n++] = f->events[f->head++ % STILL_EVENTS];
    if (f->self && n < room) {
        int more = fabric_poll(f->self, events + n, room - n);

        return more < 0 ? more : n + more;
    }
    return n;
}

static int still_arm(struct fabric *fabric, int *descriptor)
{
    return -ENOTSUP;
}

static const struct fabric_ops still_ops = {
    "still",        still_close, still_address, still_connect, still_disconnect, still_mem_add,
    still_mem_drop, still_write, still_read,    still_poll,    still_arm,        NULL,
};

void still_open(struct still_fabric *f)
{
    *f = (struct still_fabric){
        .base = {&still_ops, {.message_max = 1u << 30, .ordered_write_max = 1u << 30}}};
}
