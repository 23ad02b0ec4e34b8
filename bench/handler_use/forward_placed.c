/* As forward.c, for puts that are placed: each is forwarded when all of it is in the region. */
#include <pwc/handler.h>

struct forward {
    uint64_t children, size;
};

PWC_HANDLER int completion(const struct pwc_h_packet *p, struct forward *s)
{
    int rc = 0;

    for (uint64_t i = 1; i <= s->children && rc == 0; i++)
        rc = pwc_h_put_host((uint32_t)i, 0, 0, p->total, p->id, 0);
    if (rc == 0)
        rc = pwc_h_put(0, 0, 0, 0, p->id, 0);
    return rc == PWC_H_EAGAIN ? PWC_H_AGAIN : rc < 0 ? PWC_H_FAIL : PWC_H_SUCCESS;
}
