/* A server of a RAID-5 array. A data server writes what is put to it, and puts the difference from
 * what stood there to the server of the parity, which adds it by exclusive or. So a lost server's
 * data is the exclusive or of all the others. */
#include <pwc/handler.h>

struct raid5 {
    uint64_t parity; /* index of the parity's server among the targets, or PWC_H_NONE: this is it */
    unsigned char difference[PWC_H_SEND_MAX];
};

PWC_HANDLER int header(const struct pwc_h_packet *p, struct raid5 *s)
{
    return p->total % 8 == 0 ? PWC_H_PROCESS_DATA : PWC_H_FAIL;
}

PWC_HANDLER int payload(const struct pwc_h_packet *p, struct raid5 *s)
{
    unsigned char *here = pwc_h_host(p->place);

    if (s->parity == PWC_H_NONE) {
        pwc_h_accumulate(here, p->data, p->length / 8, PWC_U64, PWC_XOR);
        return PWC_H_SUCCESS;
    }
    pwc_h_copy(s->difference, here, p->length);
    pwc_h_accumulate(s->difference, p->data, p->length / 8, PWC_U64, PWC_XOR);
    switch (pwc_h_put((uint32_t)s->parity, p->place, s->difference, p->length, 0, PWC_H_QUIET)) {
    case 0:
        pwc_h_copy(here, p->data, p->length);
        return PWC_H_SUCCESS;
    case PWC_H_EAGAIN: /* nothing has been written yet */
        return PWC_H_AGAIN;
    default:
        return PWC_H_FAIL;
    }
}
