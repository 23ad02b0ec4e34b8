/* Wake-up: no operation, because it wakes a context of this node at once. Thread: the progress
 * thread. */
#include "daemon/engine/ops/op.h"

#include "daemon/engine/session/direct.h"

static int wake_at_once(struct engine *e, uint32_t session, const struct submit_record *r)
{
    if (r->size != sizeof(*r) || r->flags != 0 || r->lid_len != 0 || r->rid_len != 0 ||
        r->reserve != 0)
        return QUARANTINE_RECORD;
    if (r->remote == SUBMIT_NO_REMOTE)
        direct_wake_origin(e, session, r->endpoint);
    else if (r->remote >= e->config.remotes_max)
        return QUARANTINE_REMOTE;
    else if (op_remote_given(e, session, r->remote))
        direct_wake(e, &e->flows[e->remotes[r->remote].flow]);
    /* Otherwise the remote was unbound meanwhile, which is no fault: an unbind does not wait until
     * this ring is empty. */
    return QUARANTINE_NONE;
}

const struct op_kind op_wake = {.at_once = wake_at_once};
