/* Rings of a link: registration, growth, withdrawal (rings.h). Thread: the progress thread. */
#include "daemon/engine/peer/rings.h"

#include "daemon/engine/ledger/ledger.h"
#include "daemon/engine/peer/marks.h"
#include "daemon/engine/state/notice.h"

/* The pause before the next offer: memory may be available by then. */
#define DECLINED_RETRY_NS 100000000u

static void ring_withdraw(struct engine *e, uint32_t peer, uint32_t place)
{
    struct parting_ring *parting = &e->peer_live[peer].parting[place];
    uint64_t cookie = cookie_of(COOKIE_PARTING, (uint64_t)peer * PARTING_RINGS + place);

    parting->refused = false;
    e->peer_live[peer].drops++;
    if (fabric_mem_drop(e->fabric, parting->memory, cookie) < 0)
        ring_dropped(e, peer, place, 0); /* the ring was not registered */
}

void ring_part(struct engine *e, uint32_t peer, uint8_t *ring, uint32_t size,
               const struct fabric_memory *memory)
{
    for (uint32_t i = 0; i < PARTING_RINGS; i++) {
        struct parting_ring *parting = &e->peer_live[peer].parting[i];

        if (parting->ring)
            continue;
        *parting = (struct parting_ring){.ring = ring, .size = size, .memory = memory->index};
        ring_withdraw(e, peer, i);
        return;
    }
    /* Every place is taken where the fabric gives no ring back: this ring stays registered and in
     * use, too. */
}

/* A ring that the fabric could not let go of may still be written to, so its memory stays taken. */
void ring_dropped(struct engine *e, uint32_t peer, uint32_t place, int status)
{
    struct parting_ring *parting = &e->peer_live[peer].parting[place];

    e->peer_live[peer].drops--;
    if (status < 0) {
        parting->refused = e->rings_refused = true;
        drop_later(e);
    } else {
        heap_give(&e->heap, parting->ring, parting->size);
        parting->ring = NULL;
    }
    peer_activate(e, peer);
}

void rings_drop_again(struct engine *e)
{
    if (!e->rings_refused || e->drop_at > 0)
        return;
    e->rings_refused = false;
    for (uint32_t peer = 0; peer < e->config.peers; peer++)
        for (uint32_t i = 0; i < PARTING_RINGS; i++)
            if (e->peer_live[peer].parting[i].refused)
                ring_withdraw(e, peer, i);
}

uint32_t rings_parting(const struct peer_live *live)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < PARTING_RINGS; i++)
        count += live->parting[i].ring != NULL;
    return count;
}

int ring_prepare(struct engine *e, uint32_t peer)
{
    struct peer_live *live = &e->peer_live[peer];
    uint32_t size = e->config.ledger_start;
    int r;

    live->in = (struct ledger_in){.size = size};
    live->in.ring = heap_take(&e->heap, size);
    if (!live->in.ring)
        return -ENOMEM;
    r = fabric_mem_add(e->fabric, live->in.ring, size, FABRIC_REMOTE_WRITE,
                       cookie_of(COOKIE_RING, peer));
    if (r < 0) {
        heap_give(&e->heap, live->in.ring, size);
        live->in.ring = NULL;
        return r;
    }
    live->in.adding = true;
    live->link = LINK_PREPARING;
    return 0;
}

void ring_lacks(struct engine *e, uint32_t peer, int status)
{
    struct peer_live *live = &e->peer_live[peer];

    live->wanted = live->offer_asked = false;
    notice_push(
        e, &(struct engine_notice){.kind = ENGINE_PEER_BROKEN, .status = status, .peer = peer});
}

void ring_added(struct engine *e, uint32_t peer, bool next, int status,
                const struct fabric_memory *memory)
{
    struct peer_live *live = &e->peer_live[peer];
    struct ledger_in *in = &live->in;

    if (next) {
        if (status < 0) {
            heap_give(&e->heap, in->next_ring, in->next_size);
            in->next_ring = NULL;
            peer_activate(e, peer);
            return;
        }
        in->next_memory = *memory;
        in->next_ready = true;
        if (live->link == LINK_DRAINING) {
            ring_part(e, peer, in->next_ring, in->next_size, memory);
            in->next_ring = NULL;
            peer_activate(e, peer);
        }
        peer_activate(e, peer);
        return;
    }
    in->adding = false;
    if (status < 0) {
        heap_give(&e->heap, in->ring, in->size);
        in->ring = NULL;
        live->link = LINK_NONE;
        ring_lacks(e, peer, status);
        return;
    }
    in->memory = *memory;
    in->registered = true;
    if (live->link == LINK_DRAINING) {
        ring_part(e, peer, in->ring, in->size, memory);
        in->ring = NULL;
        peer_activate(e, peer);
        return;
    }
    live->link = LINK_OFFERED;
    if (live->offer_asked)
        notice_push(e, &(struct engine_notice){.kind = ENGINE_OFFER_READY, .peer = peer});
    live->offer_asked = false;
    peer_activate(e, peer);
}

