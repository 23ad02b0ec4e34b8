/*
 * Owns the life of an operation in the simulated fabric.
 *
 * An operation's steps are entries of the timeline, all made when it is posted (except in
 * sim_network.c):
 *
 *     write:  TRANSMIT (source copied)  PIECE...  LANDED (announce)        COMPLETE
 *     read:                             PIECE... (fetched and stored)      COMPLETE
 *
 * A break makes an operation `doomed`: its data moves no further. `reported` says that its event
 * has been queued. The operation is freed when it is reported and has no entries left.
 *
 * Thread: the owner of the sim_world.
 */
#include "daemon/fabric/sim/sim_state.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static uint32_t op_new(struct sim_world *w)
{
    uint32_t index = w->op_free;

    if (index == SIM_NO_OP) {
        uint32_t room = w->op_room ? 2 * w->op_room : 64;
        struct sim_op *grown = realloc(w->ops, room * sizeof *grown);

        if (!grown)
            return SIM_NO_OP;
        for (uint32_t i = w->op_room; i < room; i++)
            grown[i] = (struct sim_op){.next_free = i + 1 < room ? i + 1 : SIM_NO_OP};
        index = w->op_room;
        w->ops = grown;
        w->op_room = room;
    }
    w->op_free = w->ops[index].next_free;
    w->ops[index] = (struct sim_op){.used = true, .number = w->posted++};
    return index;
}

static void op_free_if_over(struct sim_world *w, uint32_t index)
{
    struct sim_op *op = &w->ops[index];

    if (op->entries || !op->reported)
        return;
    free(op->bytes);
    *op = (struct sim_op){.next_free = w->op_free};
    w->op_free = index;
}

void sim_schedule_op(struct sim_world *w, uint64_t time, enum step what, uint32_t index, uint64_t a,
                     uint64_t b)
{
    w->ops[index].entries++;
    sim_schedule(w, time, what, index, a, b);
}

/* Queues the operation's event. */
static void report(struct sim_world *w, struct sim_op *op, int status)
{
    struct fabric_event event = {
        .kind = op->read ? FABRIC_READ : FABRIC_WRITTEN,
        .status = status,
        .peer = op->target_node,
        .cookie = op->cookie,
    };

    op->reported = true;
    sim_side(w, op->source_node, op->target_node)->outstanding--;
    sim_push(w, op->source_node, &event);
    sim_log(w, "%u->%u op %llu ends %d", op->source_node, op->target_node,
            (unsigned long long)op->number, status);
}

static void doom(struct sim_world *w, struct sim_op *op)
{
    if (op->doomed)
        return;
    op->doomed = true;
    w->counters.lost += !op->landed;
}

static void transmit(struct sim_world *w, struct sim_op *op)
{
    if (op->transmitted || op->read)
        return;
    op->transmitted = true;
    if (op->length == 0)
        return;
    op->bytes = malloc(op->length);
    if (op->bytes)
        memcpy(op->bytes, op->local, op->length);
    else
        sim_fail(w, "out of memory for a write of %llu bytes", (unsigned long long)op->length);
}

/* Finds the target's memory by remote address and key; NULL: a fault, which is recorded. */
static uint8_t *target_of(struct sim_world *w, const struct sim_op *op)
{
    const struct sim_node *n = &w->nodes[op->target_node];
    unsigned right = op->read ? FABRIC_REMOTE_READ : FABRIC_REMOTE_WRITE;

    for (uint32_t i = 0; i < n->memory_room; i++) {
        const struct sim_memory *m = &n->memories[i];
        uint64_t offset = op->remote_address - m->address;

        if (!m->used || !m->live || m->key != op->remote_key)
            continue;
        if (!(m->access & right)) {
            sim_fail(w, "a key without the right reached the wire: %s %u->%u memory %u access %u",
                     op->read ? "read" : "write", op->source_node, op->target_node, m->index,
                     m->access);
            return NULL;
        }
        if (op->remote_address < m->address || offset > m->length ||
            op->length > m->length - offset) {
            sim_fail(w, "out of bounds on the wire: %s %u->%u offset %lld length %llu of %llu",
                     op->read ? "read" : "write", op->source_node, op->target_node,
                     (long long)offset, (unsigned long long)op->length,
                     (unsigned long long)m->length);
            return NULL;
        }
        return m->base + offset;
    }
    sim_fail(w, "a wrong key reached the wire: %s %u->%u key %llx address %llx length %llu",
             op->read ? "read" : "write", op->source_node, op->target_node,
             (unsigned long long)op->remote_key, (unsigned long long)op->remote_address,
             (unsigned long long)op->length);
    return NULL;
}

