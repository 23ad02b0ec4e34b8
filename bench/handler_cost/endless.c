/* Never ends by itself: its limit of 25,000 units stops it. */
#include <pwc/handler.h>

PWC_HANDLER int payload(const struct pwc_h_packet *p, uint64_t *state)
{
    for (;;)
        state[0]++;
}
