/* Owns nothing: waits for room (room.h). Thread: the one that owns the context. */
#include "clientlib/calls/room.h"

#include <errno.h>
#include <string.h>
#include "clientlib/attach/deadline.h"
#include "clientlib/calls/wait.h"
#include "clientlib/binds/unbound.h"
#include "clientlib/neighbours/direct.h"

int room_begin(struct room *room, const struct pwc_remote *remote, const pwc_cid *lid,
               unsigned flags)
{
    *room = (struct room){.ctx = remote->ctx, .remote = remote};
    if (lid->size <= PWC_CID_MAX && !(flags & PWC_NO_LCE)) {
        room->event = true;
        room->id_bytes = (uint32_t)lid->size;
    }
    if (remote_is(remote, UNBOUND_LATE))
        room_asks(room);
    return client_may_block(room->ctx->client);
}

void room_asks(struct room *room)
{
    if (room->deadline == 0)
        room->deadline = deadline_after_ms(room->ctx->client->link.timeout_ms);
}

/* Whether the room for ends of operations to neighbours is full: only the caller's own probes make
 * room there. */
static bool is_full_of_ends(const struct room *room)
{
    const struct channel *ch = &room->ctx->channel;

    return room->event && room->remote->way && direct_idle(room->remote) && ch->kept.own > 0 &&
           channel_own_room(ch, room->id_bytes + ch->set_aside) < 0;
}

/* Copies of the two places that may hold the id of the last probe's event. */
struct shown {
    uint8_t session[EVENT_BYTES_MAX], neighbour[EVENT_BYTES_MAX];
};

/* Lets time pass. Afterwards these places are as before, because the ids or the source of the
 * operation that is tried again may point there. */
static int pass(struct pwc_ctx *ctx, int64_t deadline)
{
    struct channel *ch = &ctx->channel;
    struct shown shown;
    int rc;

    memcpy(shown.session, ch->event, sizeof(shown.session));
    memcpy(shown.neighbour, ch->neighbours.event, sizeof(shown.neighbour));
    rc = wait_pass(ctx, wait_taken_too(PWC_LOCAL), NULL, deadline);
    memcpy(ch->event, shown.session, sizeof(shown.session));
    memcpy(ch->neighbours.event, shown.neighbour, sizeof(shown.neighbour));
    return rc;
}

bool room_wait(struct room *room, int *rc)
{
    struct pwc_ctx *ctx = room->ctx;

    if (*rc != -EAGAIN)
        return false;
    if (!room->waits) {
        room->waits = true;
        room_asks(room);
        patience_worked(&ctx->patience, (uint64_t)clock_now());
    }
    wait_begin(ctx, SESSION_WAITS_ROOM);
    *rc = pass(ctx, room->deadline);
    wait_end(ctx);
    if (*rc == 0 && is_full_of_ends(room))
        *rc = -ENOBUFS;
    return *rc == 0;
}