/* Takes memory for a ledger that grows, and leaves an eighth of the heap for links that begin. */
static uint8_t *take_larger(struct engine *e, uint32_t size)
{
    return heap_take_above(&e->heap, size, e->heap.units / 8);
}

void ring_grow(struct engine *e, uint32_t peer)
{
    struct peer_live *live = &e->peer_live[peer];
    struct ledger_in *in = &live->in;
    uint64_t size = (uint64_t)in->size * 4;

    if (size > e->config.ledger_max)
        size = e->config.ledger_max;
    if (size <= in->size || in->next_ring || live->link != LINK_UP || e->now < in->grow_at ||
        rings_parting(live) > 0)
        return;
    in->next_ring = take_larger(e, (uint32_t)size);
    if (!in->next_ring)
        return;
    in->next_size = (uint32_t)size;
    in->next_ready = in->next_offered = false;
    if (fabric_mem_add(e->fabric, in->next_ring, size, FABRIC_REMOTE_WRITE,
                       cookie_of(COOKIE_NEXT, peer)) < 0) {
        heap_give(&e->heap, in->next_ring, in->next_size);
        in->next_ring = NULL;
    }
}

void ring_offer_larger(struct engine *e, uint32_t peer)
{
    struct ledger_in *in = &e->peer_live[peer].in;
    struct wire_offer *w;

    if (!in->next_ring || !in->next_ready || in->next_offered)
        return;
    w = ledger_stage(e, peer, WIRE_OFFER, sizeof(*w), LEDGER_NOTE, NULL);
    if (!w)
        return;
    w->address = in->next_memory.address;
    w->key = in->next_memory.key;
    w->bytes = in->next_size;
    commit(e);
    in->next_offered = true;
}

void ring_switched(struct engine *e, uint32_t peer)
{
    struct peer_live *live = &e->peer_live[peer];
    struct ledger_in *in = &live->in;

    ring_part(e, peer, in->ring, in->size, &in->memory);
    in->ring = in->next_ring;
    in->size = in->next_size;
    in->memory = in->next_memory;
    in->base = e->peers[peer].rx_consumed;
    in->next_ring = NULL;
    in->next_ready = in->next_offered = false;
    live->grown++;
}

void ring_declined(struct engine *e, uint32_t peer)
{
    struct ledger_in *in = &e->peer_live[peer].in;

    ring_part(e, peer, in->next_ring, in->next_size, &in->next_memory);
    in->next_ring = NULL;
    in->next_ready = in->next_offered = false;
    in->grow_at = e->now + DECLINED_RETRY_NS;
}

/* Sender: there is no memory to mirror the ring: both sides stay with the old one. */
static void switch_decline(struct engine *e, uint32_t peer)
{
    if (!ledger_stage(e, peer, WIRE_DECLINE, sizeof(struct wire_record), LEDGER_NOTE, NULL))
        return;
    commit(e);
    e->peer_live[peer].out.next.bytes = 0;
}

void ring_leave(struct engine *e, uint32_t peer)
{
    struct peer *p = &e->peers[peer];
    struct ledger_out *out = &e->peer_live[peer].out;

    if (out->next.bytes == 0)
        return;
    if (!out->switching) {
        /* No peer gets more than ledger_max of the memory that all share. */
        if (!out->next_staging && out->next.bytes <= e->config.ledger_max)
            out->next_staging = take_larger(e, out->next.bytes);
        if (!out->next_staging) {
            switch_decline(e, peer);
            return;
        }
        if (!ledger_stage(e, peer, WIRE_SWITCH, sizeof(struct wire_record), LEDGER_NOTE, NULL))
            return;
        commit(e);
        out->switching = true;
        return;
    }
    if (out->sent != p->tx_tail || out->completed != out->sent)
        return;
    heap_give(&e->heap, out->staging, out->size);
    out->staging = out->next_staging;
    out->next_staging = NULL;
    out->size = out->next.bytes;
    out->remote_address = out->next.address;
    out->remote_key = out->next.key;
    out->base = p->tx_tail;
    out->next.bytes = 0;
    out->switching = false;
    out->wanting = false;
}
