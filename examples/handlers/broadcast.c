/* A broadcast that reaches all live ranks although some are dead (the sPIN paper's, after Angskun
 * et al.): each rank sends the first copy that it gets to its targets, and drops other copies. The
 * targets are the ranks 1, 2, 4, ... further on; so all live ranks are reached while fewer than
 * log2(number of ranks) are dead. Broadcasts follow one another. The put's id numbers them from 1.
 */
#include <pwc/handler.h>

struct broadcast {
    uint64_t last;    /* number of the last broadcast that arrived */
    uint64_t targets; /* of the offload */
};

PWC_HANDLER int header(const struct pwc_h_packet *p, struct broadcast *s)
{
    /* When the handler runs again because the daemon died, `last` may be this copy's own number. A
     * second copy may find that, too: then it is passed on, and dropped by all that get it. */
    int again = p->flags & PWC_H_RERUN && p->id == s->last;

    if (p->id <= s->last && !again)
        return PWC_H_DROP_PENDING; /* no event for a copy */
    s->last = p->id;
    return PWC_H_PROCESS_DATA;
}

PWC_HANDLER int payload(const struct pwc_h_packet *p, struct broadcast *s)
{
    pwc_h_copy(pwc_h_host(p->place), p->data, p->length);
    for (uint64_t i = 0; i < s->targets; i++)
        if (pwc_h_put((uint32_t)i, p->place, p->data, p->length, p->id, 0) == PWC_H_EAGAIN)
            return PWC_H_AGAIN; /* no put of this run leaves: the next run sends them all */
    return PWC_H_SUCCESS;
}
