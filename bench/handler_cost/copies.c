/* Spreads a packet over blocks of 64 bytes, 128 apart, by one copy for each block. */
#include <pwc/handler.h>

PWC_HANDLER int payload(const struct pwc_h_packet *p, uint64_t *state)
{
    const unsigned char *from = p->data;

    for (uint64_t i = 0; i < p->length / 64; i++)
        pwc_h_copy(pwc_h_host(i * 128), from + i * 64, 64);
    return PWC_H_SUCCESS;
}
