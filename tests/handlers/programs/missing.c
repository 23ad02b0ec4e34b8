/* The loader must refuse this program: it calls a function that is not in the file. */
#include <pwc/handler.h>

extern uint64_t nowhere(uint64_t a);

PWC_HANDLER int payload(const struct pwc_h_packet *p, uint64_t *state)
{
    state[0] = nowhere(p->id);
    return PWC_H_SUCCESS;
}
