/* A server of a RAID-5 array, as in examples/handlers/raid5.c. In addition the parity server puts
 * an answer to its target 0 when it has added all of a server's difference to the parity. */
#include <pwc/handler.h>

struct parity {
    uint64_t parity, block;
    unsigned char difference[PWC_H_SEND_MAX];
};

PWC_HANDLER int payload(const struct pwc_h_packet *p, struct parity *s)
{
    unsigned char *here = pwc_h_host(p->place);
    int rc = 0;

    if (s->parity == PWC_H_NONE) {
        if (!(p->flags & PWC_H_RERUN))
            pwc_h_accumulate(here, p->data, p->length / 8, PWC_U64, PWC_XOR);
        if (p->place + p->length == s->block)
            rc = pwc_h_put(0, 0, 0, 0, p->id, 0);
    } else {
        pwc_h_copy(s->difference, here, p->length);
        pwc_h_accumulate(s->difference, p->data, p->length / 8, PWC_U64, PWC_XOR);
        rc = pwc_h_put((uint32_t)s->parity, p->place, s->difference, p->length, p->id, 0);
        if (rc == 0)
            pwc_h_copy(here, p->data, p->length);
    }
    return rc == PWC_H_EAGAIN ? PWC_H_AGAIN : rc < 0 ? PWC_H_FAIL : PWC_H_SUCCESS;
}
