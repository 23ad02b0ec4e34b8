/* The loader must refuse this program: it uses the address of a function. */
#include <pwc/handler.h>

static __attribute__((noinline)) uint64_t one(uint64_t a)
{
    return a + 1;
}

PWC_HANDLER int payload(const struct pwc_h_packet *p, uint64_t (**state)(uint64_t))
{
    state[0] = one;
    return PWC_H_SUCCESS;
}
