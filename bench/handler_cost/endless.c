/* Stopped by its limit: 25,000 units. */
#include <pwc/handler.h>

PWC_HANDLER int payload(const struct pwc_h_packet *p, uint64_t *state)
{
    for (;;)
        state[0]++;
}
