/* As examples/handlers/strided.c, but with one copy for each block. A packet has whole blocks, or a
 * part of one block. */
#include <pwc/handler.h>

struct strided {
    uint64_t start, block, stride;
};

PWC_HANDLER int payload(const struct pwc_h_packet *p, struct strided *s)
{
    const unsigned char *from = p->data;
    uint64_t n = p->length < s->block ? p->length : s->block;
    uint64_t to = s->start + p->offset / s->block * s->stride + p->offset % s->block;

    for (uint64_t done = 0; done < p->length; done += n, to += s->stride)
        pwc_h_copy(pwc_h_host(to), from + done, n);
    return PWC_H_SUCCESS;
}