static void piece(struct sim_world *w, struct sim_op *op, uint64_t offset, uint64_t length)
{
    uint8_t *target;

    if (op->doomed || (op->read && op->reported))
        return;
    target = target_of(w, op);
    if (!target) {
        doom(w, op);
        return;
    }
    w->counters.pieces++;
    if (op->read)
        memcpy(op->local + offset, target + offset, length);
    else if (op->bytes)
        memcpy(target + offset, op->bytes + offset, length);
}

/* Gives the target its event. */
static void seen(struct sim_world *w, const struct sim_op *op)
{
    struct fabric_event event = {
        .kind = FABRIC_ARRIVED, .peer = op->source_node, .immediate = op->immediate};

    if (!op->doomed)
        sim_push(w, op->target_node, &event);
}

static void landed(struct sim_world *w, const struct sim_entry *entry)
{
    struct sim_op *op = &w->ops[entry->subject];
    struct sim_side *side = sim_side(w, op->source_node, op->target_node);

    if (op->doomed)
        return;
    op->landed = true;
    w->counters.landed++;
    if (op->number < side->landed_number)
        w->counters.overtaken++;
    else
        side->landed_number = op->number;
    sim_log(w, "%u->%u op %llu lands%s %08x", op->source_node, op->target_node,
            (unsigned long long)op->number, op->announce ? ", announced" : "", op->immediate);
    if (sim_has_loggp(w))
        sim_network_landed(w, entry->subject, entry->a);
    else if (op->announce)
        seen(w, op);
}

static void complete(struct sim_world *w, struct sim_op *op)
{
    if (op->reported)
        return;
    /* On a dead connection a write without `placed` may succeed or not end at all; no other
     * operation ends. */
    if (op->doomed && (op->read || op->placed || sim_random_chance(&w->random, 500)))
        return;
    report(w, op, 0);
}

/* Dooms all ordered writes after the first doomed one, because a connection breaks once. */
static void doom_behind(struct sim_world *w, uint32_t from, uint32_t to)
{
    uint64_t generation = sim_side(w, from, to)->generation, first = UINT64_MAX;

    for (int pass = 0; pass < 2; pass++)
        for (uint32_t i = 0; i < w->op_room; i++) {
            struct sim_op *op = &w->ops[i];

            if (!op->used || !op->ordered || op->landed || op->source_node != from ||
                op->target_node != to || op->generation != generation)
                continue;
            if (pass == 0 && op->doomed && op->number < first)
                first = op->number;
            else if (pass == 1 && op->number > first)
                doom(w, op);
        }
}

void sim_doom_flight(struct sim_world *w, uint32_t from, uint32_t to, uint32_t per_mille)
{
    for (uint32_t i = 0; i < w->op_room; i++) {
        struct sim_op *op = &w->ops[i];

        if (op->used && op->source_node == from && op->target_node == to &&
            sim_random_chance(&w->random, per_mille))
            doom(w, op);
    }
    doom_behind(w, from, to);
}

void sim_release_flight(struct sim_world *w, uint32_t from, uint32_t to)
{
    for (uint32_t i = 0; i < w->op_room; i++) {
        struct sim_op *op = &w->ops[i];

        if (!op->used || op->source_node != from || op->target_node != to || op->reported)
            continue;
        if (op->read || sim_random_chance(&w->random, 500))
            doom(w, op);
        else if (!op->doomed)
            transmit(w, op);
    }
    doom_behind(w, from, to);
}

