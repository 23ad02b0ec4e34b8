/*
 * Owns the steps of operations with the LogGP clock (loggp.h). Each step schedules the next:
 *
 *     write:  TRANSMIT  ARRIVES  PIECE LANDED  SEEN (announced)     COMPLETE (left, or placed + L)
 *     read:             ARRIVES (fetched)  RETURNS                  COMPLETE
 *
 * The event of a completed write costs the processor no time, because a program asks for few of
 * them. Operations of a node to itself take no time.
 *
 * Thread: the owner of the sim_world.
 */
#include "daemon/fabric/sim/sim_state.h"

bool sim_has_loggp(const struct sim_world *w)
{
    const struct loggp *l = &w->options.loggp;

    return (l->latency_ps | l->overhead_ps | l->gap_ps | l->byte_fs) != 0;
}

static bool to_itself(const struct sim_op *op)
{
    return op->source_node == op->target_node;
}

static struct loggp_end *end_of(struct sim_world *w, uint32_t node)
{
    return &w->nodes[node].end;
}

static void schedule_at(struct sim_world *w, uint64_t ps, enum step what, uint32_t index)
{
    sim_schedule_op(w, loggp_ns(ps), what, index, ps, 0);
}

void sim_network_post(struct sim_world *w, uint32_t index)
{
    const struct sim_op *op = &w->ops[index];
    uint64_t now = w->now * 1000, bytes = op->read ? 0 : op->length;
    struct loggp_flight flight = {now, now};

    if (!to_itself(op))
        flight = loggp_send(&w->options.loggp, end_of(w, op->source_node), now, bytes);
    if (!op->read)
        schedule_at(w, flight.left, STEP_TRANSMIT, index);
    schedule_at(w, flight.arrives, STEP_ARRIVES, index);
    if (!op->read && !op->placed)
        schedule_at(w, flight.left, STEP_COMPLETE, index);
}

/* Lands a write; or fetches the data of a read, and sends it back. */
static void arrives(struct sim_world *w, uint32_t index, uint64_t at)
{
    const struct sim_op *op = &w->ops[index];
    struct loggp_end *target = end_of(w, op->target_node);
    uint64_t landed = at;
    struct loggp_flight answer = {at, at};

    if (!to_itself(op))
        landed = loggp_receive(&w->options.loggp, target, at, op->read ? 0 : op->length);
    if (op->length)
        sim_schedule_op(w, loggp_ns(landed), STEP_PIECE, index, 0, op->length);
    if (!op->read) {
        schedule_at(w, landed, STEP_LANDED, index);
        return;
    }
    if (!to_itself(op))
        answer = loggp_answer(&w->options.loggp, target, landed, op->length);
    schedule_at(w, answer.arrives, STEP_RETURNS, index);
}

static void returns(struct sim_world *w, uint32_t index, uint64_t at)
{
    const struct sim_op *op = &w->ops[index];
    struct loggp_end *origin = end_of(w, op->source_node);

    if (!to_itself(op)) {
        at = loggp_receive(&w->options.loggp, origin, at, op->length);
        at = loggp_notice(&w->options.loggp, origin, at);
    }
    schedule_at(w, at, STEP_COMPLETE, index);
}

void sim_network_landed(struct sim_world *w, uint32_t index, uint64_t at)
{
    const struct sim_op *op = &w->ops[index];
    uint64_t back = to_itself(op) ? 0 : w->options.loggp.latency_ps;

    if (op->placed)
        schedule_at(w, at + back, STEP_COMPLETE, index);
    if (op->announce)
        schedule_at(
            w, to_itself(op) ? at : loggp_notice(&w->options.loggp, end_of(w, op->target_node), at),
            STEP_SEEN, index);
}

void sim_network_step(struct sim_world *w, const struct sim_entry *entry)
{
    if (w->ops[entry->subject].doomed)
        return;
    if (entry->what == STEP_ARRIVES)
        arrives(w, entry->subject, entry->a);
    else
        returns(w, entry->subject, entry->a);
}
