/* Packets of puts to offloads' regions at the target: checked, and placed where no handler deals
 * with them (kinds/op_packet.c is the origin's side, offload/handle.h what handlers do).
 * Thread: the progress thread. */
#include "daemon/engine/ledger/records.h"

#include "daemon/engine/peer/region.h"
#include "shm_ring/word.h"

static bool is_stored(const struct arrival *a)
{
    return a->w.op.head.flags & WIRE_STORED;
}

static int64_t stored_parse(struct engine *e, struct arrival *a, uint64_t left)
{
    const struct wire_packet *w = &a->w.packet;

    if (w->put.op.head.flags & WIRE_CUT || w->put.op.length > 0 || w->total == 0 ||
        w->at != w->total)
        return -EPROTO;
    return pieces_parse(e, a, left);
}

static int64_t packet_parse(struct engine *e, struct arrival *a, uint64_t left)
{
    const struct wire_packet *w = &a->w.packet;
    uint32_t length = w->put.op.length;
    bool empty = length == 0 && w->at < w->total && !(w->put.op.head.flags & WIRE_CUT);

    if (is_stored(a))
        return stored_parse(e, a, left);
    if (w->put.op.head.flags & WIRE_NONCE)
        return -EPROTO;
    if (length > packet_longest(&e->config) || w->at > w->total || length > w->total - w->at ||
        empty)
        return -EPROTO;
    return ((int64_t)length + 7) / 8 * 8;
}

static int packet_admit(struct engine *e, uint32_t session, struct arrival *a)
{
    const struct wire_packet *w = &a->w.packet;
    uint64_t length;
    int status = region_memory(e, session, w->put.slot, w->put.generation, 0, &a->base, &length);

    if (status < 0)
        return status;
    if (e->regions[w->put.slot].packet == 0 ||
        (is_stored(a) && !(e->regions[w->put.slot].ways & PUTS_STORED)))
        return -EKEYREJECTED;
    return w->put.offset <= length && w->total <= length - w->put.offset ? 0 : -ERANGE;
}

static int packet_act(struct engine *e, struct arrival *a)
{
    const struct wire_packet *w = &a->w.packet;

    if (is_stored(a))
        return 0;
    word_place(a->base + w->put.offset + w->at, a->id + abi_pad8(w->put.op.rid_len),
               w->put.op.length);
    return 0;
}

const struct arrival_kind arrival_packet = {
    .op = SUBMIT_PUT, .parse = packet_parse, .admit = packet_admit, .act = packet_act};