uint32_t sim_end_flight(struct sim_world *w, uint32_t from, uint32_t to, int status,
                        uint32_t per_mille)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < w->op_room; i++) {
        struct sim_op *op = &w->ops[i];

        if (!op->used || op->source_node != from || op->target_node != to || op->reported ||
            !sim_random_chance(&w->random, per_mille))
            continue;
        if (!op->transmitted)
            doom(w, op);
        report(w, op, status);
        op_free_if_over(w, i);
        count++;
    }
    doom_behind(w, from, to);
    return count;
}

void sim_orphan_flight(struct sim_world *w, uint32_t from)
{
    for (uint32_t i = 0; i < w->op_room; i++) {
        struct sim_op *op = &w->ops[i];

        if (op->used && op->source_node == from && !op->reported) {
            op->reported = true;
            op_free_if_over(w, i);
        }
    }
}

void sim_operation_step(struct sim_world *w, const struct sim_entry *entry)
{
    struct sim_op *op = &w->ops[entry->subject];

    switch (entry->what) {
    case STEP_TRANSMIT:
        if (!op->reported && !op->doomed)
            transmit(w, op);
        break;
    case STEP_PIECE:
        piece(w, op, entry->a, entry->b);
        break;
    case STEP_LANDED:
        landed(w, entry);
        break;
    case STEP_COMPLETE:
        complete(w, op);
        break;
    case STEP_SEEN:
        seen(w, op);
        break;
    case STEP_ARRIVES:
    case STEP_RETURNS:
        sim_network_step(w, entry);
        break;
    }
    op->entries--;
    op_free_if_over(w, entry->subject);
}

/* ---- posting ------------------------------------------------------------------------------- */

/* Whether the node may post to the peer now. Returns 0, -EAGAIN or an error. */
static int admit(struct sim_world *w, uint32_t node, uint32_t peer, uint32_t memory,
                 const uint8_t *local, uint64_t length)
{
    const struct sim_memory *m;
    struct sim_side *side;

    if (peer >= w->options.nodes || !sim_side(w, node, peer)->connected) {
        sim_fail(w, "node %u posts towards %u without a connection", node, peer);
        return -ENOTCONN;
    }
    if (length > w->options.message_max) {
        sim_fail(w, "node %u posts %llu bytes, above message_max", node,
                 (unsigned long long)length);
        return -EMSGSIZE;
    }
    m = sim_memory_of(&w->nodes[node], memory);
    if (length && (!m || !m->live || local < m->base || (uint64_t)(local - m->base) > m->length ||
                   length > m->length - (uint64_t)(local - m->base))) {
        sim_fail(w, "node %u posts from outside its memory %u, %llu bytes", node, memory,
                 (unsigned long long)length);
        return -EINVAL;
    }
    side = sim_side(w, node, peer);
    if (side->outstanding >= w->options.outstanding_max ||
        sim_random_chance(&w->random, w->options.refuse_per_mille)) {
        w->counters.refused++;
        return -EAGAIN;
    }
    return 0;
}

/*
 * Schedules the landing of a write, or the fetching of a read: in one piece at `at`, or in several
 * after `start`. Returns the time of the last piece.
 */
static uint64_t schedule_pieces(struct sim_world *w, uint32_t index, uint64_t start, bool one,
                                uint64_t at)
{
    uint64_t length = w->ops[index].length;
    uint64_t pieces =
        one || length < 16 ? 1 : sim_random_range(&w->random, 1, w->options.pieces_max);
    uint64_t last = at, offset = 0;

    for (uint64_t left = pieces; left > 0 && length > 0; left--) {
        uint64_t rest = length - offset;
        uint64_t part = left == 1 ? rest : sim_random_below(&w->random, rest + 1);
        uint64_t time = one ? at : start + sim_some_delay(w);

        if (part)
            sim_schedule_op(w, time, STEP_PIECE, index, offset, part);
        offset += part;
        last = time > last ? time : last;
    }
    return last;
}

