/* The simplest handler: counts the puts that arrive, and their bytes. The puts themselves are
 * placed as usual. The handler's state is two words. */
#include <pwc/handler.h>

struct counter {
    uint64_t puts, bytes;
};

PWC_HANDLER int header(const struct pwc_h_packet *p, struct counter *c)
{
    c->puts++;
    c->bytes += p->total;
    return PWC_H_PROCEED;
}
