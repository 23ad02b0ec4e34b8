/* Multiplies the region, complex numbers of two doubles, by those that are put to it (the paper's
 * accumulate). With `pong` the products go back to the origin. */
#include <pwc/handler.h>

struct accumulate {
    uint64_t pong;
};

PWC_HANDLER int payload(const struct pwc_h_packet *p, struct accumulate *s)
{
    unsigned char *sums = pwc_h_host(p->place);

    /* Run again since there was no room to send, the numbers are multiplied already. */
    if (!(p->flags & PWC_H_RERUN))
        pwc_h_accumulate(sums, p->data, p->length / 16, PWC_C128, PWC_PROD);
    if (s->pong && p->source != PWC_H_NONE &&
        pwc_h_put(p->source, p->place, sums, p->length, p->id, 0) == PWC_H_EAGAIN)
        return PWC_H_AGAIN;
    return PWC_H_SUCCESS;
}