/* Makes an operation of this node. NULL: no memory. */
static struct sim_op *accept(struct sim_world *w, uint32_t node, uint32_t peer, uint32_t *index)
{
    struct sim_side *side = sim_side(w, node, peer);
    struct sim_op *op;

    *index = op_new(w);
    if (*index == SIM_NO_OP)
        return NULL;
    op = &w->ops[*index];
    op->source_node = node;
    op->target_node = peer;
    op->generation = side->generation;
    side->outstanding++;
    if (side->severed)
        doom(w, op);
    return op;
}

static void schedule_write(struct sim_world *w, uint32_t index)
{
    const struct sim_op *op = &w->ops[index];
    struct sim_side *side = sim_side(w, op->source_node, op->target_node);
    uint64_t sent = w->now + sim_some_delay(w), landing = sent + sim_some_delay(w);

    if (op->ordered) {
        if (landing <= side->last_landing)
            landing = side->last_landing + 1;
        side->last_landing = landing;
    }
    sim_schedule_op(w, sent, STEP_TRANSMIT, index, 0, 0);
    landing = schedule_pieces(w, index, sent, op->ordered, landing);
    sim_schedule_op(w, landing, STEP_LANDED, index, 0, 0);
    sim_schedule_op(w, (op->placed ? landing : sent) + sim_some_delay(w), STEP_COMPLETE, index, 0,
                    0);
}

static void schedule_read(struct sim_world *w, uint32_t index)
{
    uint64_t sent = w->now + sim_some_delay(w);
    uint64_t last = schedule_pieces(w, index, sent, false, sent);

    sim_schedule_op(w, last + sim_some_delay(w), STEP_COMPLETE, index, 0, 0);
}

int sim_write(struct fabric *fabric, const struct fabric_write *write)
{
    uint32_t node, index;
    struct sim_world *w = sim_world_of(fabric, &node);
    struct sim_op *op;
    int rc;

    sim_pass_time(w);
    rc = admit(w, node, write->peer, write->memory, write->source, write->length);
    if (rc != 0)
        return rc;
    op = accept(w, node, write->peer, &index);
    if (!op)
        return -ENOMEM;
    op->memory = write->memory;
    op->local = (uint8_t *)write->source;
    op->length = write->length;
    op->remote_address = write->remote_address;
    op->remote_key = write->remote_key;
    op->cookie = write->cookie;
    op->immediate = write->immediate;
    op->announce = write->announce;
    op->placed = write->placed;
    w->counters.writes++;
    w->counters.bytes += op->length;
    sim_log(w, "%u->%u op %llu writes %llu bytes%s %08x", node, write->peer,
            (unsigned long long)op->number, (unsigned long long)op->length,
            write->announce ? ", to announce" : "", write->immediate);

    op->ordered = w->options.ordered_write_max && op->length <= w->options.ordered_write_max;
    if (sim_has_loggp(w))
        sim_network_post(w, index);
    else
        schedule_write(w, index);
    return 0;
}

int sim_read(struct fabric *fabric, const struct fabric_read *read)
{
    uint32_t node, index;
    struct sim_world *w = sim_world_of(fabric, &node);
    struct sim_op *op;
    int rc;

    sim_pass_time(w);
    rc = admit(w, node, read->peer, read->memory, read->destination, read->length);
    if (rc != 0)
        return rc;
    op = accept(w, node, read->peer, &index);
    if (!op)
        return -ENOMEM;
    op->read = true;
    op->memory = read->memory;
    op->local = read->destination;
    op->length = read->length;
    op->remote_address = read->remote_address;
    op->remote_key = read->remote_key;
    op->cookie = read->cookie;
    w->counters.reads++;
    w->counters.bytes += op->length;
    sim_log(w, "%u->%u op %llu reads %llu bytes", node, read->peer, (unsigned long long)op->number,
            (unsigned long long)op->length);
    if (sim_has_loggp(w))
        sim_network_post(w, index);
    else
        schedule_read(w, index);
    return 0;
}
