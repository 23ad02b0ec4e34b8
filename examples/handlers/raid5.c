/* A server of a RAID-5 array. A data server writes the bytes that are put to it, and puts their
 * difference from the old bytes to the parity server, which adds the difference to the parity by
 * exclusive or. So the data of a lost server is the exclusive or of all other servers' data. */
#include <pwc/handler.h>

struct raid5 {
    uint64_t parity; /* the parity server's index among the targets; PWC_H_NONE: this server */
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
