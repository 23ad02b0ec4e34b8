#include <pwc/handler.h>

PWC_HANDLER int payload(const struct pwc_h_packet *p, uint64_t *state)
{
    return PWC_H_SUCCESS;
}
