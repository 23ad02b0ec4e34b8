/* A broadcast that outlives dead nodes (the paper's, after Angskun et al.): each rank passes on the
 * first copy that it gets, and drops the others. With the ranks 1, 2, 4, ... further on as targets,
 * all others are reached while fewer than log2 of the ranks are dead. Broadcasts are numbered from
 * 1 by the put's id, and come one after another. */
#include <pwc/handler.h>

struct broadcast {
    uint64_t last;    /* the broadcast that came last */
    uint64_t targets; /* of the offload */
};

PWC_HANDLER int header(const struct pwc_h_packet *p, struct broadcast *s)
{
    /* After its daemon's death the first copy finds its own number. A second copy may do so too: it
     * is passed on again, and dropped by all who get it. */
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
            return PWC_H_AGAIN; /* none has left: the next run sends them all */
    return PWC_H_SUCCESS;
}
