/* The loader must refuse this program: its constants hold addresses. */
#include <pwc/handler.h>

static const char *const names[2] __attribute__((section(".rodata.names"))) = {"one", "two"};

PWC_HANDLER int payload(const struct pwc_h_packet *p, const char **state)
{
    state[0] = names[p->id & 1];
    return PWC_H_SUCCESS;
}
