/* Spreads the bytes of a put over blocks of the region, such as a column over the rows of a matrix
 * (the strided datatype of the sPIN paper). Each packet finds its own blocks, so a put may have any
 * length. */
#include <pwc/handler.h>

struct strided {
    uint64_t start, block, stride; /* bytes: to the first block, in each, from each to the next */
};

PWC_HANDLER int payload(const struct pwc_h_packet *p, struct strided *s)
{
    struct pwc_h_vector blocks = {s->start, s->block, s->stride, p->offset};

    return pwc_h_scatter(pwc_h_host(0), p->data, p->length, &blocks) < 0 ? PWC_H_FAIL
                                                                         : PWC_H_SUCCESS;
}
