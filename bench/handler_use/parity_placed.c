/*
 * As parity.c, for puts that are placed.
 *
 *     a data server's region    | block | new block, put here | difference |
 *     the parity server's       | parity | difference of server 1 | of server 2 | ...
 */
#include <pwc/handler.h>

struct parity {
    uint64_t parity, block, rank;
};

PWC_HANDLER int payload(const struct pwc_h_packet *p, struct parity *s)
{
    unsigned char *here = pwc_h_host(p->offset), *difference;

    if (s->parity == PWC_H_NONE) {
        pwc_h_accumulate(here, p->data, p->length / 8, PWC_U64, PWC_XOR);
        return PWC_H_SUCCESS;
    }
    difference = pwc_h_host(2 * s->block + p->offset);
    pwc_h_copy(difference, here, p->length);
    pwc_h_accumulate(difference, p->data, p->length / 8, PWC_U64, PWC_XOR);
    pwc_h_copy(here, p->data, p->length);
    return PWC_H_SUCCESS;
}

PWC_HANDLER int completion(const struct pwc_h_packet *p, struct parity *s)
{
    int rc = s->parity == PWC_H_NONE ? pwc_h_put(0, 0, 0, 0, p->id, 0)
                                     : pwc_h_put_host((uint32_t)s->parity, s->rank * s->block,
                                                      2 * s->block, s->block, p->id, 0);

    return rc == PWC_H_EAGAIN ? PWC_H_AGAIN : rc < 0 ? PWC_H_FAIL : PWC_H_SUCCESS;
}
