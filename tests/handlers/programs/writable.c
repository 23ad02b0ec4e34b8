/* The loader must refuse this program: it has a variable, which it writes. */
#include <pwc/handler.h>

static uint64_t count = 5;

PWC_HANDLER int payload(const struct pwc_h_packet *p, uint64_t *state)
{
    state[0] = count++;
    return PWC_H_SUCCESS;
}
