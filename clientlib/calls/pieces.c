/* The pieces of a vector or a shape (pieces.h). Thread: any. */
#include "clientlib/calls/pieces.h"

#include <errno.h>

/* ---- shapes --------------------------------------------------------------------------------- */

static void drop_dimension(struct pwc_shape *s, uint32_t d)
{
    for (s->dims--; d < s->dims; d++) {
        s->count[d] = s->count[d + 1];
        s->local_stride[d] = s->local_stride[d + 1];
        s->remote_stride[d] = s->remote_stride[d + 1];
    }
}

/* Removes dimensions with one index; merges the innermost dimensions, where contiguous, into the
 * element. */
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

static bool is_empty(const struct pwc_shape *s)
{
    bool empty = s->element == 0;

    for (uint32_t d = 0; d < s->dims; d++)
        empty |= s->count[d] == 0;
    return empty;
}

int pieces_of_shape(struct pieces *p, uint64_t off, void *local, const struct pwc_shape *shape)
{
    struct pwc_shape *s = &p->outer;

    if (shape->dims < 1 || shape->dims > 4 || shape->reserved != 0)
        return -EINVAL;
    *p = (struct pieces){.outer = *shape};
    if (is_empty(s))
        return 0;
    if (fold(s) < 0)
        return -EMSGSIZE;
    p->next = (struct pwc_piece){.off = off, .local = local, .len = s->element};
    p->left = 1;
    if (s->dims == 0)
        return 0;
    s->dims--;
    p->left = s->count[s->dims];
    p->local_stride = s->local_stride[s->dims];
    p->remote_stride = s->remote_stride[s->dims];
    return 0;
}

/* Extends a range by the further indices of a dimension. False: it overflows. */
static bool reach(uint64_t *from, uint64_t *end, size_t count, ptrdiff_t stride)
{
    int64_t span;

    if (__builtin_mul_overflow((int64_t)stride, (int64_t)count - 1, &span))
        return false;
    return !(span < 0 ? __builtin_sub_overflow(*from, -(uint64_t)span, from)
                      : __builtin_add_overflow(*end, (uint64_t)span, end));
}

/* Adds a dimension of up to PWC_PIECES_MAX indices. */
static int extend(struct pieces_extent *out, size_t count, ptrdiff_t stride, ptrdiff_t local_stride)
{
    if (count > PWC_PIECES_MAX || out->count * count > PWC_PIECES_MAX)
        return -E2BIG;
    out->count *= count;
    if (!reach(&out->from, &out->end, count, stride))
        return -ERANGE;
    if (out->local_end > 0 && !reach(&out->local_from, &out->local_end, count, local_stride))
        out->local_from = out->local_end = 0;
    return 0;
}

int pieces_extent(const struct pieces *p, struct pieces_extent *out)
{
    const struct pwc_shape *s = &p->outer;
    int rc;

    *out = (struct pieces_extent){
        .count = 1,
        .length = p->next.len,
        .from = p->next.off,
        .end = p->next.off,
        .local_from = (uintptr_t)p->next.local,
    };
    if (__builtin_add_overflow(out->end, out->length, &out->end))
        return -ERANGE;
    if (__builtin_add_overflow(out->local_from, out->length, &out->local_end))
        out->local_from = out->local_end = 0;
    rc = extend(out, p->left, p->remote_stride, p->local_stride);
    for (uint32_t d = 0; d < s->dims && rc == 0; d++)
        rc = extend(out, s->count[d], s->remote_stride[d], s->local_stride[d]);
    return rc;
}

/* Addresses may wrap around as unsigned numbers: each piece is checked on its own. */
static void move(struct pwc_piece *piece, ptrdiff_t remote, ptrdiff_t local, size_t times)
{
    piece->off += (uint64_t)remote * times;
    piece->local = (void *)((uintptr_t)piece->local + (uintptr_t)local * times);
}

void pieces_carry(struct pieces *p)
{
    const struct pwc_shape *s = &p->outer;
    size_t inner = s->dims < 4 ? s->count[s->dims] : 0;

    for (uint32_t d = s->dims; d-- > 0;) {
        if (d + 1 == s->dims)
            move(&p->next, p->remote_stride, p->local_stride, 1 - inner);
        if (++p->index[d] < s->count[d]) {
            move(&p->next, s->remote_stride[d], s->local_stride[d], 1);
            p->left = inner;
            return;
        }
        move(&p->next, s->remote_stride[d], s->local_stride[d], 1 - s->count[d]);
        p->index[d] = 0;
    }
}

uint32_t pieces_take_row(struct pieces *p, uint32_t most, struct pwc_piece *out)
{
    uint32_t n = p->left < most ? (uint32_t)p->left : most;

    if (n == 0)
        return 0;
    *out = p->next;
    p->left -= n;
    if (p->left > 0) {
        move(&p->next, p->remote_stride, p->local_stride, n);
    } else {
        move(&p->next, p->remote_stride, p->local_stride, n - 1);
        pieces_carry(p);
    }
    return n;
}

/* ---- lists ---------------------------------------------------------------------------------- */

void pieces_of_vector(struct pieces *p, const struct pwc_piece *list, size_t n)
{
    static const struct pwc_piece none;

    *p = (struct pieces){.list = n > 0 ? list : &none, .left = n};
}

static bool side_by_side(const struct pwc_piece *a, const struct pwc_piece *b)
{
    return a->off + a->len == b->off && (uintptr_t)a->local + a->len == (uintptr_t)b->local &&
           b->len <= SIZE_MAX - a->len;
}

bool pieces_next_listed(struct pieces *p, struct pwc_piece *out)
{
    struct pwc_piece piece = p->next;

    p->next.len = 0;
    for (; p->left > 0; p->left--, p->list++) {
        if (p->list->len == 0)
            continue;
        if (piece.len == 0) {
            piece = *p->list;
        } else if (side_by_side(&piece, p->list)) {
            piece.len += p->list->len;
        } else {
            p->next = *p->list++;
            p->left--;
            break;
        }
    }
    *out = piece;
    return piece.len > 0;
}
