/* The pieces of a vector or a shape (pieces.h). Thread: any. */
#include "clientlib/calls/pieces.h"

#include <errno.h>
#include <string.h>

void pieces_of_vector(struct pieces *p, const struct pwc_piece *list, size_t n)
{
    *p = (struct pieces){.list = list, .left = n};
}

/* ---- shapes --------------------------------------------------------------------------------- */

static void drop_dimension(struct pwc_shape *s, uint32_t d)
{
    for (s->dims--; d < s->dims; d++) {
        s->count[d] = s->count[d + 1];
        s->local_stride[d] = s->local_stride[d + 1];
        s->remote_stride[d] = s->remote_stride[d + 1];
    }
}

/* Dimensions of one index go; the innermost ones that are contiguous become part of the element. */
static int fold(struct pwc_shape *s)
{
    for (uint32_t d = s->dims; d-- > 0;)
        if (s->count[d] == 1)
            drop_dimension(s, d);
    while (s->dims > 0) {
        uint32_t last = s->dims - 1;

        if (s->element > PTRDIFF_MAX || s->local_stride[last] != (ptrdiff_t)s->element ||
            s->remote_stride[last] != (ptrdiff_t)s->element)
            return 0;
        if (__builtin_mul_overflow(s->element, s->count[last], &s->element))
            return -EMSGSIZE;
        s->dims--;
    }
    return 0;
}

int pieces_of_shape(struct pieces *p, uint64_t off, void *local, const struct pwc_shape *shape)
{
    bool empty = shape->element == 0;

    if (shape->dims < 1 || shape->dims > 4 || shape->reserved != 0)
        return -EINVAL;
    for (uint32_t d = 0; d < shape->dims; d++)
        empty |= shape->count[d] == 0;
    *p = (struct pieces){.shape = *shape, .left = !empty};
    if (empty)
        return 0;
    if (fold(&p->shape) < 0)
        return -EMSGSIZE;
    p->element = (struct pwc_piece){.off = off, .local = local, .len = p->shape.element};
    return 0;
}

/* Addresses wrap, as unsigned numbers do: whether they are good is for each piece to say. */
static void move(struct pwc_piece *piece, ptrdiff_t remote, ptrdiff_t local, size_t times)
{
    piece->off += (uint64_t)remote * times;
    piece->local = (void *)((uintptr_t)piece->local + (uintptr_t)local * times);
}

/* To the next element: the innermost dimension goes first. */
static void advance(struct pieces *p)
{
    const struct pwc_shape *s = &p->shape;

    for (uint32_t d = s->dims; d-- > 0;) {
        if (++p->index[d] < s->count[d]) {
            move(&p->element, s->remote_stride[d], s->local_stride[d], 1);
            return;
        }
        move(&p->element, s->remote_stride[d], s->local_stride[d], 1 - s->count[d]);
        p->index[d] = 0;
    }
    p->left = 0;
}

/* ---- both ----------------------------------------------------------------------------------- */

/* The next piece as it was given. */
static bool take(struct pieces *p, struct pwc_piece *out)
{
    if (p->left == 0)
        return false;
    if (!p->list) {
        *out = p->element;
        advance(p);
    } else {
        *out = *p->list++;
        p->left--;
    }
    return true;
}

static bool side_by_side(const struct pwc_piece *a, const struct pwc_piece *b)
{
    return a->off + a->len == b->off && (uintptr_t)a->local + a->len == (uintptr_t)b->local &&
           b->len <= SIZE_MAX - a->len;
}

bool pieces_next(struct pieces *p, struct pwc_piece *out)
{
    *out = p->ahead;
    p->ahead.len = 0;
    while (p->ahead.len == 0 && take(p, &p->ahead)) {
        if (p->ahead.len > 0 && out->len > 0 && !side_by_side(out, &p->ahead))
            break;
        if (out->len == 0)
            *out = p->ahead;
        else
            out->len += p->ahead.len;
        p->ahead.len = 0;
    }
    return out->len > 0;
}
