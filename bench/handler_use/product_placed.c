/* Multiplies the complex numbers at the front of the region, two doubles each, by the numbers that
 * are placed after them. */
#include <pwc/handler.h>

PWC_HANDLER int payload(const struct pwc_h_packet *p, void *state)
{
    int rc = pwc_h_accumulate(pwc_h_host(p->offset), p->data, p->length / 16, PWC_C128, PWC_PROD);

    return rc < 0 ? PWC_H_FAIL : PWC_H_SUCCESS;
}
