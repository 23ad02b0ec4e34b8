/* Adds 64-bit integers to the region by the program's own loop. */
#include <pwc/handler.h>

PWC_HANDLER int payload(const struct pwc_h_packet *p, uint64_t *state)
{
    uint64_t *sums = pwc_h_host(p->place);
    const uint64_t *data = p->data;

    for (uint64_t i = 0; i < p->length / 8; i++)
        sums[i] += data[i];
    return PWC_H_SUCCESS;
}
