/* A broadcast, packet by packet (the sPIN paper's, streamed): each packet is copied into the region
 * and put to the children, which are the targets from 1 on. After the last packet, target 0, the
 * root, gets an answer. */
#include <pwc/handler.h>

struct forward {
    uint64_t children, size;
};

PWC_HANDLER int payload(const struct pwc_h_packet *p, struct forward *s)
{
    int rc = 0;

    pwc_h_copy(pwc_h_host(p->place), p->data, p->length);
    for (uint64_t i = 1; i <= s->children && rc == 0; i++)
        rc = pwc_h_put((uint32_t)i, p->place, p->data, p->length, p->id, 0);
    if (rc == 0 && p->place + p->length == s->size)
        rc = pwc_h_put(0, 0, 0, 0, p->id, 0);
    return rc == PWC_H_EAGAIN ? PWC_H_AGAIN : rc < 0 ? PWC_H_FAIL : PWC_H_SUCCESS;
}
