/* Owns the computations of the LogGP model (loggp.h). Thread: the thread that owns the ends. */
#include "daemon/fabric/sim/loggp.h"

/* Keeps one part of a node busy, from the time when it is free on. Returns when it is free
 * again. */
static uint64_t occupy(uint64_t *part, uint64_t at, uint64_t busy)
{
    *part = (at > *part ? at : *part) + busy;
    return *part;
}

static uint64_t behind_first(const struct loggp *model, uint64_t bytes)
{
    return bytes > 1 ? (bytes - 1) * model->byte_fs / 1000 : 0;
}

/* When the last byte has passed a card. The gap after it keeps only the card busy, and does not
 * delay the message. */
static uint64_t pass(const struct loggp *model, uint64_t *card, uint64_t at, uint64_t bytes)
{
    return occupy(card, at, behind_first(model, bytes) + model->gap_ps) - model->gap_ps;
}

struct loggp_flight loggp_answer(const struct loggp *model, struct loggp_end *from, uint64_t at_ps,
                                 uint64_t bytes)
{
    uint64_t left = pass(model, &from->sender, at_ps, bytes);

    return (struct loggp_flight){.left = left,
                                 .arrives = left - behind_first(model, bytes) + model->latency_ps};
}

struct loggp_flight loggp_send(const struct loggp *model, struct loggp_end *from, uint64_t at_ps,
                               uint64_t bytes)
{
    return loggp_answer(model, from, occupy(&from->processor, at_ps, model->overhead_ps), bytes);
}

uint64_t loggp_receive(const struct loggp *model, struct loggp_end *to, uint64_t at_ps,
                       uint64_t bytes)
{
    return pass(model, &to->receiver, at_ps, bytes);
}

uint64_t loggp_notice(const struct loggp *model, struct loggp_end *to, uint64_t at_ps)
{
    return occupy(&to->processor, at_ps, model->overhead_ps);
}
