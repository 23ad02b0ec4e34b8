/* Adds doubles to the region by a helper. */
#include <pwc/handler.h>

PWC_HANDLER int payload(const struct pwc_h_packet *p, uint64_t *state)
{
    return pwc_h_accumulate(pwc_h_host(p->place), p->data, p->length / 8, PWC_F64, PWC_ADD);
}
