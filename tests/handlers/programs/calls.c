/* Functions that call each other, static and not, in two sections; constants by their address. */
#include <pwc/handler.h>

static const uint64_t table[4] = {10, 20, 30, 40};
static const char text[] = "constant";

static __attribute__((noinline)) uint64_t pick(uint64_t i)
{
    return table[i & 3];
}

__attribute__((noinline)) uint64_t global(uint64_t a)
{
    return pick(a) + 1;
}

__attribute__((noinline, section("other"))) uint64_t elsewhere(uint64_t a)
{
    return global(a) + 100;
}

PWC_HANDLER int payload(const struct pwc_h_packet *p, uint64_t *state)
{
    state[0] = pick(p->id);
    state[1] = global(p->id + 1);
    state[2] = elsewhere(p->id + 2);
    pwc_h_copy(&state[3], text + 2, sizeof(text) - 2);
    return PWC_H_SUCCESS;
}
