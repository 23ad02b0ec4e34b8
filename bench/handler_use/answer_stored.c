/* Answers each put with its bytes out of the region, when all of them are there (the sPIN paper's
 * ping-pong, stored). */
#include <pwc/handler.h>

PWC_HANDLER int payload(const struct pwc_h_packet *p, void *state)
{
    return pwc_h_copy(pwc_h_host(p->place), p->data, p->length);
}

PWC_HANDLER int completion(const struct pwc_h_packet *p, void *state)
{
    int rc = pwc_h_put_host(p->source, 0, 0, p->total, p->id, 0);

    return rc == PWC_H_EAGAIN ? PWC_H_AGAIN : PWC_H_SUCCESS;
}
