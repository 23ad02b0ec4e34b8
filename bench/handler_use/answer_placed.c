/* As answer_stored.c, for puts that are placed: the bytes are in the region already. */
#include <pwc/handler.h>

PWC_HANDLER int completion(const struct pwc_h_packet *p, void *state)
{
    int rc = pwc_h_put_host(p->source, 0, 0, p->total, p->id, 0);

    return rc == PWC_H_EAGAIN ? PWC_H_AGAIN : PWC_H_SUCCESS;
}
