/* Spreads what is put over blocks of the region, such as a column over the rows of a matrix (the
 * paper's strided datatype). Each packet finds its own blocks, so a put may be as long as it likes.
 */
#include <pwc/handler.h>

struct strided {
    uint64_t start, block, stride; /* bytes: of the first block, of each, from one to the next */
};

PWC_HANDLER int payload(const struct pwc_h_packet *p, struct strided *s)
{
    struct pwc_h_vector blocks = {s->start, s->block, s->stride, p->offset};

    return pwc_h_scatter(pwc_h_host(0), p->data, p->length, &blocks) < 0 ? PWC_H_FAIL
                                                                         : PWC_H_SUCCESS;
}
