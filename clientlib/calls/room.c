/* Owns nothing: waits for room (room.h). Thread: the one that owns the context. */
#include "clientlib/calls/room.h"

#include <errno.h>
#include "clientlib/attach/deadline.h"
#include "clientlib/calls/wait.h"

int room_begin(struct room *room, struct pwc_ctx *ctx, const pwc_cid *lid, unsigned flags)
{
    *room = (struct room){.ctx = ctx};
    if (lid->size <= PWC_CID_MAX && !(flags & PWC_NO_LCE)) {
        room->event = true;
        room->id_bytes = (uint32_t)lid->size;
    }
    return client_may_block(ctx->client);
}

/* Only the caller's own probes make room for the ends of operations to neighbours. */
static bool is_full_of_ends(const struct room *room)
{
    const struct channel *ch = &room->ctx->channel;

    return room->event && ch->kept.own > 0 &&
           channel_own_room(ch, room->id_bytes + ch->set_aside) < 0;
}

bool room_wait(struct room *room, int *rc)
{
    struct pwc_ctx *ctx = room->ctx;

    if (*rc != -EAGAIN)
        return false;
    if (room->deadline == 0) {
        room->deadline = deadline_after_ms(ctx->client->link.timeout_ms);
        patience_worked(&ctx->patience, (uint64_t)clock_now());
    }
    wait_begin(ctx, SESSION_WAITS_FLUSH);
    *rc = wait_pass(ctx, room->deadline);
    wait_end(ctx);
    if (*rc == 0 && is_full_of_ends(room))
        *rc = -ENOBUFS;
    return *rc == 0;
}
