/*
 * Answers a block with its checksum. The request is a Long of any length: its payload is in the
 * region when the handlers run on it, packet by packet, and the reply has the sum over all packets.
 * The packets may be added in any order.
 */
#include <pwc/handler.h>

enum { SLOTS = 64 };

/* State: the sum of each Long under way. */
struct checksum {
    uint64_t sum[SLOTS];
};

/* The argument: a slot, which the requester uses for one Long at a time. */
static uint64_t *sum_of(const struct pwc_h_packet *p, struct checksum *s)
{
    const uint64_t *args = p->header;

    return &s->sum[p->header_length > 0 ? args[0] % SLOTS : 0];
}

PWC_HANDLER int header(const struct pwc_h_packet *p, struct checksum *s)
{
    *sum_of(p, s) = 0;
    return PWC_H_PROCESS_DATA;
}

PWC_HANDLER int payload(const struct pwc_h_packet *p, struct checksum *s)
{
    *sum_of(p, s) += pwc_h_hash(p->data, p->length) * (2 * p->offset + 1);
    return PWC_H_SUCCESS;
}

PWC_HANDLER int completion(const struct pwc_h_packet *p, struct checksum *s)
{
    if (p->flags & (PWC_H_CUT | PWC_H_FAILED))
        return PWC_H_SUCCESS;
    return pwc_h_reply(sum_of(p, s), 1, s, 0) == PWC_H_EAGAIN ? PWC_H_AGAIN : PWC_H_SUCCESS;
}
