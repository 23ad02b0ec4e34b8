/* Counts in the state, decides, and puts once. */
#include <pwc/handler.h>

PWC_HANDLER int payload(const struct pwc_h_packet *p, uint64_t *state)
{
    state[0]++;
    if (p->source == PWC_H_NONE)
        return PWC_H_DROP;
    return pwc_h_put(p->source, p->place, p->data, p->length, p->id, 0) ? PWC_H_AGAIN
                                                                        : PWC_H_SUCCESS;
}
