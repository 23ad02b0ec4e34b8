/* Compares the counters of each end with the model's operations (model_counts.h). Thread: one. */
#include "tests/engine/world/model/model_counts.h"

#include <errno.h>
#include <stdio.h>

/* The bounds of a number. */
struct range {
    uint64_t least, most;
};

static void add(struct range *to, bool surely, bool perhaps)
{
    to->least += surely;
    to->most += surely || perhaps;
}

void model_counts_begin(struct model *m, uint32_t end, const struct path_counts *counts)
{
    m->ends[end].counted = *counts;
}

struct path_counts model_counts_of(const struct channel *ch)
{
    const struct session_counts *daemon = &ch->shared->counts, *client = &ch->shared->client.counts;

    return (struct path_counts){
        .ended = count_look(&daemon->ended) + count_look(&client->ended),
        .failed = count_look(&daemon->failed) + count_look(&client->failed),
        .arrived = count_look(&daemon->arrived) + count_look(&client->arrived),
    };
}

static bool changes_memory(const struct model_op *op)
{
    if (op->kind == PATH_GET || op->status != 0)
        return false;
    return op->kind != PATH_PUT || op->length > 0 || !(op->flags & PWC_NO_RCE);
}

static void count_arrival(const struct model *m, const struct model_op *op, struct range *arrived)
{
    bool early = op->flags & PWC_LCE_SOURCE && op->shaken;
    bool known = op->local_seen ? op->local_status != -ECONNABORTED && !early
                                : op->ended && !op->past && !early && !m->ends[op->from].dead;
    bool well = !op->local_seen || op->local_status == 0;

    if (changes_memory(op))
        add(arrived, op->remote_seen || (known && well), !known);
}

/* Adds an operation to the bounds of ended and failed ones. An operation that the model expects to
 * fail may be refused by its path at once; then it is not counted. */
static void count_end(const struct model_op *op, struct range *ended, struct range *failed)
{
    bool over = op->ended || op->past || op->local_seen;
    bool fails = op->local_seen && op->local_status < 0;

    add(ended, over && op->status == 0, true);
    add(failed, fails && op->status == 0, fails || !op->local_seen);
}

static bool is_in(const struct range *r, uint64_t now, uint64_t before, const char *name,
                  uint32_t end, char failure[300])
{
    uint64_t count = now - before;

    if (count >= r->least && count <= r->most)
        return true;
    snprintf(failure, 300, "end %u counts %llu %s, not %llu to %llu", end,
             (unsigned long long)count, name, (unsigned long long)r->least,
             (unsigned long long)r->most);
    return false;
}

const char *model_counts_check(const struct model *m, uint32_t end,
                               const struct path_counts *counts, char failure[300])
{
    const struct model_end *e = &m->ends[end];
    struct range ended = {0}, failed = {0}, arrived = {0};

    for (uint32_t i = 0; i < m->op_count; i++) {
        const struct model_op *op = &m->ops[i];

        if (op->to == end && op->life == e->life)
            count_arrival(m, op, &arrived);
        if (op->from == end && op->from_life == e->life)
            count_end(op, &ended, &failed);
    }
    return is_in(&ended, counts->ended, e->counted.ended, "ended", end, failure) &&
                   is_in(&failed, counts->failed, e->counted.failed, "failed", end, failure) &&
                   is_in(&arrived, counts->arrived, e->counted.arrived, "arrived", end, failure)
               ? NULL
               : failure;
}
