/*
 * Owns nothing: rounds of persistent requests, and the local events of their ends, which are kept
 * among the ends of operations without the daemon. A round holds the room for its event from its
 * start on.
 *
 * Thread: the one that owns the context.
 */
#include <errno.h>
#include "clientlib/channel/channel.h"

void channel_post_event(struct channel *ch, const struct pwc_request *r)
{
    const pwc_cid lid = request_lid(r);

    channel_own_release(ch, r->lid_size);
    channel_own(ch, PWC_OP_REQUEST, r->status.peer, r->status.bytes, &lid, r->status.status);
}

void channel_unstart_request(struct channel *ch, struct pwc_request *r)
{
    if (request_has_lid(r))
        channel_own_release(ch, r->lid_size);
    r->left = 0;
    r->reported = true;
}

void channel_end_request(struct channel *ch, struct pwc_request *r, int status)
{
    r->left = 0;
    if (r->status.status == 0)
        r->status.status = status;
    channel_ended_request(ch, r);
}
