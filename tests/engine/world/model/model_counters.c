/* Counters that atomics add to (model_counters.h). Thread: one. */
#include "tests/engine/world/model/model_counters.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t standing(const struct model *m, uint32_t end, uint32_t counter)
{
    uint64_t value;

    memcpy(&value, m->ends[end].memory + m->counters_at + UINT64_C(8) * counter, sizeof(value));
    return value;
}

void model_counters_again(struct model *m, uint32_t end)
{
    struct model_end *e = &m->ends[end];

    e->life++;
    if (m->counters_at == 0)
        return;
    memset(e->vague + m->counters_at, 1, 8 * MODEL_COUNTERS);
    for (uint32_t i = 0; i < MODEL_COUNTERS; i++)
        e->counters[i] = standing(m, end, i);
}

void model_counters(struct model *m, uint64_t offset)
{
    m->counters_at = offset;
    for (uint32_t end = 0; end < m->count; end++)
        model_counters_again(m, end);
}

/* The least and the most times that an operation can have been done. */
static void times_done(const struct model *m, const struct model_op *op, uint32_t *least,
                       uint32_t *most)
{
    /* An operation without a local event has ended well if its owner would have got an error
     * otherwise. */
    bool silent = !op->local_seen;
    bool known = op->local_seen ? op->local_status != -ECONNABORTED
                                : op->ended && !op->past && !m->ends[op->from].dead;

    *least = known && (silent || op->local_status == 0);
    *most = known ? *least : 1;
}

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

/* Checks one counter; `fetched` has room for a value of each operation. */
static bool counter_check(const struct model *m, uint32_t end, uint32_t counter, uint64_t *fetched,
                          char failure[300])
{
    uint64_t at = m->counters_at + UINT64_C(8) * counter;
    uint64_t count = standing(m, end, counter) - m->ends[end].counters[counter];
    uint64_t least = 0, most = 0;
    uint32_t values = 0;

    for (uint32_t i = 0; i < m->op_count; i++) {
        const struct model_op *op = &m->ops[i];
        uint32_t l, h;

        if (op->kind != PATH_ATOMIC || op->to != end || op->remote_offset != at ||
            op->life != m->ends[end].life || op->status != 0)
            continue;
        times_done(m, op, &l, &h);
        least += l;
        most += h;
        if (op->fetch && op->local_seen && op->local_status == 0)
            fetched[values++] = op->fetched;
    }
    qsort(fetched, values, sizeof(*fetched), compare);
    for (uint32_t i = 1; i < values; i++)
        if (fetched[i] == fetched[i - 1]) {
            snprintf(failure, 300, "counter %u of end %u: two operations have fetched %llu",
                     counter, end, (unsigned long long)fetched[i]);
            return false;
        }
    if (count >= least && count <= most)
        return true;
    snprintf(failure, 300, "counter %u of end %u: %llu times one was added, not %llu to %llu",
             counter, end, (unsigned long long)count, (unsigned long long)least,
             (unsigned long long)most);
    return false;
}

const char *model_counters_check(const struct model *m, char failure[300])
{
    uint64_t *fetched = malloc((m->op_count + 1) * sizeof(*fetched));
    bool right = fetched != NULL;

    snprintf(failure, 300, "no memory");
    for (uint32_t end = 0; end < m->count && right && m->counters_at != 0; end++)
        for (uint32_t i = 0; i < MODEL_COUNTERS && right && !m->ends[end].dead; i++)
            right = counter_check(m, end, i, fetched, failure);
    free(fetched);
    return right ? NULL : failure;
}

uint32_t model_counters_unknown(const struct model *m)
{
    uint32_t unknown = 0;

    for (uint32_t i = 0; i < m->op_count; i++)
        unknown += m->ops[i].kind == PATH_ATOMIC && m->ops[i].local_seen &&
                   m->ops[i].local_status == -ECONNABORTED;
    return unknown;
}
