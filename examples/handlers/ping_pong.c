/* Answers each put with a put of the same bytes to its origin, at the same offset, and does not
 * wake the client (the streaming ping-pong of the sPIN paper). Puts of origins that are not among
 * the offload's targets are only counted. */
#include <pwc/handler.h>

struct ping_pong {
    uint64_t strangers;
};

PWC_HANDLER int header(const struct pwc_h_packet *p, struct ping_pong *s)
{
    if (p->source != PWC_H_NONE)
        return PWC_H_PROCESS_DATA_PENDING; /* no event here */
    s->strangers++;
    return PWC_H_DROP;
}

PWC_HANDLER int payload(const struct pwc_h_packet *p, struct ping_pong *s)
{
    int rc = pwc_h_put(p->source, p->place, p->data, p->length, p->id, 0);

    return rc == PWC_H_EAGAIN ? PWC_H_AGAIN : PWC_H_SUCCESS;
}
