/* Owns the oldest operations of a view that is being written (oldest.h). */
#include "daemon/control/watch/oldest.h"

#include <errno.h>
#include <stdlib.h>

int oldest_open(struct oldest *o, uint32_t most)
{
    *o = (struct oldest){.ops = calloc(2 * (size_t)most, sizeof(*o->ops)), .most = most};
    return o->ops ? 0 : -ENOMEM;
}

void oldest_close(struct oldest *o)
{
    free(o->ops);
}

bool oldest_take(struct oldest *o, const struct view_op *op, uint32_t engine)
{
    if (o->left_out && op->age_ns <= o->least_ns)
        return false;
    o->ops[o->count++] = (struct oldest_op){*op, engine};
    if (o->count == 2 * o->most)
        oldest_sort(o);
    return true;
}

static int by_age(const void *a, const void *b)
{
    const struct view_op *x = &((const struct oldest_op *)a)->op;
    const struct view_op *y = &((const struct oldest_op *)b)->op;

    if (x->age_ns != y->age_ns)
        return x->age_ns < y->age_ns ? 1 : -1;
    return (x->sequence > y->sequence) - (x->sequence < y->sequence);
}

void oldest_sort(struct oldest *o)
{
    if (o->count > 0)
        qsort(o->ops, o->count, sizeof(*o->ops), by_age);
    if (o->count <= o->most)
        return;
    o->count = o->most;
    o->left_out = true;
    o->least_ns = o->ops[o->most - 1].op.age_ns;
}
