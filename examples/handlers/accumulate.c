/* Multiplies the complex numbers in the region, two doubles each, by the numbers that are put there
 * (accumulate in the sPIN paper). With `pong` the products are put back to the origin. */
#include <pwc/handler.h>

struct accumulate {
    uint64_t pong;
};

PWC_HANDLER int payload(const struct pwc_h_packet *p, struct accumulate *s)
{
    unsigned char *sums = pwc_h_host(p->place);

    /* When this run repeats one that had no room to send, the numbers are multiplied already. */
    if (!(p->flags & PWC_H_RERUN))
        pwc_h_accumulate(sums, p->data, p->length / 16, PWC_C128, PWC_PROD);
    if (s->pong && p->source != PWC_H_NONE &&
        pwc_h_put(p->source, p->place, sums, p->length, p->id, 0) == PWC_H_EAGAIN)
        return PWC_H_AGAIN;
    return PWC_H_SUCCESS;
}
