/* Handlers that count the puts that begin and end. The completion handler takes some thousand
 * units. */
#include <pwc/handler.h>

struct slow_end {
    uint64_t begun, ended, cut, turns;
};

PWC_HANDLER int header(const struct pwc_h_packet *p, struct slow_end *s)
{
    s->begun++;
    return PWC_H_PROCESS_DATA;
}

PWC_HANDLER int completion(const struct pwc_h_packet *p, struct slow_end *s)
{
    volatile uint64_t *turns = &s->turns;

#pragma clang loop unroll(disable)
    for (uint64_t i = 0; i < 1000; i++)
        *turns = *turns + 1;
    s->ended++;
    s->cut += (p->flags & PWC_H_CUT) != 0;
    return PWC_H_SUCCESS;
}
