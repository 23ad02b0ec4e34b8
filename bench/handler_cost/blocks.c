/* Spreads a packet over blocks of 64 bytes, 128 apart, by one helper. */
#include <pwc/handler.h>

PWC_HANDLER int payload(const struct pwc_h_packet *p, uint64_t *state)
{
    struct pwc_h_vector v = {.start = 0, .block = 64, .stride = 128, .skip = p->offset};

    return pwc_h_scatter(pwc_h_host(0), p->data, p->length, &v);
}
